//! The pace that all requests of a client share: how many at once, how many per second.
//!
//! `window.rs` decides how many may be in flight, `rate.rs` when the next one may go, and
//! `unavailable.rs` whether 503 means "too fast". All decide from the results of earlier requests,
//! which `state.rs` passes to them, and none of them waits; the waiting is done here.

mod bans;
mod climb;
mod finding;
mod learned;
mod log;
mod rate;
mod refusal;
mod share;
#[cfg(test)]
mod simulation;
mod spacing;
mod state;
#[cfg(test)]
mod tests;
mod trial;
mod unavailable;
mod unstated;
mod window;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use self::rate::{Turn, Why};
use self::refusal::Refusal;
pub use self::refusal::RefusedBy;
use self::state::State;
pub use self::unstated::InARow;
use backread_clock::{Clock, Elapsed};

/// How soon a probe checks again whether fewer than `max_concurrency` requests are in flight.
const ALL_UNDER_WAY: Duration = Duration::from_millis(50);

/// Admits requests one after another, as `max_concurrency`, `rate_limit` and the service allow.
#[derive(Debug)]
pub struct Pace {
    places: Semaphore,
    /// Only one request waits for the next turn; the others wait for the gate, first come first
    /// served.
    gate: Semaphore,
    shared: Mutex<Shared>,
    clock: Clock,
    closing: Closing,
}

/// Whether the clients that share it are closed, and what wakes their waiting calls then.
#[derive(Debug, Clone, Default)]
pub struct Closing {
    pub closed: Arc<AtomicBool>,
    pub waking: Arc<Notify>,
}

impl Closing {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Waits for something, at most until the clients are closed.
    async fn or(&self, wait: impl Future<Output = ()>) {
        // Made before the look, so that closing in between wakes it too.
        let woken = self.waking.notified();
        if !self.is_closed() {
            tokio::select! {
                () = wait => {}
                () = woken => {}
            }
        }
    }
}

#[derive(Debug)]
struct Shared {
    state: State,
    under_way: usize,
    /// The existing slots, free or taken: more than the window allows if it has just shrunk.
    places: usize,
}

/// A slot for a request in flight, released on drop.
#[derive(Debug)]
pub struct Admission<'a> {
    pace: &'a Pace,
    permit: Option<SemaphorePermit<'a>>,
    number: u64,
    sent: Instant,
}

impl Pace {
    pub fn new(max_concurrency: usize, rate_limit: Option<f64>, clock: Clock) -> Self {
        let state = State::new(max_concurrency.min(Semaphore::MAX_PERMITS), rate_limit);
        let places = state.size();
        Self {
            places: Semaphore::new(places),
            gate: Semaphore::new(1),
            shared: Mutex::new(Shared {
                state,
                under_way: 0,
                places,
            }),
            clock,
            closing: Closing::default(),
        }
    }

    /// The same for clients that are closed together: their waiting calls then fail at once.
    #[must_use]
    pub fn closed_by(self, closing: Closing) -> Self {
        Self { closing, ..self }
    }

    /// Sleeps, at most until the client is closed.
    pub async fn sleep(&self, length: Duration) {
        self.closing.or(self.clock.sleep(length)).await;
    }

    async fn sleep_until(&self, end: Instant) {
        self.closing.or(self.clock.sleep_until(end)).await;
    }

    /// Waits for a slot and for this request's turn. If that would take longer than `remaining`, it
    /// does not wait, and the error is the wait.
    pub async fn admit(&self, remaining: Option<Duration>) -> Result<Admission<'_>, Duration> {
        // A deadline beyond the clock's range is no deadline.
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

