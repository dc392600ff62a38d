//! The clock of the client and the mock: real time, or virtual time.
//!
//! Virtual time stops while anything real is in progress, and leaps to the next deadline when nothing
//! else can happen: no call of a client is running code, the mock delays the response to every
//! exchange in progress, and nothing has changed for a moment. So a Retry-After of a minute takes
//! milliseconds, a stalled response triggers its timeout as quickly, and an exchange that makes
//! progress never times out because of another's wait.
//!
//! `lib.rs` is the interface, `switch.rs` holds the time and its waiters and decides when to leap.

mod switch;
#[cfg(test)]
mod tests;

use std::future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use thiserror::Error;
use tokio::time::{self, Instant};

use self::switch::{Kind, Registered, Switch};

// 2026-01-01T00:00:00Z
const VIRTUAL_START: Duration = Duration::from_secs(1_767_225_600);

// Ten years: an `Instant` can represent it, and no real wait is longer.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A clock; clones show the same time. The default shows real time and cannot be switched.
///
/// In a forked child, a switchable clock shows real time: no thread there would advance it.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<Switch>>);

/// Clones are equal, and all clocks that show real time.
impl PartialEq for Clock {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

/// A call in progress; see `Clock::call`.
#[derive(Debug)]
pub struct Call<'a>(#[allow(dead_code)] Option<Registered<'a>>);

/// The time limit passed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the time is up")]
pub struct Elapsed;

/// Why a clock could not be advanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MoveError {
    #[error("this clock shows real time, which cannot be moved; make it virtual first")]
    Real,
    #[error("a clock advances by at most ten years at once")]
    TooFar,
}

/// The default date and time at which virtual time starts: 2026-01-01T00:00:00Z.
pub fn virtual_start() -> SystemTime {
    SystemTime::UNIX_EPOCH + VIRTUAL_START
}

impl Clock {
    /// Real time, at no cost; it cannot be switched.
    pub fn real() -> Self {
        Self(None)
    }

    /// Real time until it is made virtual.
    pub fn switchable() -> Self {
        Self(Some(Arc::new(Switch::new())))
    }

    /// Switches to virtual time, which starts at `start` and advances only by leaps.
    ///
    /// Waits in progress continue with their remaining time. Does nothing if the clock cannot be
    /// switched.
    pub fn make_virtual(&self, start: SystemTime) {
        if let Some(switch) = self.switch() {
            switch.make_virtual(start);
        }
    }

    /// Switches to real time; waits in progress continue with their remaining time.
    pub fn make_real(&self) {
        if let Some(switch) = self.switch() {
            switch.make_real();
        }
    }

    pub fn is_virtual(&self) -> bool {
        self.switch()
            .is_some_and(|switch| switch.state().is_virtual())
    }

    /// The monotonic time: never earlier than before, even if the clock was switched in between.
    pub fn now(&self) -> Instant {
        self.switch()
            .map_or_else(Instant::now, |switch| switch.state().now())
    }

    /// The date and time.
    pub fn wall(&self) -> SystemTime {
        self.switch()
            .map_or_else(SystemTime::now, |switch| switch.state().wall())
    }

    /// Registers a client's call until the guard is dropped. Time does not leap while a call runs
    /// code, that is, while it neither sleeps nor waits for a response or within a limit.
    pub fn call(&self) -> Call<'_> {
        Call(
            self.switch()
                .map(|switch| switch.register(Kind::Call, None, None)),
        )
    }

    /// A client's wait between two requests; recorded in `slept` when it begins.
    pub async fn sleep(&self, length: Duration) {
        self.record(length);
        self.sleep_until(self.after(length)).await;
    }

    /// Sleeps while no call of the caller is running. The sleep itself counts as a call; otherwise
    /// time could leap while another call runs code.
    pub async fn sleep_between_calls(&self, length: Duration) {
        let _call = self.call();
        self.sleep(length).await;
    }

    /// The same as `sleep`, but not recorded: many calls may share the wait that one of them caused.
    pub async fn sleep_until(&self, end: Instant) {
        match self.switch() {
            None => time::sleep_until(end).await,
            Some(switch) => switch.register(Kind::Wait, Some(end), None).due().await,
        }
    }

    /// Runs one exchange with a server, within a time limit.
    ///
    /// A server that does not use this clock may be slow, so the limit also applies in real time,
    /// where it is at least five seconds.
    ///
    /// # Errors
    /// `Elapsed` if the limit passed; the future is dropped.
    pub async fn exchange<F: Future>(
        &self,
        limit: Option<Duration>,
        exchange: F,
    ) -> Result<F::Output, Elapsed> {
        let Some(switch) = self.switch() else {
            return match limit {
                None => Ok(exchange.await),
                Some(limit) => time::timeout(limit, exchange).await.map_err(|_| Elapsed),
            };
        };
        let end = limit.map(|limit| self.after(limit));
        let under_way = switch.register(Kind::Exchange, end, limit);
        tokio::select! {
            biased;
            output = exchange => Ok(output),
            () = under_way.due() => Err(Elapsed),
        }
    }

    /// Waits for something other than time or a response, such as the end of another call, until
    /// `end` at the latest.
    ///
    /// # Errors
    /// `Elapsed` if `end` came first; the future is dropped.
    pub async fn wait_for<F: Future>(
        &self,
        wait: F,
        end: Option<Instant>,
    ) -> Result<F::Output, Elapsed> {
        let Some(switch) = self.switch() else {
            return match end {
                None => Ok(wait.await),
                Some(end) => time::timeout_at(end, wait).await.map_err(|_| Elapsed),
            };
        };
        let mut wait = pin!(wait);
        // Something that is ready now is no wait, even if this thread is not scheduled for a while.
        let first = future::poll_fn(|context| Poll::Ready(wait.as_mut().poll(context))).await;
        if let Poll::Ready(output) = first {
            return Ok(output);
        }
        let limit = end.map(|end| end.saturating_duration_since(self.now()));
        let bounded = switch.register(Kind::Limit, end, limit);
        tokio::select! {
            biased;
            output = &mut wait => Ok(output),
            () = bounded.due() => Err(Elapsed),
        }
    }

    /// Delays a response of the mock; without a length until the future is dropped. Not recorded.
    pub async fn hold(&self, length: Option<Duration>) {
        match (self.switch(), length.map(|length| self.after(length))) {
            (None, None) => future::pending().await,
            (None, Some(end)) => time::sleep_until(end).await,
            (Some(switch), end) => switch.register(Kind::Hold, end, None).due().await,
        }
    }

    /// Advances virtual time and wakes all waits that are then due.
    ///
    /// # Errors
    /// `Real` if the clock shows real time, `TooFar` if the length is more than ten years.
    pub fn advance(&self, length: Duration) -> Result<(), MoveError> {
        self.switch().ok_or(MoveError::Real)?.advance(length)
    }

    /// Records the start of a wait, without waiting.
    pub fn record(&self, length: Duration) {
        if let Some(switch) = self.switch() {
            switch.state().record(length);
        }
    }

    /// The last 10,000 recorded waits with their requested lengths, in the order of their start.
    pub fn slept(&self) -> Vec<Duration> {
        self.switch()
            .map_or_else(Vec::new, |switch| switch.state().slept())
    }

    fn after(&self, length: Duration) -> Instant {
        self.now() + length.min(LONGEST)
    }

    fn switch(&self) -> Option<&Arc<Switch>> {
        self.0.as_ref().filter(|switch| switch.is_of_this_process())
    }
}
