//! A request that the service refused.

use std::time::Duration;

use tokio::time::Instant;

/// The status by which a service refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedBy {
    /// 429.
    TooManyRequests,
    /// 503, which means "too fast" or "unhealthy".
    Unavailable,
}

/// The details of a refused request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refusal {
    pub by: RefusedBy,
    pub number: u64,
    pub sent: Instant,
    pub now: Instant,
    pub wait: Duration,
    /// The service stated exactly this wait.
    pub told: bool,
}

impl Refusal {
    /// A 429 that does not say how long to wait.
    pub fn is_unstated(&self) -> bool {
        self.by == RefusedBy::TooManyRequests && !self.told
    }
}