    /// Waits for the turn of a request that probes an outage. It goes ahead of the others, which
    /// wait for it, and ignores a rate that was learned from the outage.
    pub async fn admit_alone(
        &self,
        remaining: Option<Duration>,
    ) -> Result<Admission<'_>, Duration> {
        let end = remaining.and_then(|remaining| self.clock.now().checked_add(remaining));
        loop {
            let now = self.clock.now();
            let turn = {
                let mut shared = self.shared();
                let turn = if shared.under_way < shared.state.most() {
                    shared.state.turn_alone(now)
                } else {
                    let (until, why) = (now + ALL_UNDER_WAY, Why::Limit);
                    Turn::Wait { until, why }
                };
                shared.under_way += usize::from(matches!(turn, Turn::Come(_)));
                turn
            };
            match turn {
                Turn::Come(number) => {
                    return Ok(Admission {
                        pace: self,
                        permit: None,
                        number,
                        sent: now,
                    });
                }
                Turn::Wait { until, .. } if end.is_some_and(|end| until > end) => {
                    return Err(until.saturating_duration_since(now));
                }
                Turn::Wait { until, .. } => {
                    self.sleep_until(until).await;
                    if self.closing.is_closed() {
                        return Err(Duration::ZERO);
                    }
                }
            }
        }
    }

    async fn place(&self, end: Option<Instant>) -> Result<Option<SemaphorePermit<'_>>, Elapsed> {
        loop {
            let silent = self.shared().state.silent_until(self.clock.now());
            let soonest = silent.into_iter().chain(end).min();
            let place = self.places.acquire();
            match self.clock.wait_for(place, soonest).await {
                Ok(permit) => return Ok(permit.ok()),
                Err(Elapsed) if end.is_some_and(|end| end <= self.clock.now()) => {
                    return Err(Elapsed);
                }
                Err(Elapsed) => {
                    let mut shared = self.shared();
                    shared.state.wait_no_longer(self.clock.now());
                    self.fit(&mut shared);
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
                let mut shared = self.shared();
                match (shared.state.held(), passes) {
                    // Requests ahead of it are waiting; what holds them holds this one too.
                    (held, false) => (held.unwrap_or(now), Why::Held),
                    (_, true) => match shared.state.turn(now) {
                        Turn::Come(number) => {
                            shared.under_way += 1;
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
            self.sleep_until(until).await;
            if self.closing.is_closed() {
                return Err(Duration::ZERO);
            }
        }
    }

    /// Records the end of an outage in which requests failed at any pace: its 503s say nothing
    /// about a rate.
    pub fn outage_ended(&self) {
        let now = self.clock.now();
        self.shared().state.forget_unavailable(now);
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fits the slots to the window; surplus ones are removed as they are released.
    fn fit(&self, shared: &mut Shared) {
        let size = shared.state.size();
        if size > shared.places {
            self.places.add_permits(size - shared.places);
            shared.places = size;
        } else {
            shared.places -= self.places.forget_permits(shared.places - size);
        }
    }
}

impl Admission<'_> {
    /// When the turn came.
    pub fn sent(&self) -> Instant {
        self.sent
    }

    /// The 429s without a stated wait so far, if this request is refused so.
    pub fn refused_in_a_row(&self) -> InARow {
        let now = self.pace.clock.now();
        self.pace.shared().state.refused_in_a_row(self.number, now)
    }

    /// Records a response at `now` that was not a server error.
    pub fn answered(self, now: Instant) {
        let latency = now.saturating_duration_since(self.sent);
        let mut shared = self.pace.shared();
        let under_way = shared.under_way;
        shared.state.answered(self.number, latency, under_way, now);
    }

    /// Records that the service refused the request, or is down. If it stated the `wait` (`told`),
    /// all requests are held back until then; otherwise only by what counts as a refusal.
    pub fn refused(self, by: RefusedBy, wait: Duration, told: bool) {
        let now = self.pace.clock.now();
        self.pace.shared().state.refused(Refusal {
            by,
            number: self.number,
            sent: self.sent,
            now,
            wait,
            told,
        });
    }

    /// Records a 429 without a stated wait after which the call gave up; `exhausted` if all waits for
    /// such refusals have been too short.
    pub fn gave_up(self, exhausted: bool) {
        self.pace.shared().state.gave_up(self.number, exhausted);
    }

    /// Records that the service is overloaded or seems to be: no response came in time.
    pub fn overloaded(self) {
        self.pace.shared().state.overloaded(self.number);
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        let mut shared = self.pace.shared();
        shared.under_way -= 1;
        self.pace.fit(&mut shared);
        if shared.places > shared.state.size()
            && let Some(permit) = self.permit.take()
        {
            permit.forget();
            shared.places -= 1;
        }
    }
}
