//! The pace that all requests of a client share: how many at once, how many a second.
//!
//! `window.rs` decides how many may be under way and `rate.rs` when the next one may go, both by
//! what became of those before and without waiting; here is who waits, and for how long.

mod learned;
mod log;
mod rate;
#[cfg(test)]
mod simulation;
mod spacing;
#[cfg(test)]
mod tests;
mod window;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use self::rate::{Rate, Refusal, Turn, Why};
use self::window::Window;
use crate::clock::{Clock, Elapsed};

/// Admits requests one after another, as `max_concurrency`, `rate_limit` and the service allow.
#[derive(Debug)]
pub struct Pace {
    places: Semaphore,
    /// One alone waits for the next turn; the others wait for the gate, in the order they came.
    gate: Semaphore,
    state: Mutex<State>,
    clock: Clock,
}

#[derive(Debug)]
struct State {
    window: Window,
    rate: Rate,
    under_way: usize,
    /// The places there are, free or taken: more than the window has where it has just shrunk.
    places: usize,
    /// Requests up to this number were sent before the window was last halved.
    halved: u64,
}

/// A place among the requests under way; given back when dropped.
#[derive(Debug)]
pub struct Admission<'a> {
    pace: &'a Pace,
    permit: Option<SemaphorePermit<'a>>,
    number: u64,
    sent: Instant,
}

impl Pace {
    pub fn new(max_concurrency: usize, rate_limit: Option<f64>, clock: Clock) -> Self {
        let window = Window::new(max_concurrency.min(Semaphore::MAX_PERMITS));
        let places = window.size();
        Self {
            places: Semaphore::new(places),
            gate: Semaphore::new(1),
            state: Mutex::new(State {
                window,
                rate: Rate::new(rate_limit),
                under_way: 0,
                places,
                halved: 0,
            }),
            clock,
        }
    }

    /// Waits for a place and for this request's turn; the error is the wait that would take longer
    /// than `remaining`, which is not begun.
    pub async fn admit(&self, remaining: Option<Duration>) -> Result<Admission<'_>, Duration> {
        // A deadline past what the clock can hold is no deadline.
        let end = remaining.and_then(|remaining| self.clock.now().checked_add(remaining));
        let permit = match self.places.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) => match self.place(end).await {
                Ok(permit) => permit,
                Err(Elapsed) => return Err(remaining.unwrap_or_default()),
            },
        };
        let (number, sent) = self.turn(end, remaining).await?;
        Ok(Admission {
            pace: self,
            permit,
            number,
            sent,
        })
    }

    async fn place(&self, end: Option<Instant>) -> Result<Option<SemaphorePermit<'_>>, Elapsed> {
        loop {
            let silent = self.state().window.silent_until(self.clock.now());
            let soonest = silent.into_iter().chain(end).min();
            let place = self.places.acquire();
            match self.clock.wait_for(place, soonest).await {
                Ok(permit) => return Ok(permit.ok()),
                Err(Elapsed) if end.is_some_and(|end| end <= self.clock.now()) => {
                    return Err(Elapsed);
                }
                Err(Elapsed) => {
                    let mut state = self.state();
                    state.window.wait_no_longer(self.clock.now());
                    self.fit(&mut state);
                }
            }
        }
    }

    /// A turn is taken only when it has come: a call that is dropped while it waits holds none.
    async fn turn(
        &self,
        end: Option<Instant>,
        remaining: Option<Duration>,
    ) -> Result<(u64, Instant), Duration> {
        let mut gate = None;
        loop {
            let now = self.clock.now();
            let passes = gate.is_some() || self.gate.available_permits() > 0;
            let (until, why) = {
                let mut state = self.state();
                match (state.rate.held(), passes) {
                    // Behind others who wait; what holds them holds this one too.
                    (held, false) => (held.unwrap_or(now), Why::Held),
                    (_, true) => match state.rate.turn(now) {
                        Turn::Come(number) => {
                            state.under_way += 1;
                            return Ok((number, now));
                        }
                        Turn::Wait { until, why } => (until, why),
                    },
                }
            };
            if end.is_some_and(|end| until > end) {
                return Err(until.saturating_duration_since(now));
            }
            if gate.is_none() {
                let passed = self.clock.wait_for(self.gate.acquire(), end).await;
                gate = Some(passed.map_err(|Elapsed| remaining.unwrap_or_default())?);
                continue;
            }
            if why == Why::Learned {
                self.clock.record(until.saturating_duration_since(now));
            }
            self.clock.sleep_until(until).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As many places as the window has, as soon as those that are too many come back.
    fn fit(&self, state: &mut State) {
        let size = state.window.size();
        if size > state.places {
            self.places.add_permits(size - state.places);
            state.places = size;
        } else {
            state.places -= self.places.forget_permits(state.places - size);
        }
    }
}

impl State {
    fn overload(&mut self, number: u64) {
        if number > self.halved {
            self.halved = self.rate.sent();
            self.window.halve();
        }
    }
}

impl Admission<'_> {
    /// When the turn came.
    pub fn sent(&self) -> Instant {
        self.sent
    }

    /// An answer came at `now`, whatever it was.
    pub fn answered(self, now: Instant) {
        let latency = now.saturating_duration_since(self.sent);
        let mut state = self.pace.state();
        let under_way = state.under_way;
        state.window.answer(latency, under_way, now);
    }

    /// The service takes no more for now: all requests are held back until `wait` is over, which it
    /// asked for if `told`.
    pub fn refused(self, wait: Duration, told: bool) {
        let now = self.pace.clock.now();
        let mut state = self.pace.state();
        state.overload(self.number);
        state.rate.refuse(Refusal {
            number: self.number,
            sent: self.sent,
            now,
            wait,
            told,
        });
    }

    /// The service asks for a wait that has nothing to do with the rate: it is everybody's.
    pub fn held_back(self, wait: Duration) {
        let now = self.pace.clock.now();
        let mut state = self.pace.state();
        state.overload(self.number);
        state.rate.hold(now, wait);
    }

    /// The service is overloaded, or seems to be: no answer came in time.
    pub fn overloaded(self) {
        self.pace.state().overload(self.number);
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        let mut state = self.pace.state();
        state.under_way -= 1;
        self.pace.fit(&mut state);
        if state.places > state.window.size()
            && let Some(permit) = self.permit.take()
        {
            permit.forget();
            state.places -= 1;
        }
    }
}
