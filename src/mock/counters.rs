//! Exact counts of responses.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::routes::Route;

/// Requests by route and by status. Each request is counted before its response is sent.
#[derive(Debug, Default)]
pub struct Counters {
    counts: Mutex<BTreeMap<(Route, u16), u64>>,
}

impl Counters {
    /// Counts one response.
    pub fn count(&self, route: Route, status: u16) {
        *self.lock().entry((route, status)).or_default() += 1;
    }

    /// Resets all counts.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Requests by the name of the route, including routes that had none.
    pub fn by_route(&self) -> BTreeMap<&'static str, u64> {
        let mut routes = Route::ALL.map(|route| (route.name(), 0)).into();
        for ((route, _), count) in &*self.lock() {
            *BTreeMap::entry(&mut routes, route.name()).or_default() += count;
        }
        routes
    }

    /// Requests by response status.
    pub fn by_status(&self) -> BTreeMap<u16, u64> {
        let mut statuses = BTreeMap::new();
        for ((_, status), count) in &*self.lock() {
            *statuses.entry(*status).or_default() += count;
        }
        statuses
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Route, u16), u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
