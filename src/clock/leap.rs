//! When virtual time leaps: while a leap is possible, a thread checks whether anything happens.

use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Duration;

use super::switch::{Kind, State, Switch};

// How long nothing must have happened, in real time.
const TICK: Duration = Duration::from_millis(1);
const STILL_TICKS: u32 = 1;
// Longer if something fails at the deadline: a thread with work to do may not have been scheduled.
const STILL_TICKS_BEFORE_A_LIMIT: u32 = 5;

impl Switch {
    /// Starts a thread that checks whether to leap, if none runs and a leap is possible.
    pub fn watch(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
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
            // If no thread can be started, leaping too early is better than never.
            let mut state = self.state();
            state.watched = false;
            if let Some((deadline, _)) = state.next() {
                state.leap(deadline);
            }
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
            if still >= still_ticks(kind) {
                state.leap(deadline);
                still = 0;
                seen = state.changes;
            }
        }
    }
}

fn still_ticks(kind: Kind) -> u32 {
    if kind.is_limit() {
        STILL_TICKS_BEFORE_A_LIMIT
    } else {
        STILL_TICKS
    }
}
