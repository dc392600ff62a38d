//! A time that can be switched between real and virtual, and its waiters.

use std::collections::{BTreeMap, VecDeque};
use std::future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::{LONGEST, MoveError};

const MOST_SLEPT: usize = 10_000;
// The shortest real time that a limit allows: a response that makes progress takes less, even on a
// busy machine.
const LEAST_REAL_LIMIT: Duration = Duration::from_secs(5);

/// What a waiter waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: a client's call, which runs code except during its waits and exchanges.
    Call,
    /// Time.
    Wait,
    /// A response, from the moment of the request.
    Exchange,
    /// Time, while the mock delays a response.
    Hold,
    /// Something else, up to a deadline.
    Limit,
}

impl Kind {
    /// Whether something fails at its deadline.
    pub fn is_limit(self) -> bool {
        matches!(self, Self::Exchange | Self::Limit)
    }
}

#[derive(Debug)]
enum Time {
    /// Shows `shown` at the real time `at`, and advances with real time.
    Real { shown: Instant, at: Instant },
    /// Shows `now`; the date and time at `started` were `start`.
    Virtual {
        now: Instant,
        started: Instant,
        start: SystemTime,
    },
}

#[derive(Debug)]
struct Waiter {
    kind: Kind,
    wake: Arc<Notify>,
}

/// With a number that distinguishes equal deadlines.
type Deadline = (Instant, u64);

#[derive(Debug)]
pub struct State {
    time: Time,
    waiting: BTreeMap<Deadline, Waiter>,
    calls: usize,
    /// How many waits, exchanges and limits these calls are in.
    pauses: usize,
    exchanges: usize,
    holds: usize,
    /// How many of the holds belong to an exchange that the client gave up and the mock has not
    /// noticed yet.
    orphans: usize,
    number: u64,
    /// Counts all events: if two checks find the same number, nothing happened in between.
    pub changes: u64,
    /// Whether a thread checks for leaps.
    pub watched: bool,
    slept: VecDeque<Duration>,
}

impl State {
    fn now(&self) -> Instant {
        match &self.time {
            Time::Real { shown, at } => *shown + at.elapsed(),
            Time::Virtual { now, .. } => *now,
        }
    }

    /// The date and time at a moment of virtual time; in real time, the current one.
    fn wall(&self, at: Instant) -> SystemTime {
        match &self.time {
            Time::Real { .. } => SystemTime::now(),
            Time::Virtual { started, start, .. } => *start + (at - *started),
        }
    }

    /// The deadline to leap to if nothing else happens, with its kind. `None` while a call is not
    /// waiting, while a response in progress is not delayed, or if a deadline is already due.
    pub fn next(&self) -> Option<(Instant, Kind)> {
        let Time::Virtual { now, .. } = self.time else {
            return None;
        };
        if self.calls > self.pauses || self.exchanges > self.holds - self.orphans {
            return None;
        }
        let ((deadline, _), waiter) = self.waiting.first_key_value()?;
        (*deadline > now).then_some((*deadline, waiter.kind))
    }

    /// Advances virtual time and wakes what is due.
    pub fn leap(&mut self, to: Instant) {
        if let Time::Virtual { now, .. } = &mut self.time {
            *now = to.max(*now);
            self.changes += 1;
            for (_, waiter) in self.waiting.range(..=(to, u64::MAX)) {
                waiter.wake.notify_one();
            }
        }
    }

    fn enter(&mut self, kind: Kind) {
        if kind == Kind::Exchange {
            // Holds beyond the number of exchanges cannot belong to the one that begins now.
            self.orphans = self.orphans.max(self.holds.saturating_sub(self.exchanges));
        }
        self.count(kind, |count| *count += 1);
    }

    fn leave(&mut self, kind: Kind) {
        self.count(kind, |count| *count -= 1);
        if kind == Kind::Hold {
            self.orphans = self.orphans.saturating_sub(1);
        }
    }

    fn count(&mut self, kind: Kind, change: impl Fn(&mut usize)) {
        match kind {
            Kind::Call => change(&mut self.calls),
            Kind::Hold => change(&mut self.holds),
            Kind::Wait | Kind::Limit => change(&mut self.pauses),
            Kind::Exchange => {
                change(&mut self.pauses);
                change(&mut self.exchanges);
            }
        }
    }

    fn switch_to(&mut self, time: Time) {
        self.time = time;
        self.changes += 1;
        for waiter in self.waiting.values() {
            waiter.wake.notify_one();
        }
    }
}

#[derive(Debug)]
pub struct Switch {
    process: u32,
    state: Mutex<State>,
}

