//! The gate that all requests of a client pass: how many at once, how many a second, and none while
//! the service refuses or is down.
//!
//! A request passes the gate, is sent, and reports what came. `window.rs` decides how many may be in
//! flight, `rate.rs` when the next one may go, `unavailable.rs` whether 503 means "too fast", and
//! `outage.rs` whether the service is down; `state.rs` tells them what was reported. None of them
//! waits: the waiting is done here.

mod outage;
mod rate;
#[cfg(test)]
mod simulation;
mod state;
#[cfg(test)]
mod tests;
mod unavailable;
mod window;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use self::outage::Begun;
pub use self::outage::Patience;
use self::state::State;
use crate::retry::{Sign, Verdict};
use backread_clock::{Clock, Elapsed};

/// How many requests are sent to a service of which nothing is known: at once at first, and per second
/// after the first refusal.
const FEW: usize = 4;
/// Times that differ by no more than this are equal: timers and networks are no more precise.
const NOISE: Duration = Duration::from_millis(10);
/// Ten years: a clock can hold it, and no request waits longer.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Lets requests pass as `max_concurrency`, `rate_limit` and the service allow.
#[derive(Debug)]
pub struct Gate {
    places: Semaphore,
    /// Only one request waits for the next turn; the others wait behind it, first come first served.
    line: Semaphore,
    state: Mutex<State>,
    clock: Clock,
    waker: Arc<Waker>,
}

/// Wakes calls that wait: their clients are closed, or an outage has changed.
#[derive(Debug, Default)]
pub struct Waker {
    closed: AtomicBool,
    changed: Notify,
}

impl Waker {
    /// Closes all clients that share it.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.changed.notify_waiters();
    }
}

/// A request does not pass: the client is closed, or the call's deadline comes first; with the wait, if
/// that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late(pub Option<Duration>);

/// What a request at the gate waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Its turn, which comes no earlier than then.
    Turn(Instant),
    /// As many are under way as may be.
    Place,
    /// The next probe of an outage, or the end of its patience.
    Probe(Instant),
    /// The result of the probe that is under way, until the end of its patience.
    Result(Instant),
}

/// A failed request, as the gate sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failed {
    pub sign: Sign,
    /// The wait that the service asked for.
    pub stated: Option<Duration>,
    /// What its call does if there is no outage.
    pub verdict: Verdict,
}

/// What holds a call after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Nothing: it backs off by itself.
    No,
    /// The gate is closed for all, for this long.
    Closed(Duration),
    /// An outage, which uses up no retries; with the time until the next probe.
    Outage(Duration),
    /// An outage that has outlasted the call's patience.
    TooLong,
}

/// A request that passed, until it is over.
#[derive(Debug)]
pub struct Pass<'a> {
    gate: &'a Gate,
    permit: Option<SemaphorePermit<'a>>,
    number: u64,
    pub sent: Instant,
    /// If it probes; when it is dropped, another takes its place at once.
    probe: Option<Begun>,
}

impl Gate {
    pub fn new(
        max_concurrency: usize,
        rate_limit: Option<f64>,
        clock: Clock,
        waker: Arc<Waker>,
    ) -> Self {
        let state = State::new(max_concurrency.min(Semaphore::MAX_PERMITS), rate_limit);
        Self {
            places: Semaphore::new(state.places),
            line: Semaphore::new(1),
            state: Mutex::new(state),
            clock,
            waker,
        }
    }

