//! The gate that all requests of a client pass: how many at once, how many a second, and none while
//! the service refuses or is down.
//!
//! A request passes the gate, is sent, and reports its response. `window.rs` decides how many may be in
//! flight, `rate.rs` when the next one may be sent, `unavailable.rs` whether 503 means "too fast", and
//! `outage.rs` whether the service is down; `state.rs` passes the reports to them. Requests wait only
//! in this file.

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
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::Instant;

pub use self::outage::Patience;
use self::outage::Probe;
use self::state::State;
use crate::lock;
use crate::retry::{Sign, Verdict};
use backread_clock::{Clock, Elapsed};

/// A cautious start: the number of requests in flight at first, and per second after the first refusal.
const FEW: usize = 4;
/// Smaller differences between times are ignored: timers and networks are no more precise.
const NOISE: Duration = Duration::from_millis(10);
/// Ten years, which an `Instant` can represent. Longer waits are cut to this.
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

/// Wakes waiting calls when their clients are closed or an outage changes.
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

/// The request was not admitted: the client is closed, or the wait, if it is known, exceeds the
/// deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAdmitted(pub Option<Duration>);

/// What a request at the gate waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Its turn, at this time or later.
    Turn(Instant),
    /// A place: the maximum number of requests is in flight.
    Place,
    /// The next probe of an outage, or the end of its patience.
    NextProbe(Instant),
    /// The result of the probe in flight, or the end of its patience.
    ProbeResult(Instant),
}

/// A failed request, as the gate sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failed {
    pub sign: Sign,
    /// The wait that the service asked for.
    pub stated: Option<Duration>,
    /// What the call does if there is no outage.
    pub verdict: Verdict,
}

/// What delays a call after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Nothing but its own backoff.
    No,
    /// The gate is closed to all requests for this long.
    Closed(Duration),
    /// An outage, which costs no retry; the time until the next probe.
    Outage(Duration),
    /// An outage that lasted longer than the call's patience.
    TooLong,
}

/// An admitted request, until its response is reported.
#[derive(Debug)]
pub struct Pass<'a> {
    gate: &'a Gate,
    permit: Option<SemaphorePermit<'a>>,
    number: u64,
    pub sent: Instant,
    /// Set if it probes. If it is dropped, another request probes at once.
    probe: Option<Probe>,
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
    /// is selected to probe.
    ///
    /// # Errors
    /// `NotAdmitted`, at once, if the wait would pass its deadline.
    pub async fn pass(&self, patience: &mut Patience) -> Result<Pass<'_>, NotAdmitted> {
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
                    line = acquired.map_err(|Elapsed| NotAdmitted(None))?.ok();
                }
                Err(Wait::Turn(until)) => self.sleep_until(until, end).await?,
                Err(wait @ (Wait::NextProbe(until) | Wait::ProbeResult(until))) => {
                    (place, line) = (None, None);
                    if matches!(wait, Wait::NextProbe(_)) {
                        self.check(until, end)?;
                    }
                    let until = end.map_or(until, |end| end.min(until));
                    let _ = self.clock.wait_for(changed, Some(until)).await;
                }
            }
        }
    }

    /// Waits for a place, until `end` or until the window grows because no response comes.
    async fn place(
        &self,
        end: Option<Instant>,
    ) -> Result<Option<SemaphorePermit<'_>>, NotAdmitted> {
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

    /// Sleeps until `until`, until the client is closed, or until an outage changes.
    async fn sleep_until(&self, until: Instant, end: Option<Instant>) -> Result<(), NotAdmitted> {
        let changed = self.waker.changed.notified();
        self.check(until, end)?;
        tokio::select! {
            () = self.clock.sleep_until(until) => {}
            () = changed => {}
        }
        Ok(())
    }

    /// Sleeps for `length`, or until the client is closed.
    pub async fn sleep(&self, length: Duration) {
        self.clock.record(length);
        let until = self.clock.now() + length.min(FOREVER);
        while self.clock.now() < until && self.sleep_until(until, None).await.is_ok() {}
    }

    /// Fails if the client is closed, or `end` has passed or comes before `until`.
    fn check(&self, until: Instant, end: Option<Instant>) -> Result<(), NotAdmitted> {
        let now = self.clock.now();
        match end {
            _ if self.waker.closed.load(Ordering::SeqCst) => Err(NotAdmitted(None)),
            Some(end) if end <= now => Err(NotAdmitted(None)),
            Some(end) if end < until => {
                Err(NotAdmitted(Some(until.saturating_duration_since(now))))
            }
            _ => Ok(()),
        }
    }

    /// How long the service has been down, in all outages together.
    pub fn outage_time(&self) -> Duration {
        let now = self.clock.now();
        self.state().outage.total(now)
    }

    /// Applies a report. It may end an outage, so waiting calls check again.
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
        lock(&self.state)
    }

    /// Adjusts the places to the window; surplus ones are removed when they are released.
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
    /// Whether it requests the smallest page of users instead of the call's own URL.
    pub fn is_for_users(&self) -> bool {
        self.probe.is_some_and(|probe| probe.for_users)
    }

    /// How long the outage had lasted when its first probe was sent. Only that probe returns it, once.
    pub fn take_outage_delay(&mut self) -> Option<Duration> {
        self.probe.as_mut()?.first_after.take()
    }

    /// Reports a response; returns the length of the outage that it ended.
    pub fn answered(self, now: Instant) -> Option<Duration> {
        let latency = now.saturating_duration_since(self.sent);
        self.gate
            .report(|state| state.answered(self.number, latency, now))
    }

    /// Waits for a turn to follow a redirect, keeping the place and the role. The final response is
    /// reported, not the redirect.
    pub async fn again(&mut self, end: Option<Instant>) -> Result<(), NotAdmitted> {
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

    /// Reports a failure. Returns what delays the call, and the length of the outage that it ended.
    pub fn failed(self, failed: Failed, patience: &mut Patience) -> (Hold, Option<Duration>) {
        let now = self.gate.clock.now();
        // Before the place is released, or the next request in line would be sent first.
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
        state.in_flight -= 1;
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
