//! The order of a list as its pages showed it: which rows two pages share, and which contradict.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::core::decode::page::Row;

/// Rows whose position is remembered; of earlier rows it is only known that they were seen.
const REMEMBERED: usize = 65_536;
/// Two pages that share this many rows are linked.
pub const LINK: u64 = 2;

/// The chain: the rows of the pages joined so far, in the list's order.
#[derive(Debug, Default)]
pub struct RowOrder {
    places: HashMap<i64, Place>,
    /// Ids by rank, ascending.
    line: VecDeque<(u64, i64)>,
    /// Rows that appeared between others and have no rank.
    between: VecDeque<i64>,
    next_rank: u64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    rank: u64,
    content: u64,
}

/// A row at the end of a chain, remembered so that a later walk can link to it.
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
    /// Neighbouring rows among them in reverse order.
    pub inversions: u64,
    /// Rows of the chain that changed and moved.
    pub moved: u64,
    /// Rows of the chain that come after the page's last row.
    pub behind: u64,
    /// Rows of the chain that the page should have shown and did not.
    pub vanished: Vec<i64>,
}

impl Shared {
    /// Whether the page begins within the chain, so that no unmoved row can lie between.
    pub fn links(&self) -> bool {
        self.unchanged >= LINK
    }
}

impl RowOrder {
    /// A chain that continues from the end of an earlier walk's.
    pub fn resumed(end: &[Remembered]) -> Self {
        let mut chain = Self::default();
        for row in end {
            chain.append(row.id, row.content);
        }
        chain
    }

    /// The last rows, at most `rows`.
    pub fn end(&self, rows: usize) -> Vec<Remembered> {
        let skipped = self.line.len().saturating_sub(rows);
        let last = self.line.iter().skip(skipped);
        last.filter_map(|(_, id)| {
            let content = self.places.get(id)?.content;
            Some(Remembered { id: *id, content })
        })
        .collect()
    }

    /// The row `places` positions before the end.
    pub fn before_end(&self, places: u64) -> Option<i64> {
        let places = usize::try_from(places).ok()?;
        let index = self.line.len().checked_sub(places)?;
        self.line.get(index).map(|(_, id)| *id)
    }

    /// Compares a page with the chain; `to_end` means that the page ends where the list does.
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

    /// Rows ranked between `first` and `upper` that the page lacks.
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

    /// Adds a page's rows; those after the last shared row become the chain's new end.
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

    /// The content hash stored for the row with this id.
    pub fn content_of(&self, id: i64) -> Option<u64> {
        self.places.get(&id).map(|place| place.content)
    }
}

/// A hash of a row's text, the same in every process.
pub fn content(row: &Row) -> u64 {
    content_of_text(row.json())
}

/// The same hash of a row's text.
pub fn content_of_text(json: &str) -> u64 {
    xxh3_64(json.as_bytes())
}
