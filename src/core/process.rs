//! What belongs to one process: a forked child makes its own and leaves the inherited one alone.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

/// A value made once in each process. Nothing here locks, so a fork at any moment is harmless.
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
        Self {
            held: ArcSwapOption::empty(),
        }
    }
}

impl<T> PerProcess<T> {
    /// Gives `read` this process's value, made by `make` the first time.
    pub fn with<R, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
        read: impl FnOnce(&T) -> R,
    ) -> Result<R, E> {
        let process = std::process::id();
        if let Some(owned) = self.held.load().as_deref()
            && owned.process == process
        {
            return Ok(read(&owned.value));
        }
        let made = Arc::new(Owned {
            process,
            value: make()?,
        });
        let previous = self.held.load_full();
        let race = self
            .held
            .compare_and_swap(&previous, Some(Arc::clone(&made)));
        let winner = match race.as_ref() {
            Some(other) if other.process == process => Arc::clone(other),
            _ => made,
        };
        if let Some(inherited) = previous
            && inherited.process != process
        {
            // Its sockets and threads are the parent's: dropping it here would disturb them.
            std::mem::forget(inherited);
        }
        Ok(read(&winner.value))
    }
}
