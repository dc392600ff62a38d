//! How far a run has come.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::api::LARGEST_LIMIT;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Requests sent so far, including retries.
    pub requests: u64,
    /// How many users there are, as the service last said.
    pub users_total: Option<i64>,
    /// Lists to read, including finished ones; an estimate until all users are known.
    pub lists_total: Option<u64>,
    /// Lists emitted to their end, in this run or before it was resumed.
    pub lists_done: u64,
    /// How long the service was down during this run.
    pub outage_seconds: f64,
}

/// Counters that the parts of a run share.
#[derive(Debug)]
pub struct ProgressCounters {
    /// -1 if the service gave none.
    users_total: AtomicI64,
    users_known: AtomicBool,
    lists: AtomicU64,
    lists_done: AtomicU64,
    page_rows: AtomicU64,
}

impl Default for ProgressCounters {
    fn default() -> Self {
        Self {
            users_total: AtomicI64::new(-1),
            users_known: AtomicBool::new(false),
            lists: AtomicU64::new(0),
            lists_done: AtomicU64::new(0),
            page_rows: AtomicU64::new(LARGEST_LIMIT.into()),
        }
    }
}

impl ProgressCounters {
    pub fn users_total(&self) -> Option<i64> {
        let total = self.users_total.load(Ordering::Relaxed);
        (total >= 0).then_some(total)
    }

    pub fn set_users_total(&self, total: Option<i64>) {
        self.users_total
            .store(total.unwrap_or(-1), Ordering::Relaxed);
    }

    /// Records that all users of the run are known.
    pub fn set_users_known(&self) {
        self.users_known.store(true, Ordering::Relaxed);
    }

    pub fn set_lists(&self, lists: u64) {
        self.lists.store(lists, Ordering::Relaxed);
    }

    pub fn add_lists_done(&self, lists: u64) {
        self.lists_done.fetch_add(lists, Ordering::Relaxed);
    }

    /// The largest page that the service was seen to return.
    pub fn page_rows(&self) -> u64 {
        self.page_rows.load(Ordering::Relaxed)
    }

    /// Records the limit that a full page reports.
    pub fn note_page_rows(&self, applied: u64) {
        self.page_rows.fetch_min(applied.max(1), Ordering::Relaxed);
    }

    pub fn progress(&self, requests: u64, outage_seconds: f64) -> Progress {
        let lists = self.lists.load(Ordering::Relaxed);
        let users_total = self.users_total();
        let estimate = users_total.and_then(|total| u64::try_from(total).ok());
        let lists_total = if self.users_known.load(Ordering::Relaxed) {
            Some(lists)
        } else {
            estimate.map(|estimate| estimate.max(lists))
        };
        Progress {
            requests,
            users_total,
            lists_total,
            lists_done: self.lists_done.load(Ordering::Relaxed),
            outage_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_as_many_as_the_users_until_these_are_known() {
        let counters = ProgressCounters::default();
        assert_eq!(counters.progress(0, 0.0).lists_total, None);
        counters.set_users_total(Some(5_000));
        counters.set_lists(99);
        assert_eq!(counters.progress(0, 0.0).lists_total, Some(5_000));
        counters.set_lists(4_990);
        counters.set_users_known();
        assert_eq!(counters.progress(0, 0.0).lists_total, Some(4_990));
    }
}
