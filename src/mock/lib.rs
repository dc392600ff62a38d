//! A fake of the service: a world of made-up users and messages, and a server for it.
//!
//! It shares no type with the core: its JSON is written from the interface document.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub mod admin;
pub mod audit;
pub mod chunks;
mod connection;
pub mod dialect;
pub mod drift;
pub mod journal;
pub mod lane;
mod page;
mod query;
pub mod refusal;
mod request_handler;
pub mod routes;
pub mod server;
pub mod service;
mod switch;
#[cfg(test)]
mod tests;
pub mod world;

/// Faults of responses, the requests that they apply to, and how the response is then sent.
pub mod faults {
    pub mod delivery;
    pub mod fault;
    mod field;
    mod grammar;
    pub mod rate;
    pub mod rule;
    pub mod rules;
}

/// The layer between a socket and a response.
pub mod http {
    pub(super) mod body;
    pub mod exchange;
    pub(super) mod socket;
}

/// Locks a value, which stays valid even if a thread panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
