//! When a client was last answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// When a response was last read successfully.
#[derive(Debug)]
pub(super) struct LastAnswer {
    made: Instant,
    /// Microseconds since then, and one; zero before the first. Not a lock, which a forked child
    /// could inherit locked.
    micros: AtomicU64,
}

impl LastAnswer {
    pub(super) fn new(made: Instant) -> Self {
        Self {
            made,
            micros: AtomicU64::new(0),
        }
    }

    pub(super) fn note(&self, now: Instant) {
        let since = now.saturating_duration_since(self.made).as_micros();
        self.micros.store(
            u64::try_from(since).unwrap_or(u64::MAX - 1) + 1,
            Ordering::Relaxed,
        );
    }

    pub(super) fn last(&self) -> Option<Instant> {
        let since = self.micros.load(Ordering::Relaxed).checked_sub(1)?;
        self.made.checked_add(Duration::from_micros(since))
    }
}
