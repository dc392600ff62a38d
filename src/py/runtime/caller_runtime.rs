//! A runtime without threads: the thread that waits for a call drives it, with all that lives on it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

pub struct CallerRuntime {
    runtime: Mutex<Runtime>,
    /// Something is left to be seen to, and perhaps nobody drives.
    unsettled: AtomicBool,
}

impl CallerRuntime {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            runtime: Mutex::new(Builder::new_current_thread().enable_all().build()?),
            unsettled: AtomicBool::new(false),
        })
    }

    /// The runtime, for one thread at a time; none is waited for.
    pub fn take(&self) -> Option<MutexGuard<'_, Runtime>> {
        match self.runtime.try_lock() {
            Ok(runtime) => Some(runtime),
            Err(TryLockError::Poisoned(runtime)) => Some(runtime.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Sees to what others left to do while this thread had the runtime, which it gave back.
    pub fn gave_back(&self) {
        if self.unsettled.load(Ordering::SeqCst) {
            self.settle();
        }
    }

    /// Closes what connections nobody holds any more; who drives them just now does so afterwards.
    pub fn settle(&self) {
        self.unsettled.store(true, Ordering::SeqCst);
        while self.unsettled.load(Ordering::SeqCst)
            && let Some(runtime) = self.take()
        {
            self.unsettled.store(false, Ordering::SeqCst);
            runtime.block_on(turn());
        }
    }
}

/// What came to the connections while nobody drove them is seen and dealt with.
pub async fn turn() {
    // The first lets the sockets be looked at, the second those act that wait for them.
    yield_now().await;
    yield_now().await;
}
