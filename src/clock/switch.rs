//! A time that can be switched between real and virtual, its waiters, and when it leaps: while a leap
//! is possible, a thread checks whether anything happens.

use std::collections::{BTreeMap, VecDeque};
use std::future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::{LONGEST, MoveError};

const MOST_SLEPT: usize = 10_000;
// How long nothing must have happened before virtual time leaps, in real time.
const TICK: Duration = Duration::from_millis(1);
// So many if something fails at the deadline: a thread with work to do may not have been scheduled.
const STILL_TICKS_BEFORE_A_LIMIT: u32 = 5;
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

impl Default for Time {
    fn default() -> Self {
        let now = Instant::now();
        Self::Real {
            shown: now,
            at: now,
        }
    }
}

#[derive(Debug)]
struct Waiter {
    kind: Kind,
    wake: Arc<Notify>,
}

/// With a number that distinguishes equal deadlines.
type Deadline = (Instant, u64);

#[derive(Debug, Default)]
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
    changes: u64,
    /// Whether a thread checks for leaps.
    watched: bool,
    slept: VecDeque<Duration>,
}

impl State {
    pub fn is_virtual(&self) -> bool {
        matches!(self.time, Time::Virtual { .. })
    }

    pub fn now(&self) -> Instant {
        match &self.time {
            Time::Real { shown, at } => *shown + at.elapsed(),
            Time::Virtual { now, .. } => *now,
        }
    }

    /// The date and time.
    pub fn wall(&self) -> SystemTime {
        match &self.time {
            Time::Real { .. } => SystemTime::now(),
            Time::Virtual {
                now,
                started,
                start,
            } => *start + (*now - *started),
        }
    }

    pub fn record(&mut self, length: Duration) {
        if self.slept.len() == MOST_SLEPT {
            self.slept.pop_front();
        }
        self.slept.push_back(length);
    }

    pub fn slept(&self) -> Vec<Duration> {
        self.slept.iter().copied().collect()
    }

    /// The deadline to leap to if nothing else happens, with its kind. `None` while a call is not
    /// waiting, while a response in progress is not delayed, or if a deadline is already due.
    fn next(&self) -> Option<(Instant, Kind)> {
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
    fn leap(&mut self, to: Instant) {
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
        Self {
            process: std::process::id(),
            state: Mutex::default(),
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

    /// Starts a thread that checks whether to leap, if none runs and a leap is possible.
    fn watch(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.watched || state.next().is_none() {
            return;
        }
        state.watched = true;
        let changes = state.changes;
        drop(state);
        let switch = Arc::clone(self);
        // A thread, because a task depends on its runtime; it lives for a few ticks.
        let watcher = thread::Builder::new()
            .name("backread-clock".to_owned())
            .spawn(move || switch.leap_until_idle(changes));
        if watcher.is_err() {
            self.state().watched = false;
        }
    }

    fn leap_until_idle(&self, mut seen: u64) {
        let mut still = 0;
        loop {
            thread::sleep(TICK);
            let mut state = self.state();
            if state.changes != seen {
                still = 0;
                seen = state.changes;
                continue;
            }
            let Some((deadline, kind)) = state.next() else {
                state.watched = false;
                return;
            };
            still += 1;
            let fails = matches!(kind, Kind::Exchange | Kind::Limit);
            if !fails || still >= STILL_TICKS_BEFORE_A_LIMIT {
                state.leap(deadline);
                still = 0;
                seen = state.changes;
            }
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

impl Registered<'_> {
    /// Waits until the deadline; forever without one.
    pub async fn due(&self) {
        let Some((deadline, _)) = self.deadline else {
            return future::pending().await;
        };
        while let Some(latest) = self.next_look(deadline) {
            tokio::select! {
                () = self.wake.notified() => {}
                () = sleep_until(latest) => {}
            }
        }
    }

    /// When to look again unless woken; `None` if the deadline has come.
    fn next_look(&self, deadline: Instant) -> Option<Instant> {
        let (state, real_now) = (self.switch.state(), Instant::now());
        let end = match &state.time {
            Time::Real { shown, at } => *at + deadline.saturating_duration_since(*shown),
            Time::Virtual { now, .. } if deadline <= *now => return None,
            Time::Virtual { .. } => match self.real_end {
                // While the server uses this clock too, real time means nothing.
                Some(end) if end <= real_now && state.holds > state.orphans => {
                    real_now + LEAST_REAL_LIMIT
                }
                end => end.unwrap_or(real_now + LONGEST),
            },
        };
        (end > real_now).then_some(end)
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
