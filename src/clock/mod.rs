//! The time that the client and the mock go by: the machine's, or a virtual one.
//!
//! Virtual time stands still while anything real is under way, and leaps to the next deadline when
//! nothing else can happen: when no call of a client is at work, each exchange that is under way
//! waits for an answer that is held back, and nothing has changed for a moment. So a Retry-After of
//! a minute takes milliseconds, a stalled answer makes a timeout fire in as many, and an exchange
//! that gets on never times out because somebody else waits.
//!
//! `mod.rs` is what others use, `switch.rs` the time and who waits for it, `leap.rs` when it leaps.

mod leap;
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

// Ten years: an instant can hold it, and nobody waits for more.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A time to go by; clones go by the same. The default is the machine's, and cannot be switched.
///
/// In a forked child a clock that can be switched is the machine's time as well: nobody there
/// would move it.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<Switch>>);

/// A call under way; see `Clock::call`.
#[derive(Debug)]
pub struct Call<'a>(#[allow(dead_code)] Option<Registered<'a>>);

/// What was to be done in time was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the time is up")]
pub struct Elapsed;

/// Why a clock was not moved by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MoveError {
    #[error("this clock shows the machine's time, which cannot be moved; make it virtual first")]
    Real,
    #[error("a clock cannot hold a time so far ahead")]
    TooFar,
}

/// What the wall shows where virtual time starts unless told: 2026-01-01T00:00:00Z.
pub fn virtual_start() -> SystemTime {
    SystemTime::UNIX_EPOCH + VIRTUAL_START
}

impl Clock {
    /// The machine's time, at no cost; it cannot be switched.
    pub fn real() -> Self {
        Self(None)
    }

    /// The machine's time until it is made virtual.
    pub fn switchable() -> Self {
        Self(Some(Arc::new(Switch::new())))
    }

    /// Virtual time from here on: the wall shows `start` and time passes by leaps alone.
    ///
    /// Waits under way go on with what was left of them. No effect on a clock that cannot be switched.
    pub fn make_virtual(&self, start: SystemTime) {
        if let Some(switch) = self.switch() {
            switch.make_virtual(start);
        }
    }

    /// The machine's time from here on; waits under way go on with what was left of them.
    pub fn make_real(&self) {
        if let Some(switch) = self.switch() {
            switch.make_real();
        }
    }

    pub fn is_virtual(&self) -> bool {
        self.switch().is_some_and(|switch| switch.is_virtual())
    }

    /// Never earlier than before, also where the clock was switched in between.
    pub fn now(&self) -> Instant {
        self.switch()
            .map_or_else(Instant::now, |switch| switch.now())
    }

    /// The date and time.
    pub fn wall(&self) -> SystemTime {
        self.switch()
            .map_or_else(SystemTime::now, |switch| switch.wall())
    }

    /// A call of a client's is under way until this is dropped: it is at work while it neither
    /// sleeps nor waits for an answer or within a bound, and time does not leap meanwhile.
    pub fn call(&self) -> Call<'_> {
        Call(
            self.switch()
                .map(|switch| switch.register(Kind::Call, None, None)),
        )
    }

    /// A wait of a client's own between two requests; recorded in `slept` when it begins.
    pub async fn sleep(&self, length: Duration) {
        self.record(length);
        self.sleep_until(self.after(length)).await;
    }

    /// As `sleep`, and not recorded: many may wait for one instant, which one of them was asked for.
    pub async fn sleep_until(&self, end: Instant) {
        match self.switch() {
            None => time::sleep_until(end).await,
            Some(switch) => switch.register(Kind::Wait, Some(end), None).due().await,
        }
    }

    /// One request under way, and the time that it may take.
    ///
    /// A server that does not go by this clock may be slow: a `limit` also holds by the machine's
    /// time, where it is five seconds at least.
    ///
    /// # Errors
    /// `Elapsed` where the limit passed; the future is dropped.
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

    /// A wait for something else than time or an answer, such as another call's end, that ends at
    /// `end` at the latest.
    ///
    /// # Errors
    /// `Elapsed` where the end came first; the future is dropped.
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
        // What need not be waited for is no wait, however long the processor is elsewhere.
        let first = future::poll_fn(|context| Poll::Ready(wait.as_mut().poll(context))).await;
        if let Poll::Ready(output) = first {
            return Ok(output);
        }
        let limit = end.map(|end| end.saturating_duration_since(switch.now()));
        let bounded = switch.register(Kind::Limit, end, limit);
        tokio::select! {
            biased;
            output = &mut wait => Ok(output),
            () = bounded.due() => Err(Elapsed),
        }
    }

    /// The mock holds an answer back; without a length for ever, until it is dropped. Not recorded.
    pub async fn hold(&self, length: Option<Duration>) {
        match (self.switch(), length) {
            (None, None) => future::pending().await,
            (None, Some(length)) => time::sleep(length).await,
            (Some(switch), length) => {
                let end = length.map(|length| self.after(length));
                switch.register(Kind::Hold, end, None).due().await;
            }
        }
    }

    /// Moves virtual time by hand; all that is due then wakes.
    ///
    /// # Errors
    /// Where it shows the machine's time, and where no instant is so far ahead.
    pub fn advance(&self, length: Duration) -> Result<(), MoveError> {
        self.switch().ok_or(MoveError::Real)?.advance(length)
    }

    /// Notes a wait that begins, without waiting.
    pub fn record(&self, length: Duration) {
        if let Some(switch) = self.switch() {
            switch.record(length);
        }
    }

    /// The waits recorded, as they were asked for, in the order they began; the last 10,000.
    pub fn slept(&self) -> Vec<Duration> {
        self.switch().map_or_else(Vec::new, |switch| switch.slept())
    }

    fn after(&self, length: Duration) -> Instant {
        self.now() + length.min(LONGEST)
    }

    fn switch(&self) -> Option<&Arc<Switch>> {
        self.0.as_ref().filter(|switch| switch.is_of_this_process())
    }
}
