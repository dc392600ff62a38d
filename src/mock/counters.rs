//! Exact counts of responses.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::routes::Route;

/// Requests by route and by status. Each request is counted before its response is sent.
#[derive(Debug, Default)]
pub struct Counters {
    routes: [AtomicU64; Route::ALL.len()],
    statuses: Mutex<BTreeMap<u16, u64>>,
}

impl Counters {
    /// Counts one response.
    pub fn count(&self, route: Route, status: u16) {
        if let Some(counter) = self.routes.get(route as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        *statuses.entry(status).or_default() += 1;
    }

    /// Resets all counts.
    pub fn clear(&self) {
        for counter in &self.routes {
            counter.store(0, Ordering::Relaxed);
        }
        self.statuses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Requests by route, including routes that had none.
    pub fn by_route(&self) -> Vec<(Route, u64)> {
        let counts = self
            .routes
            .iter()
            .map(|counter| counter.load(Ordering::Relaxed));
        Route::ALL.into_iter().zip(counts).collect()
    }

    /// Requests by response status.
    pub fn by_status(&self) -> BTreeMap<u16, u64> {
        self.statuses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
