//! What was asked and answered: a ring of the last requests, beside the exact counts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use hyper::Method;

use super::routes::Target;
use super::world::View;
use crate::mock::dialect::order::Sequence;

/// How many requests a journal keeps.
pub const CAPACITY: usize = 10_000;

/// How many unexpected requests are kept when the ring has forgotten them.
const UNEXPECTED: usize = 1_000;

/// One request and its answer.
#[derive(Clone, Debug)]
pub struct Entry {
    /// From 1 on, in the order of arrival at the lane.
    pub number: u64,
    /// By the lane's clock.
    pub at: SystemTime,
    pub method: Method,
    /// Path and query, as they came.
    pub path: String,
    pub target: Target,
    /// Where the list was asked from; `None` for single items and requests that made no sense.
    pub page: Option<Asked>,
    /// Which request for this item or page it is, from 1 on; 0 where it made no sense.
    pub attempt: u64,
    pub status: u16,
    /// The faults that bent the answer, as they were written.
    pub faults: Vec<Arc<str>>,
    /// Why no client should have sent this request.
    pub unexpected: Option<&'static str>,
    /// The rows of a list as they were sent.
    pub served: Option<Served>,
}

/// The arguments of a list, as they were applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub offset: u64,
    pub limit: u64,
}

/// Which rows a page held: a stretch of one order over one instant of the world.
#[derive(Clone, Debug)]
pub struct Served {
    pub view: View,
    pub sequence: Sequence,
    pub first: u64,
    pub rows: u64,
    /// Whether all of it was sent: false where a fault cut it off.
    pub whole: bool,
}

impl Served {
    /// The place right behind the last row.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.first + self.rows
    }
}

/// The last requests of one lane.
#[derive(Debug)]
pub struct Journal {
    ring: Mutex<Ring>,
}

#[derive(Debug)]
struct Ring {
    entries: VecDeque<Entry>,
    capacity: usize,
    /// The number given last.
    numbered: u64,
    /// The first that no client should have sent, however many came after them.
    unexpected: Vec<Entry>,
    /// The number of the last entry that made room; 0 for none.
    forgotten: u64,
}

impl Journal {
    /// An empty journal that keeps the last `capacity` requests.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let ring = Ring {
            entries: VecDeque::new(),
            capacity,
            numbered: 0,
            unexpected: Vec::new(),
            forgotten: 0,
        };
        Self {
            ring: Mutex::new(ring),
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry under the next number, and gives it; the oldest makes room.
    pub fn add(&self, mut entry: Entry) -> u64 {
        let mut ring = self.ring();
        ring.numbered += 1;
        let number = ring.numbered;
        entry.number = number;
        if entry.unexpected.is_some() && ring.unexpected.len() < UNEXPECTED {
            ring.unexpected.push(entry.clone());
        }
        ring.entries.push_back(entry);
        let full = ring.entries.len() > ring.capacity;
        let oldest = if full { ring.entries.pop_front() } else { None };
        ring.forgotten = oldest.as_ref().map_or(ring.forgotten, |entry| entry.number);
        // Before the oldest is dropped: it may be the last that holds an old world.
        drop(ring);
        number
    }

    /// Notes that the page of an entry was sent whole after all.
    pub fn sent(&self, number: u64) {
        let mut ring = self.ring();
        let place = ring.entries.partition_point(|entry| entry.number < number);
        let entry = ring.entries.get_mut(place);
        if let Some(served) = entry
            .filter(|entry| entry.number == number)
            .and_then(|entry| entry.served.as_mut())
        {
            served.whole = true;
        }
    }

    /// The number of the last entry; 0 before the first.
    #[must_use]
    pub fn last_number(&self) -> u64 {
        self.ring().numbered
    }

    /// The first `most` entries numbered above `after`, and whether some of them made room already.
    #[must_use]
    pub fn since(&self, after: u64, most: usize) -> (Vec<Entry>, bool) {
        let ring = self.ring();
        let entries = ring.entries.iter().filter(|entry| entry.number > after);
        let entries = entries.take(most).cloned().collect();
        (entries, after < ring.forgotten)
    }

    /// The requests numbered above `after` that no client should have sent: the first thousand.
    #[must_use]
    pub fn unexpected(&self, after: u64) -> Vec<Entry> {
        let ring = self.ring();
        let entries = ring.unexpected.iter();
        entries
            .filter(|entry| entry.number > after)
            .cloned()
            .collect()
    }

    /// All entries that are kept, oldest first, and whether earlier ones made room.
    #[must_use]
    pub fn all(&self) -> (Vec<Entry>, bool) {
        self.since(0, usize::MAX)
    }

    /// Forgets all entries; numbers go on.
    pub fn clear(&self) {
        let mut ring = self.ring();
        let old = std::mem::take(&mut ring.entries);
        ring.unexpected.clear();
        ring.forgotten = 0;
        drop(ring);
        drop(old);
    }
}
