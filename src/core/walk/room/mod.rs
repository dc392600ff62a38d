//! The memory of the pages that wait for the reader of many lists.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::process;

/// How much JSON may wait: pages of some users' messages are a thousand times as long as others'.
const ROOM: u32 = 32 * 1024 * 1024;

/// Room for a bounded amount of JSON; a page that is larger waits alone.
#[derive(Debug)]
pub struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ROOM as usize)))
    }
}

impl Room {
    /// Waits until there is room for this many bytes; they are held until the result is dropped.
    pub async fn take(&self, bytes: usize) -> Held {
        let bytes = u32::try_from(bytes).unwrap_or(ROOM).min(ROOM);
        Held {
            // It is never closed.
            permit: Arc::clone(&self.0).acquire_many_owned(bytes).await.ok(),
            process: process::id(),
        }
    }
}

/// The room that a page takes.
#[derive(Debug)]
pub struct Held {
    permit: Option<OwnedSemaphorePermit>,
    process: u32,
}

impl Drop for Held {
    fn drop(&mut self) {
        // In a forked child, the thread that holds the semaphore's lock may not exist.
        if self.process != process::id() {
            std::mem::forget(self.permit.take());
        }
    }
}
