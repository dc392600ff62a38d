//! The budget of a whole call: its deadline, and the timeout of each attempt.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;

/// The time that a whole call may take, including retries, waits and pages.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    limit: Option<(Duration, Instant)>,
}

impl Budget {
    pub fn start(deadline: Option<Duration>, clock: &Clock) -> Self {
        Self {
            // A deadline beyond the clock's range is no deadline.
            limit: deadline.and_then(|length| Some((length, clock.now().checked_add(length)?))),
        }
    }

    /// The time left; `None` without a deadline.
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

    /// The timeout of one attempt, and whether the deadline set it.
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
