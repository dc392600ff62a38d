//! The options of calls, and their counters.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::config::{OUTAGE_PATIENCE, OUTAGE_PATIENCE_OF_A_SYNC, Options};
use crate::observer::Observer;
use backread_clock::Clock;

/// What may differ between clients that share connections.
#[derive(Debug, Clone)]
pub struct CallOptions {
    pub options: Options,
    /// Retry only 429s, and do not wait for outages.
    pub refusals_alone: bool,
    pub counts: Arc<Counts>,
    /// Receives each attempt.
    pub observer: Option<Arc<Observer>>,
    pub clock: Clock,
}

/// The counters of calls.
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
            refusals_alone: false,
            counts: Arc::default(),
            observer: None,
            clock,
        }
    }

    /// Starts new counters.
    pub fn count_anew(&mut self) {
        self.counts = Arc::default();
    }

    /// Sets the outage patience of a sync, unless the user set one.
    pub fn wait_as_a_sync(&mut self) {
        if self.options.outage_patience == OUTAGE_PATIENCE {
            self.options.outage_patience = OUTAGE_PATIENCE_OF_A_SYNC;
        }
    }

    /// Whether calls with these options can use the same gate.
    pub fn share_a_gate(&self, other: &Self) -> bool {
        self.options.max_concurrency == other.options.max_concurrency
            && self.options.rate_limit == other.options.rate_limit
            && self.clock == other.clock
    }
}
