//! Per-process state: a forked child makes new values and never touches the inherited ones.

mod id;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

pub use self::id::{forget_id, id, remember_id};

thread_local! {
    /// The process that seeded this thread's random numbers.
    static CHANCE_OF: Cell<u32> = const { Cell::new(0) };
}

/// A random number from 0 to 1. Forked siblings draw different ones, so that their retries do not
/// coincide.
pub fn chance() -> f64 {
    let process = id();
    if CHANCE_OF.replace(process) != process {
        fastrand::seed(fastrand::u64(..) ^ u64::from(process));
    }
    fastrand::f64()
}

/// A value made once per process. It takes no locks, so a fork at any moment is harmless.
#[derive(Debug)]
pub struct PerProcess<T> {
    held: ArcSwapOption<Owned<T>>,
}

#[derive(Debug)]
struct Owned<T> {
    process: u32,
    value: T,
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T> PerProcess<T> {
    pub const fn empty() -> Self {
        Self {
            held: ArcSwapOption::const_empty(),
        }
    }

    /// Drops this process's value; leaves an inherited one alone.
    pub fn clear(&self) {
        if let Some(owned) = self.held.swap(None)
            && owned.process != id()
        {
            std::mem::forget(owned);
        }
    }

    /// Calls `read` with this process's value, which `make` makes the first time.
    pub fn with<R, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
        read: impl FnOnce(&T) -> R,
    ) -> Result<R, E> {
        let process = id();
        if let Some(owned) = self.held.load().as_deref()
            && owned.process == process
        {
            return Ok(read(&owned.value));
        }
        // Empty, or inherited by a fork; the swap below replaces only that, nothing newer.
        let previous = self
            .held
            .load_full()
            .filter(|owned| owned.process != process);
        let made = Arc::new(Owned {
            process,
            value: make()?,
        });
        let found = self
            .held
            .compare_and_swap(&previous, Some(Arc::clone(&made)));
        let winner = match found.as_ref() {
            Some(other) if other.process == process => Arc::clone(other),
            _ => made,
        };
        if let Some(inherited) = previous {
            // Its sockets and threads belong to the parent: dropping it here would disturb them.
            std::mem::forget(inherited);
        }
        Ok(read(&winner.value))
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        self.clear();
    }
}
