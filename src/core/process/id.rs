//! This process's id, without asking the kernel each time: a read looks six to ten times whether it is in
//! a forked child.

use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The id, or 0 in a process that has not looked it up; no process has that one.
static ID: AtomicU32 = AtomicU32::new(0);
static FORGETS_IT_IN_CHILDREN: AtomicBool = AtomicBool::new(false);

#[inline]
pub fn id() -> u32 {
    match ID.load(Ordering::Relaxed) {
        0 => look_up(),
        id => id,
    }
}

#[cold]
fn look_up() -> u32 {
    let id = process::id();
    if FORGETS_IT_IN_CHILDREN.load(Ordering::SeqCst) {
        ID.store(id, Ordering::Relaxed);
    }
    id
}

/// To be called in each forked child, before anything else runs there.
pub extern "C" fn forget_id() {
    ID.store(0, Ordering::Relaxed);
}

/// From now on each forked child calls [`forget_id`], so the id may be remembered.
pub fn remember_id() {
    FORGETS_IT_IN_CHILDREN.store(true, Ordering::SeqCst);
}
