//! The options of calls, and what is counted of them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::config::{OUTAGE_PATIENCE, OUTAGE_PATIENCE_OF_A_SYNC, Options};
use crate::observer::Observer;
use backread_clock::Clock;

/// What the calls of one client may have of their own.
#[derive(Debug, Clone)]
pub struct CallOptions {
    pub options: Options,
    /// Only 429s are retried, and outages are not waited for.
    pub refusals_alone: bool,
    pub counts: Arc<Counts>,
    /// Each attempt is reported to it.
    pub observer: Option<Arc<Observer>>,
    pub clock: Clock,
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
            refusals_alone: false,
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
