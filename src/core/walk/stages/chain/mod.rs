//! The chain: the rows of the pages joined so far, in the list's order.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::decode::page::Row;

/// A page is linked by this many unchanged rows in the chain's sequence. One would do if rows that
/// move always changed; with two, a single row that moved unchanged forges no link.
pub const LINK: usize = 2;
/// Rows whose places are remembered. Forgetting older ones costs links, never a proof.
const REMEMBERED: usize = 65_536;

/// From the ids of the rows to their places in the list's order.
#[derive(Debug, Default)]
pub struct Chain {
    places: HashMap<i64, Place>,
    /// The ids by rank, from the rank after `forgotten` on.
    line: VecDeque<i64>,
    forgotten: u64,
    /// Each response spells the rows differently, so they are compared by their ids alone.
    pub by_id: bool,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// Ranks begin at 1. Rows that were inserted between others, or edited there, have the rank of a
    /// neighbour.
    rank: u64,
    /// `None` if an earlier walk read the row and its hash may not be stored.
    content: Option<u64>,
    /// The response that showed it.
    answer: u64,
}

/// A row at the end of a chain, as a checkpoint remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    id: i64,
    content: Option<u64>,
}

impl Remembered {
    pub fn forget_content(&mut self) {
        self.content = None;
    }
}

/// What a page shares with the chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shared {
    /// Rows of the chain that are unchanged.
    pub unchanged: usize,
    /// Neighbours among them in reverse order.
    pub inversions: u64,
    /// How many different ranks they have.
    distinct: u64,
    /// The ranks of the first and the last of them.
    ranks: Option<(u64, u64)>,
}

/// How a page extended the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// How many of its rows follow the chain's end,
    pub appended: u64,
    /// and how many rows of the chain follow its last one.
    pub behind: u64,
    /// The rank of its last row.
    pub rank: u64,
}

impl Chain {
    pub fn new(by_id: bool) -> Self {
        Self {
            by_id,
            ..Self::default()
        }
    }

    /// A chain that continues from the end of an earlier walk's.
    pub fn resumed(end: &[Remembered], by_id: bool) -> Self {
        let mut chain = Self::new(by_id);
        for row in end {
            chain.append(row.id, row.content, 0);
        }
        chain
    }

    /// Its last rows, at most `rows`.
    pub fn end(&self, rows: usize) -> Vec<Remembered> {
        let skipped = self.line.len().saturating_sub(rows);
        let last = self.line.iter().skip(skipped);
        last.filter_map(|id| {
            let content = self.places.get(id)?.content;
            Some(Remembered { id: *id, content })
        })
        .collect()
    }

    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// The row this many places before its end.
    pub fn before_end(&self, places: u64) -> Option<i64> {
        let index = self.line.len().checked_sub(usize::try_from(places).ok()?)?;
        self.line.get(index).copied()
    }

    pub fn knows_all(&self, rows: &[Row]) -> bool {
        let known = |row: &Row| row.id.is_some_and(|id| self.places.contains_key(&id));
        rows.iter().all(known)
    }

    pub fn compare(&self, rows: &[Row]) -> Shared {
        let mut shared = Shared::default();
        let mut before = None;
        for row in rows {
            let Some(rank) = self.unchanged(row).filter(|_| row.id != before) else {
                continue;
            };
            before = row.id;
            let last = shared.ranks.map(|(_, last)| last);
            shared.unchanged += 1;
            shared.inversions += u64::from(last.is_some_and(|last| rank < last));
            shared.distinct += u64::from(last != Some(rank));
            shared.ranks = Some((shared.ranks.map_or(rank, |(first, _)| first), rank));
        }
        shared
    }

