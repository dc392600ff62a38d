//! The client. It compiles and is tested without Python.
//!
//! Imports only point down, from the last layer to the first:
//! 1. `timestamp`, `process`: values and per-process state;
//! 2. `error`, `api`, `decode`: the four requests, errors, and decoding of responses;
//! 3. `config`, `budget`, `retry`, `pace`, `outage`, `observer`, `redact`: how a request is sent;
//! 4. `wire`: the only place that names reqwest;
//! 5. `client`: one request with its attempts;
//! 6. `walk`: lists, and all messages; `report` and `prefetch` below it;
//! 7. `arrow`, `probe`, `sync`.

pub mod api;
pub mod arrow;
pub mod budget;
pub mod client;
pub mod config;
pub mod decode;
pub mod error;
pub mod list_state;
pub mod observer;
pub mod outage;
pub mod pace;
pub mod prefetch;
pub mod probe;
pub mod probe_request;
pub mod process;
pub mod redact;
pub mod report;
pub mod retry;
pub mod sync;
pub mod timestamp;
pub mod walk;
pub mod wire;
