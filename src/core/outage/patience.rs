//! How long one call waits for outages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The number of outages after which a call still gets its retries back.
const MOST_OUTLASTED: u32 = 3;
/// Ten years: an `Instant` can hold it.
pub(super) const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// What one call knows about the outage it met, if any.
#[derive(Debug, Default)]
pub struct Patience {
    pub(super) most: Duration,
    /// When it met its first outage: later ones do not extend the wait.
    pub(super) since: Option<Instant>,
    /// Whether a probe was sent in the last outage.
    pub(super) confirmed: Option<Arc<AtomicBool>>,
    /// The number of the latest request sent when this call first failed.
    pub(super) failed: Option<u64>,
    /// How many outages it has met.
    pub(super) outages: u32,
    /// How often it has probed in the last outage.
    pub(super) probes: u32,
}

impl Patience {
    /// `most` is the longest that a call waits in one outage.
    pub fn new(most: Duration) -> Self {
        Self {
            most: most.min(FOREVER),
            ..Self::default()
        }
    }

    /// Whether the call does not wait for outages.
    pub fn is_none(&self) -> bool {
        self.most.is_zero()
    }

    /// Notes the outage that `confirmed` belongs to; returns until when the call waits.
    pub(super) fn meet(&mut self, outage: &Arc<AtomicBool>, now: Instant) -> Instant {
        let same = |confirmed: &Arc<_>| Arc::ptr_eq(confirmed, outage);
        if !self.confirmed.as_ref().is_some_and(same) {
            self.confirmed = Some(Arc::clone(outage));
            self.outages += 1;
            self.probes = 0;
        }
        *self.since.get_or_insert(now) + self.most
    }

    /// The patience, if it is exhausted.
    pub fn over(&self, now: Instant) -> Option<Duration> {
        self.is_over(now).then_some(self.most)
    }

    /// Whether the call has waited as long as it may.
    pub fn is_over(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| since + self.most <= now)
    }

    /// Records that an outage is over; true if the call's retries start afresh. They do not for a
    /// call that keeps failing while others are answered.
    pub fn outlast(&mut self) -> bool {
        let anew = self.outages <= MOST_OUTLASTED;
        if anew {
            self.failed = None;
        }
        anew
    }

    /// Whether the outage that the call met last was confirmed by a probe.
    pub fn was_tried(&self) -> bool {
        self.confirmed
            .as_ref()
            .is_some_and(|confirmed| confirmed.load(Ordering::Relaxed))
    }
}
