//! The options of calls, what is counted of them, and when one was last answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::config::{OUTAGE_PATIENCE, OUTAGE_PATIENCE_OF_A_SYNC, Options};
use crate::observer::Observer;
use backread_clock::Clock;

/// What the calls of one client may have of their own.
#[derive(Debug, Clone)]
pub struct CallOptions {
    pub options: Options,
    pub retries: Retries,
    pub counts: Arc<Counts>,
    /// Each attempt is reported to it.
    pub observer: Option<Arc<Observer>>,
    pub clock: Clock,
}

/// What is retried, up to `max_retries` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retries {
    All,
    /// Only 429s; outages are not waited for.
    OfRefusals,
}

/// What is counted of calls.
#[derive(Debug, Default)]
pub struct Counts {
    /// Requests, including retries.
    pub sent: AtomicU64,
    /// Places that were not valid Unicode.
    pub repaired_text: AtomicU64,
}

impl CallOptions {
    pub fn new(options: Options, clock: Clock) -> Self {
        Self {
            options,
            retries: Retries::All,
            counts: Arc::default(),
            observer: None,
            clock,
        }
    }

    /// Counts requests and repaired text anew.
    pub fn count_anew(&mut self) {
        self.counts = Arc::default();
    }

    /// Waits as long in an outage as a sync does, unless the user set the patience.
    pub fn wait_as_a_sync(&mut self) {
        if self.options.outage_patience == OUTAGE_PATIENCE {
            self.options.outage_patience = OUTAGE_PATIENCE_OF_A_SYNC;
        }
    }

    /// Whether calls with these options may pass the same gate.
    pub fn share_a_gate(&self, other: &Self) -> bool {
        self.options.max_concurrency == other.options.max_concurrency
            && self.options.rate_limit == other.options.rate_limit
            && self.clock == other.clock
    }
}

/// When a response was last read successfully.
#[derive(Debug)]
pub struct LastAnswer {
    made: Instant,
    /// Microseconds since then, and one; zero before the first. Not a lock, which a forked child
    /// could inherit locked.
    micros: AtomicU64,
    /// Its `Date`, in seconds since 1970; zero if it had none.
    date: AtomicU64,
}

impl LastAnswer {
    pub fn new(made: Instant) -> Self {
        Self {
            made,
            micros: AtomicU64::new(0),
            date: AtomicU64::new(0),
        }
    }

    pub fn note_date(&self, date: Option<SystemTime>) {
        let since = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
        self.date
            .store(since.map_or(0, |since| since.as_secs()), Ordering::Relaxed);
    }

    pub fn date(&self) -> Option<SystemTime> {
        let seconds = self.date.load(Ordering::Relaxed);
        (seconds > 0).then(|| UNIX_EPOCH + Duration::from_secs(seconds))
    }

    pub fn note(&self, now: Instant) {
        let since = now.saturating_duration_since(self.made).as_micros();
        self.micros.store(
            u64::try_from(since).unwrap_or(u64::MAX - 1) + 1,
            Ordering::Relaxed,
        );
    }

    pub fn last(&self) -> Option<Instant> {
        let since = self.micros.load(Ordering::Relaxed).checked_sub(1)?;
        self.made.checked_add(Duration::from_micros(since))
    }
}
