//! The requests and responses: a ring buffer of recent ones, in addition to the exact counts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use hyper::Method;
use jiff::Timestamp;
use serde::Serialize;

use super::routes::Target;
use super::world::View;
use crate::dialect::order::Sequence;

/// The default capacity of a journal, in requests.
pub const CAPACITY: usize = 10_000;

/// How many unexpected requests are kept after the ring has dropped them.
const UNEXPECTED: usize = 1_000;

/// A request and its response.
#[derive(Clone, Debug)]
pub struct Entry {
    /// From 1, in the order of arrival at the lane.
    pub number: u64,
    /// By the lane's clock.
    pub at: SystemTime,
    pub method: Method,
    /// Path and query, as received.
    pub path: String,
    pub target: Target,
    /// The page arguments of a list; `None` for single items and malformed requests.
    pub page: Option<PageArguments>,
    /// The number of this request for the same item or page, from 1; 0 if malformed.
    pub attempt: u64,
    pub status: u16,
    /// The faults that affected the response, as written.
    pub faults: Vec<Arc<str>>,
    /// Why no client should have sent this request.
    pub unexpected: Option<&'static str>,
    /// The rows of a list as they were sent.
    pub served: Option<Served>,
}

/// An entry as the inspector and Python show it.
#[derive(Clone, Debug, Serialize)]
pub struct Description<'entry> {
    number: u64,
    /// In UTC, as in RFC 3339.
    at: String,
    method: &'entry str,
    path: &'entry str,
    route: &'static str,
    user: Option<u64>,
    message: Option<u64>,
    offset: Option<u64>,
    limit: Option<u64>,
    attempt: u64,
    status: u16,
    rows: Option<u64>,
    faults: Vec<&'entry str>,
    unexpected: Option<&'static str>,
}

impl Entry {
    #[must_use]
    pub fn describe(&self) -> Description<'_> {
        Description {
            number: self.number,
            at: Timestamp::try_from(self.at).unwrap_or_default().to_string(),
            method: self.method.as_str(),
            path: &self.path,
            route: self.target.route.name(),
            user: self.target.user,
            message: self.target.message,
            offset: self.page.map(|page| page.offset),
            limit: self.page.map(|page| page.limit),
            attempt: self.attempt,
            status: self.status,
            rows: self.served.as_ref().map(|served| served.rows),
            faults: self.faults.iter().map(AsRef::as_ref).collect(),
            unexpected: self.unexpected,
        }
    }
}

/// The arguments of a list, as applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageArguments {
    pub offset: u64,
    pub limit: u64,
}

/// The rows of a page: a range of one order at one instant of the world.
#[derive(Clone, Debug)]
pub struct Served {
    pub view: View,
    pub sequence: Sequence,
    pub first: u64,
    pub rows: u64,
    /// Whether all of it was sent: false if a fault cut it off.
    pub whole: bool,
}

impl Served {
    /// The place right after the last row.
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
    /// The last requests that no client should have sent, however many others came after them.
    unexpected: VecDeque<Entry>,
    /// The number of the last dropped entry; 0 if none was.
    forgotten: u64,
}

impl Journal {
    /// An empty journal for the last `capacity` requests.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let ring = Ring {
            entries: VecDeque::new(),
            capacity,
            numbered: 0,
            unexpected: VecDeque::new(),
            forgotten: 0,
        };
        Self {
            ring: Mutex::new(ring),
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry under the next number, which it returns; may drop the oldest.
    pub fn add(&self, mut entry: Entry) -> u64 {
        let mut ring = self.ring();
        ring.numbered += 1;
        let number = ring.numbered;
        entry.number = number;
        if entry.unexpected.is_some() {
            if ring.unexpected.len() == UNEXPECTED {
                ring.unexpected.pop_front();
            }
            ring.unexpected.push_back(entry.clone());
        }
        ring.entries.push_back(entry);
        let full = ring.entries.len() > ring.capacity;
        let oldest = if full { ring.entries.pop_front() } else { None };
        ring.forgotten = oldest.as_ref().map_or(ring.forgotten, |entry| entry.number);
        // Before the oldest entry is dropped, because it may be the last reference to an old world.
        drop(ring);
        number
    }

    /// Records that the page of an entry was sent whole after all.
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

    /// The first `most` entries after number `after`, and whether some of those were dropped.
    #[must_use]
    pub fn since(&self, after: u64, most: usize) -> (Vec<Entry>, bool) {
        let ring = self.ring();
        let entries = ring.entries.iter().filter(|entry| entry.number > after);
        let entries = entries.take(most).cloned().collect();
        (entries, after < ring.forgotten)
    }

    /// The requests after number `after` that no client should have sent: the last thousand.
    #[must_use]
    pub fn unexpected(&self, after: u64) -> Vec<Entry> {
        let ring = self.ring();
        let entries = ring.unexpected.iter();
        entries
            .filter(|entry| entry.number > after)
            .cloned()
            .collect()
    }

    /// All entries in the journal, oldest first, and whether earlier ones were dropped.
    #[must_use]
    pub fn all(&self) -> (Vec<Entry>, bool) {
        self.since(0, usize::MAX)
    }

    /// Drops all entries; numbering continues.
    pub fn clear(&self) {
        let mut ring = self.ring();
        let old = std::mem::take(&mut ring.entries);
        ring.unexpected.clear();
        ring.forgotten = 0;
        drop(ring);
        drop(old);
    }
}
