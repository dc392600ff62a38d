//! The gate that all requests of a client pass: how many at once, how many a second, and none while
//! the service refuses or is down.
//!
//! A request passes the gate, is sent, and reports what came. `window.rs` decides how many may be in
//! flight, `rate.rs` when the next one may go, `unavailable.rs` whether 503 means "too fast", and
//! `outage.rs` whether the service is down; `state.rs` tells them what was reported. None of them
//! waits: the waiting is done here.

mod outage;
mod rate;
mod state;
mod unavailable;
mod window;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use self::outage::Begun;
pub use self::outage::{Ended, Patience};
use self::state::{Asks, State, Turn};
use crate::retry::{Sign, Verdict};
use backread_clock::{Clock, Elapsed};

/// How many requests are sent to a service of which nothing is known: at once at first, and per second
/// after the first refusal.
const FEW: usize = 4;
/// Times that differ by no more than this are equal: timers and networks are that exact.
const NOISE: Duration = Duration::from_millis(10);
/// Ten years: a clock can hold it, and no request waits longer.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Lets requests pass as `max_concurrency`, `rate_limit` and the service allow.
#[derive(Debug)]
pub struct Gate {
    places: Semaphore,
    /// Only one request waits for the next turn; the others wait behind it, first come first served.
    line: Semaphore,
    shared: Mutex<Shared>,
    clock: Clock,
    bell: Arc<Bell>,
}

#[derive(Debug)]
struct Shared {
    state: State,
    /// The existing places, free or taken: more than the window allows if it has just shrunk.
    places: usize,
}

/// Wakes calls that wait: their clients are closed, or an outage has changed.
#[derive(Debug, Default)]
pub struct Bell {
    closed: AtomicBool,
    rings: Notify,
}

impl Bell {
    /// Closes all clients that share it.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.rings.notify_waiters();
    }
}

/// Why a request does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotPassed {
    Closed,
    /// Its deadline comes first; with the wait, if that is known.
    Late(Option<Duration>),
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

/// The consequences of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported {
    /// It ended an outage.
    pub ended: Option<Ended>,
    pub hold: Hold,
}

/// What holds the call after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Nothing: it backs off by itself.
    No,
    /// The gate is closed for all, for this long.
    Closed(Duration),
    /// An outage, which uses up no retries; `is_scheduled` if this failure set the time of the probe.
    Outage {
        next_probe: Duration,
        is_scheduled: bool,
    },
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
    probe: Option<Probe<'a>>,
}

/// The one request that probes. If it is dropped, another takes its place at once.
#[derive(Debug)]
pub struct Probe<'a> {
    gate: &'a Gate,
    begun: Begun,
}

impl Gate {
    pub fn new(
        max_concurrency: usize,
        rate_limit: Option<f64>,
        clock: Clock,
        bell: Arc<Bell>,
    ) -> Self {
        let state = State::new(max_concurrency.min(Semaphore::MAX_PERMITS), rate_limit);
        let places = state.window.size();
        Self {
            places: Semaphore::new(places),
            line: Semaphore::new(1),
            shared: Mutex::new(Shared { state, places }),
            clock,
            bell,
        }
    }

