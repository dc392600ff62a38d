//! One budget for a whole call: its deadline, and what each attempt cost.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;

/// The time that a whole call may take, its retries, waits and pages included.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    limit: Option<(Duration, Instant)>,
}

impl Budget {
    pub fn start(deadline: Option<Duration>, clock: &Clock) -> Self {
        Self {
            // A deadline past what the clock can hold is no deadline.
            limit: deadline.and_then(|length| Some((length, clock.now().checked_add(length)?))),
        }
    }

    /// What is left; `None` without a deadline.
    pub fn remaining(&self, clock: &Clock) -> Option<Duration> {
        self.limit
            .map(|(_, end)| end.saturating_duration_since(clock.now()))
    }

    /// When the call must have ended; `None` without a deadline.
    pub fn end(&self) -> Option<Instant> {
        self.limit.map(|(_, end)| end)
    }

    pub fn deadline(&self) -> Option<Duration> {
        self.limit.map(|(length, _)| length)
    }

    /// The time one attempt may take, and whether it is the deadline that ends it.
    pub fn attempt_limit(
        &self,
        timeout: Option<Duration>,
        clock: &Clock,
    ) -> (Option<Duration>, bool) {
        match (timeout, self.remaining(clock)) {
            (Some(timeout), Some(remaining)) => (Some(timeout.min(remaining)), remaining < timeout),
            (None, remaining) => (remaining, remaining.is_some()),
            (timeout, None) => (timeout, false),
        }
    }
}
