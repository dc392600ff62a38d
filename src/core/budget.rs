//! One budget for a whole call: its deadline, and what each attempt cost.

use std::time::Duration;

use tokio::time::Instant;

/// The time that a whole call may take, its retries, waits and pages included.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    limit: Option<(Duration, Instant)>,
}

impl Budget {
    pub fn start(deadline: Option<Duration>) -> Self {
        Self {
            // A deadline past what the clock can hold is no deadline.
            limit: deadline.and_then(|length| Some((length, Instant::now().checked_add(length)?))),
        }
    }

    /// What is left; `None` without a deadline.
    pub fn remaining(&self) -> Option<Duration> {
        self.limit
            .map(|(_, end)| end.saturating_duration_since(Instant::now()))
    }

    pub fn deadline(&self) -> Option<Duration> {
        self.limit.map(|(length, _)| length)
    }

    /// The time one attempt may take, and whether it is the deadline that ends it.
    pub fn attempt_limit(&self, timeout: Option<Duration>) -> (Option<Duration>, bool) {
        match (timeout, self.remaining()) {
            (Some(timeout), Some(remaining)) => (Some(timeout.min(remaining)), remaining < timeout),
            (None, remaining) => (remaining, remaining.is_some()),
            (timeout, None) => (timeout, false),
        }
    }
}
