//! When virtual time leaps: a thread looks, as long as a leap may come, whether anything happens.

use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Duration;

use super::switch::{Kind, State, Switch};

// How long nothing must have happened, by the machine's time.
const TICK: Duration = Duration::from_millis(1);
const STILL_TICKS: u32 = 1;
// Longer where something fails by it: who is at work may have been kept from the processor.
const STILL_TICKS_BEFORE_A_LIMIT: u32 = 5;

impl Switch {
    /// Has somebody look whether to leap, if nobody does and a leap may come.
    pub fn watch(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.watched || state.next().is_none() {
            return;
        }
        state.watched = true;
        let changes = state.changes;
        drop(state);
        let switch = Arc::clone(self);
        // A thread, for a task would be at the mercy of its runtime; it lives for some ticks.
        let watcher = thread::Builder::new()
            .name("backread-clock".to_owned())
            .spawn(move || switch.look_until_nothing_is_awaited(changes));
        if watcher.is_err() {
            // Where no thread is to be had, a leap too early is better than none.
            let mut state = self.state();
            state.watched = false;
            if let Some((deadline, _)) = state.next() {
                state.leap(deadline);
            }
        }
    }

    fn look_until_nothing_is_awaited(&self, mut seen: u64) {
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
    match kind.is_limit() {
        true => STILL_TICKS_BEFORE_A_LIMIT,
        false => STILL_TICKS,
    }
}
