//! The order of a list as its pages showed it: what two pages share, and what contradicts.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::core::decode::page::Row;

/// Rows whose place is remembered; those before are known to have been seen, no more.
const REMEMBERED: usize = 65_536;
/// So many rows that two pages share link them.
pub const LINK: u64 = 2;

/// The rows of the pages joined so far, in the list's order.
#[derive(Debug, Default)]
pub struct RowOrder {
    places: HashMap<i64, Place>,
    /// Ids by rank, ascending.
    line: VecDeque<(u64, i64)>,
    /// Those that came between others and have no rank of their own.
    between: VecDeque<i64>,
    next_rank: u64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    rank: u64,
    content: u64,
}

/// One row of the end of a chain, kept so that a later walk can link to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    id: i64,
    content: u64,
}

/// What a page shares with the chain.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Rows of the chain that are unchanged.
    pub unchanged: u64,
    /// Neighbours among them that stand the other way round.
    pub inversions: u64,
    /// Rows of the chain that are changed and stand elsewhere.
    pub moved: u64,
    /// Rows of the chain that stand after the page's last row.
    pub behind: u64,
    /// Rows of the chain that the page should have shown and did not.
    pub vanished: Vec<i64>,
}

impl Shared {
    /// Whether the page begins within what the chain covers, so that nothing unmoved lies between.
    pub fn links(&self) -> bool {
        self.unchanged >= LINK
    }
}

impl RowOrder {
    /// A chain whose end a walk before this one had read.
    pub fn resumed(end: &[Remembered]) -> Self {
        let mut chain = Self::default();
        for row in end {
            chain.append(row.id, row.content);
        }
        chain
    }

    /// The last rows, at most so many.
    pub fn end(&self, rows: usize) -> Vec<Remembered> {
        let skipped = self.line.len().saturating_sub(rows);
        let last = self.line.iter().skip(skipped);
        last.filter_map(|(_, id)| {
            let content = self.places.get(id)?.content;
            Some(Remembered { id: *id, content })
        })
        .collect()
    }

    /// The row that stands so many places before the end.
    pub fn before_end(&self, places: u64) -> Option<i64> {
        let places = usize::try_from(places).ok()?;
        let index = self.line.len().checked_sub(places)?;
        self.line.get(index).map(|(_, id)| *id)
    }

    /// Compares a page with the chain; `to_end` says that the page ends where the list does.
    pub fn compare(&self, rows: &[Row], to_end: bool) -> Shared {
        let mut shared = Shared::default();
        let mut first: Option<u64> = None;
        let mut last: Option<u64> = None;
        let mut beyond = false;
        for row in rows {
            let Some(place) = row.id.and_then(|id| self.places.get(&id)) else {
                beyond = true;
                continue;
            };
            if place.content != content(row) {
                shared.moved += u64::from(last.is_some_and(|last| place.rank < last));
                continue;
            }
            shared.unchanged += 1;
            shared.inversions += u64::from(last.is_some_and(|last| place.rank < last));
            first = first.or(Some(place.rank));
            last = Some(place.rank);
            beyond = false;
        }
        if let (Some(first), Some(last), true, 0) = (first, last, shared.links(), shared.inversions)
        {
            if !beyond {
                shared.behind = self.next_rank.saturating_sub(last + 1);
            }
            let upper = if beyond || to_end { u64::MAX } else { last };
            shared.vanished = self.missing(first, upper, rows);
        }
        shared
    }

    /// Rows that stand after one rank and before another, and not in the page.
    fn missing(&self, first: u64, upper: u64, rows: &[Row]) -> Vec<i64> {
        let shown: HashSet<i64> = rows.iter().filter_map(|row| row.id).collect();
        let mut vanished: Vec<i64> = self
            .line
            .iter()
            .rev()
            .take_while(|(rank, _)| *rank > first)
            .filter(|(rank, id)| *rank < upper && !shown.contains(id))
            .map(|(_, id)| *id)
            .collect();
        vanished.reverse();
        vanished
    }

    /// Takes the rows of a page in; what stands after the last shared row is the chain's new end.
    pub fn join(&mut self, rows: &[Row]) {
        let named = rows.iter().filter_map(|row| Some((row.id?, content(row))));
        let named: Vec<(i64, u64)> = named.collect();
        self.places.reserve(named.len());
        self.line.reserve(named.len());
        let unchanged = |&(id, content): &(i64, u64)| {
            let place = self.places.get(&id)?;
            (place.content == content).then_some(place.rank)
        };
        let ranks: Vec<Option<u64>> = named.iter().map(unchanged).collect();
        let shared = ranks.iter().rposition(Option::is_some);
        let after = shared.map_or(0, |last| last + 1);
        let mut rank = ranks.iter().flatten().next().copied();
        for (index, ((id, content), held)) in named.into_iter().zip(ranks).enumerate() {
            match rank {
                Some(near) if index < after => {
                    let here = held.unwrap_or(near);
                    rank = Some(here);
                    let place = Place {
                        rank: here,
                        content,
                    };
                    if held.is_none() {
                        self.insert(id, place);
                    }
                }
                _ => self.append(id, content),
            }
        }
    }

    fn insert(&mut self, id: i64, place: Place) {
        if self.places.insert(id, place).is_none() {
            self.between.push_back(id);
        }
        if self.between.len() > REMEMBERED
            && let Some(id) = self.between.pop_front()
        {
            self.places.remove(&id);
        }
    }

    fn append(&mut self, id: i64, content: u64) {
        let rank = self.next_rank;
        self.next_rank += 1;
        self.places.insert(id, Place { rank, content });
        self.line.push_back((rank, id));
        if self.line.len() > REMEMBERED
            && let Some((rank, id)) = self.line.pop_front()
            && self.places.get(&id).is_some_and(|place| place.rank == rank)
        {
            self.places.remove(&id);
        }
    }

    /// The number of the text with which the row of this id is held.
    pub fn content_of(&self, id: i64) -> Option<u64> {
        self.places.get(&id).map(|place| place.content)
    }
}

/// A number that rows with the same text share; the same in every process.
pub fn content(row: &Row) -> u64 {
    content_of_text(row.json())
}

/// The same of a row's text.
pub fn content_of_text(json: &str) -> u64 {
    xxh3_64(json.as_bytes())
}