    /// The rows between the first and the last shared one that the page lacks, with the hashes of
    /// their texts. Rows that came after the page was requested may be younger than it.
    pub fn vanished(
        &self,
        shared: &Shared,
        rows: &[Row],
        sent_after: u64,
    ) -> Vec<(i64, Option<u64>)> {
        let Some((first, last)) = shared.ranks.filter(|_| shared.inversions == 0) else {
            return Vec::new();
        };
        // Nothing is missing where the shared rows are neighbours.
        if last - first + 1 == shared.distinct {
            return Vec::new();
        }
        let shown: HashSet<i64> = rows.iter().filter_map(|row| row.id).collect();
        let mut vanished = Vec::new();
        for rank in first + 1..last {
            if let Some(id) = self.id_at(rank)
                && !shown.contains(&id)
                && let Some(place) = self.places.get(&id)
                && place.rank == rank
                && place.answer <= sent_after
            {
                vanished.push((id, place.content));
            }
        }
        vanished
    }

    /// Adds the rows of a page, which was the response of this number.
    pub fn join(&mut self, rows: &[Row], answer: u64) -> Joined {
        let shared = self.compare(rows);
        let mut near = shared.ranks.map_or(self.last_rank(), |(first, _)| first);
        let mut left = shared.unchanged;
        let length = rows.len() as u64;
        let mut after = Vec::new();
        for row in rows {
            let Some(id) = row.id else { continue };
            let place = self.places.get(&id).copied();
            if let Some(rank) = self.unchanged(row) {
                near = rank;
                left = left.saturating_sub(1);
            } else if left == 0 {
                let here = |place: &Place| near < place.rank && place.rank <= near + length;
                match place.filter(|place| after.is_empty() && here(place)) {
                    // It was edited where it is.
                    Some(place) => near = place.rank,
                    None => {
                        after.push((id, content(row)));
                        continue;
                    }
                }
            }
            let place = Place {
                rank: near,
                content: Some(content(row)),
                answer: place.map_or(answer, |place| place.answer.max(answer)),
            };
            self.places.insert(id, place);
        }
        let behind = self.last_rank() - near;
        let inserted = behind > length;
        let joined = Joined {
            appended: if inserted { 0 } else { after.len() as u64 },
            behind: if after.is_empty() || inserted {
                behind
            } else {
                0
            },
            rank: if inserted {
                near
            } else {
                near + after.len() as u64
            },
        };
        if !after.is_empty() && !inserted {
            self.cut_after(near);
        }
        for (id, content) in after {
            if inserted {
                let place = Place {
                    rank: near,
                    content: Some(content),
                    answer,
                };
                self.places.insert(id, place);
            } else {
                self.append(id, Some(content), answer);
            }
        }
        self.forget_the_oldest();
        joined
    }

    /// The rank of a row of the chain, if it is unchanged.
    fn unchanged(&self, row: &Row) -> Option<u64> {
        let place = self.places.get(&row.id?)?;
        let same = || place.content.is_none_or(|hash| hash == content(row));
        (self.by_id || same()).then_some(place.rank)
    }

    /// The rank of its last row; 0 if it is empty.
    pub fn last_rank(&self) -> u64 {
        self.forgotten + self.line.len() as u64
    }

    fn id_at(&self, rank: u64) -> Option<i64> {
        let index = rank.checked_sub(self.forgotten + 1)?;
        self.line.get(usize::try_from(index).ok()?).copied()
    }

    /// Forgets the rows after a rank: others follow it now.
    fn cut_after(&mut self, rank: u64) {
        let kept = usize::try_from(rank.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        if kept < self.line.len() {
            self.line.truncate(kept);
            self.places.retain(|_, place| place.rank <= rank);
        }
    }

    fn append(&mut self, id: i64, content: Option<u64>, answer: u64) {
        self.line.push_back(id);
        let rank = self.last_rank();
        let place = Place {
            rank,
            content,
            answer,
        };
        self.places.insert(id, place);
    }

    fn forget_the_oldest(&mut self) {
        while self.line.len() > REMEMBERED
            && let Some(id) = self.line.pop_front()
        {
            self.forgotten += 1;
            let oldest = |place: &Place| place.rank == self.forgotten;
            if self.places.get(&id).is_some_and(oldest) {
                self.places.remove(&id);
            }
        }
        // Rows that were inserted between others are not in the line.
        if self.places.len() > 2 * REMEMBERED {
            let forgotten = self.forgotten;
            self.places.retain(|_, place| place.rank > forgotten);
        }
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