impl Switch {
    pub fn new() -> Self {
        let now = Instant::now();
        Self {
            process: std::process::id(),
            state: Mutex::new(State {
                time: Time::Real {
                    shown: now,
                    at: now,
                },
                waiting: BTreeMap::new(),
                calls: 0,
                pauses: 0,
                exchanges: 0,
                holds: 0,
                orphans: 0,
                number: 0,
                changes: 0,
                watched: false,
                slept: VecDeque::new(),
            }),
        }
    }

    /// False in a forked child, where a thread that no longer exists may hold the lock.
    pub fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn make_virtual(self: &Arc<Self>, start: SystemTime) {
        let mut state = self.state();
        let now = state.now();
        state.switch_to(Time::Virtual {
            now,
            started: now,
            start,
        });
        self.watch(state);
    }

    pub fn make_real(&self) {
        let mut state = self.state();
        let (shown, at) = (state.now(), Instant::now());
        state.switch_to(Time::Real { shown, at });
    }

    pub fn is_virtual(&self) -> bool {
        matches!(self.state().time, Time::Virtual { .. })
    }

    pub fn now(&self) -> Instant {
        self.state().now()
    }

    pub fn wall(&self) -> SystemTime {
        let state = self.state();
        state.wall(state.now())
    }

    pub fn advance(self: &Arc<Self>, length: Duration) -> Result<(), MoveError> {
        let mut state = self.state();
        let Time::Virtual { now, .. } = state.time else {
            return Err(MoveError::Real);
        };
        if length > LONGEST {
            return Err(MoveError::TooFar);
        }
        state.leap(now + length);
        self.watch(state);
        Ok(())
    }

    pub fn record(&self, length: Duration) {
        let mut state = self.state();
        if state.slept.len() == MOST_SLEPT {
            state.slept.pop_front();
        }
        state.slept.push_back(length);
    }

    pub fn slept(&self) -> Vec<Duration> {
        self.state().slept.iter().copied().collect()
    }

    /// Registers a waiter until the guard is dropped; `real_limit` also limits it in real time.
    pub fn register(
        self: &Arc<Self>,
        kind: Kind,
        deadline: Option<Instant>,
        real_limit: Option<Duration>,
    ) -> Registered<'_> {
        let wake = Arc::new(Notify::new());
        let mut state = self.state();
        state.changes += 1;
        state.number += 1;
        state.enter(kind);
        let deadline = deadline.map(|deadline| (deadline, state.number));
        if let Some(deadline) = deadline {
            let wake = Arc::clone(&wake);
            state.waiting.insert(deadline, Waiter { kind, wake });
        }
        self.watch(state);
        Registered {
            switch: self,
            kind,
            deadline,
            real_end: real_limit
                .and_then(|limit| Instant::now().checked_add(limit.max(LEAST_REAL_LIMIT))),
            wake,
        }
    }
}

/// A registered waiter, until dropped.
#[derive(Debug)]
pub struct Registered<'a> {
    switch: &'a Arc<Switch>,
    kind: Kind,
    deadline: Option<Deadline>,
    real_end: Option<Instant>,
    wake: Arc<Notify>,
}

/// What the clock tells a waiter.
enum Look {
    Due,
    /// Check again when woken, or at this time.
    Later(Option<Instant>),
}

impl Registered<'_> {
    /// Waits until the deadline; forever without one.
    pub async fn due(&self) {
        let Some((deadline, _)) = self.deadline else {
            return future::pending().await;
        };
        loop {
            match self.look(deadline) {
                Look::Due => return,
                Look::Later(None) => self.wake.notified().await,
                Look::Later(Some(latest)) => tokio::select! {
                    () = self.wake.notified() => {}
                    () = sleep_until(latest) => {}
                },
            }
        }
    }

    fn look(&self, deadline: Instant) -> Look {
        let state = self.switch.state();
        match &state.time {
            Time::Real { shown, at } => {
                let end = *at + deadline.saturating_duration_since(*shown);
                if end <= Instant::now() {
                    Look::Due
                } else {
                    Look::Later(Some(end))
                }
            }
            Time::Virtual { now, .. } if deadline <= *now => Look::Due,
            Time::Virtual { .. } => match self.real_end {
                Some(end) if end <= Instant::now() => {
                    // While the server uses this clock too, real time means nothing.
                    if state.holds > state.orphans {
                        Look::Later(Instant::now().checked_add(LEAST_REAL_LIMIT))
                    } else {
                        Look::Due
                    }
                }
                end => Look::Later(end),
            },
        }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let mut state = self.switch.state();
        state.changes += 1;
        state.leave(self.kind);
        if let Some(deadline) = &self.deadline {
            state.waiting.remove(deadline);
        }
        self.switch.watch(state);
    }
}
