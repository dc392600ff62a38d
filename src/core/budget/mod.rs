//! The budget of a whole call: its deadline, the timeout of each attempt, and what a run may spend.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;
use crate::lock;
use backread_clock::Clock;

/// The time that a whole call may take, including retries, waits and pages; as part of a run, also
/// the requests that are left.
#[derive(Debug, Clone)]
pub struct Budget {
    limit: Option<(Duration, Instant)>,
    run: Option<Arc<RunBudget>>,
}

impl Budget {
    pub fn start(deadline: Option<Duration>, clock: &Clock) -> Self {
        Self {
            // A deadline beyond the clock's range is no deadline.
            limit: deadline.and_then(|length| Some((length, clock.now().checked_add(length)?))),
            run: None,
        }
    }

    /// The same budget as part of a run, which may spend no more than this.
    #[must_use]
    pub fn within(mut self, run: Arc<RunBudget>) -> Self {
        self.run = Some(run);
        self
    }

    /// Takes one request from what the run may send; `None` if none is left.
    pub fn reserve(&self) -> Option<Reservation<'_>> {
        let run = self.run.as_deref();
        let left = run.is_none_or(RunBudget::take_request);
        left.then(|| Reservation { run })
    }

    /// Whether the run, not the deadline, limits the time of this call; then it counts as spent.
    pub fn spends_run(&self) -> bool {
        let Some(run) = &self.run else {
            return false;
        };
        let by_run = run.end.is_some_and(|end| {
            let deadline = self.limit.map(|(_, deadline)| deadline);
            deadline.is_none_or(|deadline| end < deadline)
        });
        if by_run {
            run.spent.store(true, Ordering::Relaxed);
        }
        by_run
    }

    /// The time left; `None` without a deadline.
    pub fn remaining(&self, clock: &Clock) -> Option<Duration> {
        self.end()
            .map(|end| end.saturating_duration_since(clock.now()))
    }

    /// When the call must have ended; `None` without a deadline.
    pub fn end(&self) -> Option<Instant> {
        let deadline = self.limit.map(|(_, end)| end);
        let run = self.run.as_ref().and_then(|run| run.end);
        deadline.into_iter().chain(run).min()
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

/// What one run may spend, shared by all its calls. Once it is spent the run ends early, without an
/// error.
#[derive(Debug, Default)]
pub struct RunBudget {
    /// Requests left, and how many there were; `None` for any number.
    requests: Option<(AtomicU64, u64)>,
    end: Option<Instant>,
    /// Something was not requested because the budget was spent.
    spent: AtomicBool,
    /// The last failure whose retry would have come after the end.
    stopped_by: Mutex<Option<Error>>,
}

impl RunBudget {
    pub fn start(max_requests: Option<u64>, max_time: Option<Duration>, clock: &Clock) -> Self {
        Self {
            requests: max_requests.map(|most| (AtomicU64::new(most), most)),
            // An end beyond the clock's range is no end.
            end: max_time.and_then(|length| clock.now().checked_add(length)),
            spent: AtomicBool::new(false),
            stopped_by: Mutex::default(),
        }
    }

    /// The most requests of the whole run; `None` for any number.
    pub fn most_requests(&self) -> Option<u64> {
        self.requests.as_ref().map(|(_, most)| *most)
    }

    pub fn is_limited(&self) -> bool {
        self.requests.is_some() || self.end.is_some()
    }

    /// Whether something was not requested because the budget was spent.
    pub fn was_spent(&self) -> bool {
        self.spent.load(Ordering::Relaxed)
    }

    /// What was read; `None` if the budget was spent before that, which ends the run early.
    pub fn unless_spent<T>(&self, read: Result<T, Error>) -> Result<Option<T>, Error> {
        match read {
            Err(error) if error.is_budget_spent() => {
                // It was being retried.
                if let Some(cause) = error.into_cause() {
                    *lock(&self.stopped_by) = Some(cause);
                }
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// The last failure whose retry would have come after the end.
    pub fn stopped_by(&self) -> Option<Error> {
        lock(&self.stopped_by).clone()
    }

    /// Whether more may begin; if not, the run ends early.
    pub fn has_room(&self, clock: &Clock) -> bool {
        let none_left = |(left, _): &(AtomicU64, u64)| left.load(Ordering::Relaxed) == 0;
        let over = self.requests.as_ref().is_some_and(none_left)
            || self.end.is_some_and(|end| end <= clock.now());
        if over {
            self.spent.store(true, Ordering::Relaxed);
        }
        !over
    }

    fn take_request(&self) -> bool {
        let Some((left, _)) = &self.requests else {
            return true;
        };
        let one_less = |left: u64| left.checked_sub(1);
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        if taken.is_err() {
            self.spent.store(true, Ordering::Relaxed);
        }
        taken.is_ok()
    }
}

/// A request that may be sent; it is given back if it is dropped unsent.
#[derive(Debug)]
pub struct Reservation<'a> {
    run: Option<&'a RunBudget>,
}

impl Reservation<'_> {
    /// The request is being sent.
    pub fn spend(mut self) {
        self.run = None;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if let Some((left, _)) = self.run.and_then(|run| run.requests.as_ref()) {
            left.fetch_add(1, Ordering::Relaxed);
        }
    }
}
