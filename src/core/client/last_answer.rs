//! When a client was last answered, by its clock and by the service's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// When a response was last read successfully.
#[derive(Debug)]
pub(super) struct LastAnswer {
    made: Instant,
    /// Microseconds since then, and one; zero before the first. Not a lock, which a forked child
    /// could inherit locked.
    micros: AtomicU64,
    /// Its `Date`, in seconds since 1970; zero if it had none.
    date: AtomicU64,
}

impl LastAnswer {
    pub(super) fn new(made: Instant) -> Self {
        Self {
            made,
            micros: AtomicU64::new(0),
            date: AtomicU64::new(0),
        }
    }

    pub(super) fn note_date(&self, date: Option<SystemTime>) {
        let since = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
        self.date
            .store(since.map_or(0, |since| since.as_secs()), Ordering::Relaxed);
    }

    pub(super) fn date(&self) -> Option<SystemTime> {
        let seconds = self.date.load(Ordering::Relaxed);
        (seconds > 0).then(|| UNIX_EPOCH + Duration::from_secs(seconds))
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
