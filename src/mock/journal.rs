//! The requests and responses: a ring buffer of recent ones, and exact counts of all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::SystemTime;

use hyper::Method;
use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::lock;
use super::routes::{Route, Target};
use super::world::View;
use crate::dialect::order::Sequence;

/// The default capacity of a journal, in requests.
pub const CAPACITY: usize = 10_000;

/// How many unexpected requests are kept after the ring has dropped them.
const UNEXPECTED: usize = 1_000;

/// A request and its response. The inspector and Python show it as it serializes.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// From 1, in the order of arrival at the lane.
    pub number: u64,
    /// By the lane's clock; shown in UTC, as in RFC 3339.
    #[serde(serialize_with = "show_time")]
    pub at: SystemTime,
    #[serde(serialize_with = "show_method")]
    pub method: Method,
    /// Path and query, as received.
    pub path: String,
    #[serde(flatten)]
    pub target: Target,
    /// The number of this request for the same item or page, from 1; 0 if malformed.
    pub attempt: u64,
    pub status: u16,
    /// The faults that affected the response, as written.
    pub faults: Vec<String>,
    /// Why no client should have sent this request.
    pub unexpected: Option<&'static str>,
    /// The rows of a list as they were sent; only their number is shown.
    #[serde(rename = "rows", serialize_with = "show_rows")]
    pub served: Option<Served>,
}

fn show_time<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Timestamp::try_from(*at).unwrap_or_default())
}

fn show_method<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.as_str())
}

fn show_rows<S: Serializer>(served: &Option<Served>, serializer: S) -> Result<S::Ok, S::Error> {
    served
        .as_ref()
        .map(|served| served.rows)
        .serialize(serializer)
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
    pub const fn end(&self) -> u64 {
        self.first + self.rows
    }
}

/// The last requests of one lane.
#[derive(Debug)]
pub struct Journal {
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<Entry>,
    capacity: usize,
    /// The number given last.
    numbered: u64,
    /// The last requests that no client should have sent, however many others came after them.
    unexpected: VecDeque<Entry>,
    /// The number of the last dropped entry; 0 if none was.
    forgotten: u64,
    /// How many responses each route had with each status.
    counts: BTreeMap<(Route, u16), u64>,
}

impl Journal {
    /// An empty journal for the last `capacity` requests.
    pub fn new(capacity: usize) -> Self {
        let ring = Ring {
            capacity,
            ..Ring::default()
        };
        Self {
            ring: Mutex::new(ring),
        }
    }

    /// Counts an entry and adds it under the next number, which it returns; may drop the oldest.
    pub fn add(&self, mut entry: Entry) -> u64 {
        let mut ring = lock(&self.ring);
        ring.numbered += 1;
        let number = ring.numbered;
        entry.number = number;
        let count = (entry.target.route, entry.status);
        *ring.counts.entry(count).or_default() += 1;
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
        let mut ring = lock(&self.ring);
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
    pub fn last_number(&self) -> u64 {
        lock(&self.ring).numbered
    }

    /// The first `most` entries after number `after`, and whether some of those were dropped.
    pub fn since(&self, after: u64, most: usize) -> (Vec<Entry>, bool) {
        let ring = lock(&self.ring);
        let entries = ring.entries.iter().filter(|entry| entry.number > after);
        let entries = entries.take(most).cloned().collect();
        (entries, after < ring.forgotten)
    }

    /// The requests after number `after` that no client should have sent: the last thousand.
    pub fn unexpected(&self, after: u64) -> Vec<Entry> {
        let ring = lock(&self.ring);
        let entries = ring.unexpected.iter().filter(|entry| entry.number > after);
        entries.cloned().collect()
    }

    /// Requests by the name of the route, including routes that had none. Each request is counted
    /// before its response is sent.
    pub fn routes(&self) -> BTreeMap<&'static str, u64> {
        let mut routes = Route::ALL.map(|route| (route.name(), 0)).into();
        for ((route, _), count) in &lock(&self.ring).counts {
            *BTreeMap::entry(&mut routes, route.name()).or_default() += count;
        }
        routes
    }

    /// Requests by response status.
    pub fn statuses(&self) -> BTreeMap<u16, u64> {
        let mut statuses = BTreeMap::new();
        for ((_, status), count) in &lock(&self.ring).counts {
            *statuses.entry(*status).or_default() += count;
        }
        statuses
    }

    /// Drops all entries and counts; numbering continues.
    pub fn clear(&self) {
        let mut ring = lock(&self.ring);
        let old = std::mem::take(&mut ring.entries);
        ring.unexpected.clear();
        ring.counts.clear();
        ring.forgotten = 0;
        drop(ring);
        drop(old);
    }
}
