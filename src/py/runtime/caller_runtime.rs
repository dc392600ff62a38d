//! A runtime without threads: the thread that waits for a call drives it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::yield_now;

pub struct CallerRuntime {
    runtime: Mutex<Runtime>,
    /// Connections may need closing while no thread drives the runtime.
    unsettled: AtomicBool,
}

impl CallerRuntime {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            runtime: Mutex::new(Builder::new_current_thread().enable_all().build()?),
            unsettled: AtomicBool::new(false),
        })
    }

    /// The runtime, for one thread at a time; `None` if another thread has it.
    pub fn take(&self) -> Option<MutexGuard<'_, Runtime>> {
        match self.runtime.try_lock() {
            Ok(runtime) => Some(runtime),
            Err(TryLockError::Poisoned(runtime)) => Some(runtime.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Call after giving the runtime back: does what other threads could not do meanwhile.
    pub fn gave_back(&self) {
        if self.unsettled.load(Ordering::SeqCst) {
            self.settle();
        }
    }

    /// Closes unused connections; if another thread has the runtime, that thread does so afterwards.
    ///
    /// Python's garbage collector may drop a client in a runtime's thread, which must not block: then the
    /// next call does it.
    pub fn settle(&self) {
        self.unsettled.store(true, Ordering::SeqCst);
        while Handle::try_current().is_err()
            && self.unsettled.load(Ordering::SeqCst)
            && let Some(runtime) = self.take()
        {
            self.unsettled.store(false, Ordering::SeqCst);
            runtime.block_on(turn());
        }
    }
}

/// Handles what arrived on the connections while no thread drove them.
pub async fn turn() {
    // The first yield polls the sockets, the second runs the tasks that wait for them.
    yield_now().await;
    yield_now().await;
}
