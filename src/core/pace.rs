//! The pace that all requests of a client share: how many at once, how many a second.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::clock::{Clock, Elapsed};

// Ten years: a clock can hold it, and nobody waits for more.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Admits requests one after another, as `max_concurrency` and `rate_limit` allow.
#[derive(Debug)]
pub struct Pace {
    places: Semaphore,
    /// The time between two requests; none without a `rate_limit`.
    interval: Duration,
    next: Mutex<Option<Instant>>,
    clock: Clock,
}

/// A place among the requests under way; given back when dropped.
#[derive(Debug)]
pub struct Admission<'a>(#[allow(dead_code)] Option<SemaphorePermit<'a>>);

impl Pace {
    pub fn new(max_concurrency: usize, rate_limit: Option<f64>, clock: Clock) -> Self {
        Self {
            places: Semaphore::new(max_concurrency.min(Semaphore::MAX_PERMITS)),
            interval: rate_limit.map_or(Duration::ZERO, |rate| {
                Duration::try_from_secs_f64(rate.recip()).map_or(LONGEST, |wait| wait.min(LONGEST))
            }),
            next: Mutex::new(None),
            clock,
        }
    }

    /// Waits for a place and for this request's turn; the error is the wait that would take longer
    /// than `remaining`, which is not begun.
    pub async fn admit(&self, remaining: Option<Duration>) -> Result<Admission<'_>, Duration> {
        // A deadline past what the clock can hold is no deadline.
        let end = remaining.and_then(|remaining| self.clock.now().checked_add(remaining));
        let permit = match self.clock.wait_for(self.places.acquire(), end).await {
            Ok(permit) => permit.ok(),
            Err(Elapsed) => return Err(remaining.unwrap_or_default()),
        };
        // A turn is taken only when it has come: a call that is dropped while it waits holds none.
        while let Some(turn) = self.take_turn() {
            if end.is_some_and(|end| turn > end) {
                return Err(turn.saturating_duration_since(self.clock.now()));
            }
            self.clock.sleep_until(turn).await;
        }
        Ok(Admission(permit))
    }

    /// Takes the turn if it has come, else says when it may.
    fn take_turn(&self) -> Option<Instant> {
        let now = self.clock.now();
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = next.filter(|turn| *turn > now) {
            return Some(turn);
        }
        *next = match self.interval.is_zero() {
            true => None,
            // Not from now, or every late wake-up would lower the rate.
            false => next
                .filter(|turn| *turn + self.interval > now)
                .unwrap_or(now)
                .checked_add(self.interval),
        };
        None
    }

    /// Holds all requests back until `wait` from now: the service asked one of them for it. The
    /// clock records it once, however many it holds.
    pub fn hold(&self, wait: Duration) {
        self.clock.record(wait);
        let until = self.clock.now() + wait.min(LONGEST);
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next = Some(next.map_or(until, |next| next.max(until)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_are_spaced_by_the_rate_limit() {
        let pace = Pace::new(16, Some(10.0), Clock::real());
        let start = Instant::now();
        for _ in 0..11 {
            let _place = pace.admit(None).await.unwrap();
        }
        assert_eq!(start.elapsed().as_millis(), 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_one_was_asked_for_holds_all() {
        let pace = Pace::new(16, None, Clock::real());
        let start = Instant::now();
        pace.hold(Duration::from_secs(30));
        let refused = pace.admit(Some(Duration::from_secs(10))).await.unwrap_err();
        assert_eq!(refused.as_secs(), 30);
        let _place = pace.admit(None).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_comes_too_late_is_left_to_others() {
        let pace = Pace::new(16, Some(1.0), Clock::real());
        let start = Instant::now();
        let _first = pace.admit(None).await.unwrap();
        let too_late = pace.admit(Some(Duration::from_millis(100))).await;
        assert_eq!(too_late.unwrap_err().as_millis(), 1000);
        let _second = pace.admit(None).await.unwrap();
        assert_eq!(start.elapsed().as_millis(), 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_dropped_while_it_waits_takes_no_turn() {
        let pace = Pace::new(16, Some(1.0), Clock::real());
        let start = Instant::now();
        let _first = pace.admit(None).await.unwrap();
        for _ in 0..10 {
            let dropped = tokio::time::timeout(Duration::from_millis(1), pace.admit(None)).await;
            assert!(dropped.is_err());
        }
        let _second = pace.admit(None).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_under_way_than_allowed() {
        let pace = Pace::new(2, None, Clock::real());
        let first = pace.admit(None).await.unwrap();
        let _second = pace.admit(None).await.unwrap();
        let third = tokio::time::timeout(Duration::from_secs(1), pace.admit(None)).await;
        assert!(third.is_err());
        drop(first);
        let _third = pace.admit(None).await.unwrap();
    }
}