    /// Waits for a place and for this request's turn, and for the end of an outage unless this request
    /// is to probe. A `probe` that was redirected goes on.
    ///
    /// # Errors
    /// `Closed` if the client is closed, or `Late`, at once, if the wait would pass `end`.
    pub async fn pass<'a>(
        &'a self,
        patience: &mut Patience,
        end: Option<Instant>,
        probe: Option<Probe<'a>>,
    ) -> Result<Pass<'a>, NotPassed> {
        let (mut place, mut line) = (None, None);
        loop {
            // Registered before the look, so that no change is missed.
            let ring = self.bell.rings.notified();
            if self.is_closed() {
                return Err(NotPassed::Closed);
            }
            if place.is_none() && probe.is_none() {
                place = self.places.try_acquire().ok();
            }
            let asks = Asks {
                end,
                is_probe: probe.is_some(),
                has_place: place.is_some(),
                is_first: line.is_some() || self.line.available_permits() > 0,
            };
            let now = self.clock.now();
            let turn = self.shared().state.turn(asks, patience, now);
            if let Turn::Waits { until, .. } | Turn::Behind(until) | Turn::Held(Some(until)) = turn
                && end.is_some_and(|end| end < until)
            {
                return Err(NotPassed::Late(Some(until.saturating_duration_since(now))));
            }
            match turn {
                Turn::Passes {
                    number,
                    probe: begun,
                } => {
                    let begun = begun.map(|begun| Probe { gate: self, begun });
                    return Ok(Pass {
                        gate: self,
                        permit: place,
                        number,
                        sent: now,
                        probe: probe.or(begun),
                    });
                }
                Turn::NoPlace => place = self.place(end).await?,
                Turn::Behind(_) => line = self.line(end).await?,
                Turn::Waits { .. } if line.is_none() && probe.is_none() => {
                    line = self.line(end).await?
                }
                Turn::Waits { until, is_learned } => {
                    if is_learned {
                        self.clock.record(until.saturating_duration_since(now));
                    }
                    tokio::select! {
                        () = self.clock.sleep_until(until) => {}
                        () = ring => {}
                    }
                }
                Turn::Held(until) => {
                    (place, line) = (None, None);
                    let until = until.into_iter().chain(end).min();
                    if self.clock.wait_for(ring, until).await.is_err()
                        && end.is_some_and(|end| end <= self.clock.now())
                    {
                        return Err(NotPassed::Late(None));
                    }
                }
            }
        }
    }

    /// Waits for a place, until `end` or until the window grows because no response comes.
    async fn place(&self, end: Option<Instant>) -> Result<Option<SemaphorePermit<'_>>, NotPassed> {
        let silent = self.shared().state.window.silent_until(self.clock.now());
        let until = silent.into_iter().chain(end).min();
        if let Ok(permit) = self.clock.wait_for(self.places.acquire(), until).await {
            return Ok(permit.ok());
        }
        let now = self.clock.now();
        let mut shared = self.shared();
        shared.state.window.wait_no_longer(now);
        self.fit(&mut shared);
        match end.is_some_and(|end| end <= now) {
            true => Err(NotPassed::Late(None)),
            false => Ok(None),
        }
    }

    /// Waits until nobody waits before this request.
    async fn line(&self, end: Option<Instant>) -> Result<Option<SemaphorePermit<'_>>, NotPassed> {
        match self.clock.wait_for(self.line.acquire(), end).await {
            Ok(permit) => Ok(permit.ok()),
            Err(Elapsed) => Err(NotPassed::Late(None)),
        }
    }

    /// Sleeps, at most until the client is closed.
    pub async fn sleep(&self, length: Duration) {
        let end = self.clock.now() + length.min(FOREVER);
        self.clock.record(length);
        loop {
            let ring = self.bell.rings.notified();
            if self.is_closed() {
                return;
            }
            tokio::select! {
                () = self.clock.sleep_until(end) => return,
                () = ring => {}
            }
        }
    }

    /// How long the service has been down, in all outages together.
    pub fn outage_time(&self) -> Duration {
        let now = self.clock.now();
        self.shared().state.outage.total(now)
    }

    /// Records something, which may end an outage.
    fn tell<T>(&self, report: impl FnOnce(&mut State) -> T) -> T {
        let mut shared = self.shared();
        let was_down = shared.state.outage.is_on();
        let told = report(&mut shared.state);
        drop(shared);
        if was_down {
            self.bell.rings.notify_waiters();
        }
        told
    }

    fn is_closed(&self) -> bool {
        self.bell.closed.load(Ordering::SeqCst)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fits the places to the window; surplus ones are removed as they are released.
    fn fit(&self, shared: &mut Shared) {
        let size = shared.state.window.size();
        if size > shared.places {
            self.places.add_permits(size - shared.places);
            shared.places = size;
        } else {
            shared.places -= self.places.forget_permits(shared.places - size);
        }
    }
}

impl<'a> Pass<'a> {
    /// Whether it probes with the smallest page of users, not with the call's own request.
    pub fn is_of_users(&self) -> bool {
        self.probe
            .as_ref()
            .is_some_and(|probe| probe.begun.of_users)
    }

    /// How long an outage had lasted when it began to probe, if it was the first probe.
    pub fn outage_began_before(&self) -> Option<Duration> {
        self.probe.as_ref()?.begun.first_after
    }

    /// How many refusals in a row there are if this request is one.
    pub fn refused_in_a_row(&self) -> u32 {
        self.gate.shared().state.refused_in_a_row(self.number)
    }

    /// Reports a response; returns the outage that it ended.
    pub fn answered(self, now: Instant) -> Option<Ended> {
        let latency = now.saturating_duration_since(self.sent);
        self.gate
            .tell(|state| state.answered(self.number, latency, now))
    }

    /// Reports a redirect, which says nothing about an outage; its probe goes on.
    pub fn moved(mut self, now: Instant) -> Option<Probe<'a>> {
        let latency = now.saturating_duration_since(self.sent);
        self.gate.shared().state.moved(self.number, latency, now);
        // Its outage is noted once.
        if let Some(probe) = &mut self.probe {
            probe.begun.first_after = None;
        }
        self.probe.take()
    }

    /// Reports a failure; `patience` and `end` are those of its call.
    pub fn failed(self, failed: Failed, patience: &mut Patience, end: Option<Instant>) -> Reported {
        let Gate { clock, .. } = self.gate;
        let probe = self.probe.as_ref().map(|probe| probe.begun);
        let call = (patience, end);
        // Before the place is free, or the next request in line would slip through.
        let report =
            |state: &mut State| state.failed(self.number, failed, probe, call, clock.now());
        let reported = self.gate.tell(report);
        if let Hold::Closed(wait)
        | Hold::Outage {
            next_probe: wait,
            is_scheduled: true,
        } = reported.hold
        {
            clock.record(wait);
        }
        reported
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut shared = self.gate.shared();
        shared.state.under_way -= 1;
        self.gate.fit(&mut shared);
        if shared.places > shared.state.window.size()
            && let Some(permit) = self.permit.take()
        {
            permit.forget();
            shared.places -= 1;
        }
        // A probe may wait for a place.
        let rings = shared.state.outage.is_on();
        drop(shared);
        if rings {
            self.gate.bell.rings.notify_waiters();
        }
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.gate.shared().state.outage.end_probe(self.begun);
        self.gate.bell.rings.notify_waiters();
    }
}
