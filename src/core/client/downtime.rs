//! Outage time during one piece of work.

use std::sync::Arc;
use std::time::Duration;

use crate::outage::Outages;

/// Outage time since it was made, for work that ends with its process: it looks the outages up
/// once, where [`outage_seconds_since`](super::Client::outage_seconds_since) works in a forked child
/// too.
#[derive(Debug)]
pub struct Downtime {
    outages: Option<Arc<Outages>>,
    before: Duration,
}

impl Downtime {
    pub(super) fn new(outages: Option<Arc<Outages>>) -> Self {
        Self {
            before: total(outages.as_deref()),
            outages,
        }
    }

    pub fn seconds(&self) -> f64 {
        let since = total(self.outages.as_deref()).saturating_sub(self.before);
        since.as_secs_f64()
    }
}

fn total(outages: Option<&Outages>) -> Duration {
    outages.map_or(Duration::ZERO, Outages::total)
}