    /// Waits for a place and for this request's turn, and for the end of an outage unless this request
    /// is to probe.
    ///
    /// # Errors
    /// `Late`, at once, if the wait would pass its deadline.
    pub async fn pass(&self, patience: &mut Patience) -> Result<Pass<'_>, Late> {
        let end = patience.deadline;
        let (mut place, mut line) = (None, None);
        loop {
            // Registered before the look, so that no change is missed.
            let changed = self.waker.changed.notified();
            if place.is_none() {
                place = self.places.try_acquire().ok();
            }
            let is_first = line.is_some() || self.line.available_permits() > 0;
            let may = (place.is_some(), is_first);
            let now = self.clock.now();
            self.check(now, end)?;
            let turn = self.state().turn(patience, may, now);
            match turn {
                Ok((number, probe)) => {
                    return Ok(Pass {
                        gate: self,
                        permit: place,
                        number,
                        sent: now,
                        probe,
                    });
                }
                Err(Wait::Place) => place = self.place(end).await?,
                Err(Wait::Turn(until)) if line.is_none() => {
                    self.check(until, end)?;
                    let acquired = self.clock.wait_for(self.line.acquire(), end).await;
                    line = acquired.map_err(|Elapsed| Late(None))?.ok();
                }
                Err(Wait::Turn(until)) => self.sleep_until(until, end).await?,
                Err(wait @ (Wait::Probe(until) | Wait::Result(until))) => {
                    (place, line) = (None, None);
                    if matches!(wait, Wait::Probe(_)) {
                        self.check(until, end)?;
                    }
                    let until = end.map_or(until, |end| end.min(until));
                    let _ = self.clock.wait_for(changed, Some(until)).await;
                }
            }
        }
    }

    /// Waits for a place, until `end` or until the window grows because no response comes.
    async fn place(&self, end: Option<Instant>) -> Result<Option<SemaphorePermit<'_>>, Late> {
        let silent = self.state().window.silent_until(self.clock.now());
        let until = silent.into_iter().chain(end).min();
        if let Ok(permit) = self.clock.wait_for(self.places.acquire(), until).await {
            return Ok(permit.ok());
        }
        let now = self.clock.now();
        let mut state = self.state();
        state.window.wait_no_longer(now);
        self.fit(&mut state);
        drop(state);
        self.check(now, end).map(|()| None)
    }

    /// Sleeps until then, or until the client is closed or an outage changes.
    async fn sleep_until(&self, until: Instant, end: Option<Instant>) -> Result<(), Late> {
        let changed = self.waker.changed.notified();
        self.check(until, end)?;
        tokio::select! {
            () = self.clock.sleep_until(until) => {}
            () = changed => {}
        }
        Ok(())
    }

    /// Sleeps, at most until the client is closed.
    pub async fn sleep(&self, length: Duration) {
        self.clock.record(length);
        let until = self.clock.now() + length.min(FOREVER);
        while self.clock.now() < until && self.sleep_until(until, None).await.is_ok() {}
    }

    /// Fails if the client is closed, or `end` has passed or comes before `until`.
    fn check(&self, until: Instant, end: Option<Instant>) -> Result<(), Late> {
        let now = self.clock.now();
        match end {
            _ if self.waker.closed.load(Ordering::SeqCst) => Err(Late(None)),
            Some(end) if end <= now => Err(Late(None)),
            Some(end) if end < until => Err(Late(Some(until.saturating_duration_since(now)))),
            _ => Ok(()),
        }
    }

    /// How long the service has been down, in all outages together.
    pub fn outage_time(&self) -> Duration {
        let now = self.clock.now();
        self.state().outage.total(now)
    }

    /// Records something, which may end an outage.
    fn report<T>(&self, report: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let was_down = state.outage.is_on();
        let reported = report(&mut state);
        drop(state);
        if was_down {
            self.waker.changed.notify_waiters();
        }
        reported
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fits the places to the window; surplus ones are removed as they are released.
    fn fit(&self, state: &mut State) {
        let size = state.window.size;
        if size > state.places {
            self.places.add_permits(size - state.places);
            state.places = size;
        } else {
            state.places -= self.places.forget_permits(state.places - size);
        }
    }
}

impl Pass<'_> {
    /// Whether it probes with the smallest page of users, not with the call's own request.
    pub fn is_of_users(&self) -> bool {
        self.probe.is_some_and(|probe| probe.of_users)
    }

    /// How long an outage had lasted when this began to probe, if it is the first probe; once.
    pub fn take_outage(&mut self) -> Option<Duration> {
        self.probe.as_mut()?.first_after.take()
    }

    /// Reports a response; returns how long an outage lasted that it ended.
    pub fn answered(self, now: Instant) -> Option<Duration> {
        let latency = now.saturating_duration_since(self.sent);
        self.gate
            .report(|state| state.answered(self.number, latency, now))
    }

    /// Waits for the turn of what a redirect leads to, in the same place and the same role. Its response
    /// is reported instead of the redirect.
    pub async fn again(&mut self, end: Option<Instant>) -> Result<(), Late> {
        loop {
            let now = self.gate.clock.now();
            let sent = self.gate.state().send(self.probe.is_some(), now);
            match sent {
                Ok(number) => {
                    (self.number, self.sent) = (number, now);
                    return self.gate.check(now, None);
                }
                Err(until) => self.gate.sleep_until(until, end).await?,
            }
        }
    }

    /// Reports a failure. Returns what holds its call, and how long an outage lasted that it ended.
    pub fn failed(self, failed: Failed, patience: &mut Patience) -> (Hold, Option<Duration>) {
        let now = self.gate.clock.now();
        // Before the place is free, or the next request in line would slip through.
        let report =
            |state: &mut State| state.failed(self.number, failed, self.probe, patience, now);
        let (hold, ended) = self.gate.report(report);
        if let Hold::Closed(wait) | Hold::Outage(wait) = hold {
            self.gate.clock.record(wait);
        }
        (hold, ended)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.under_way -= 1;
        self.gate.fit(&mut state);
        if state.places > state.window.size
            && let Some(permit) = self.permit.take()
        {
            permit.forget();
            state.places -= 1;
        }
        if let Some(probe) = self.probe {
            state.outage.end_probe(probe);
        }
        let is_down = state.outage.is_on();
        drop(state);
        if is_down {
            self.gate.waker.changed.notify_waiters();
        }
    }
}
