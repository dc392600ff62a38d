//! The client. It compiles and is tested without any bindings.
//!
//! Imports only point down, from the last layer to the first:
//! 1. `schema`, `timestamp`, `process`: the fields of the service's objects, values and per-process
//!    state;
//! 2. `api`, `report`, `error`, `decode`: the four requests, what was proved, errors, decoding;
//! 3. `list_state`, `config`, `budget`, `retry`, `observer`, `redact`: what is remembered of a list, and how
//!    a request is sent;
//! 4. `wire`: the only place that names reqwest;
//! 5. `client`: one request with its attempts;
//! 6. `prefetch`, `walk`: lists, and all messages;
//! 7. `privacy`, `arrow`, `probe`, `sync`.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub mod api;
pub mod budget;
pub mod client;
pub mod config;
pub mod error;
#[cfg(test)]
mod fuzz_seeds;
pub mod list_state;
pub mod observer;
pub mod prefetch;
pub mod privacy;
pub mod probe;
pub mod process;
pub mod redact;
pub mod report;
pub mod retry;
pub mod schema;
pub mod sync;
pub mod timestamp;
pub mod walk;
pub mod wire;

/// From the bytes of a response to rows.
pub mod decode {
    pub mod json;
    pub mod page;
    pub mod rows;
}

/// From rows to Arrow record batches.
pub mod arrow {
    pub mod batches;
    pub mod columns;
}

/// Locks a value, which stays valid even if a thread panicked while it held the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
