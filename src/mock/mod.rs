//! The service, faked: a world of made-up users and messages, and a server that answers for it.
//!
//! Shares no type with the core: its JSON is written from the interface document.

pub mod chunks;
pub mod counters;
#[cfg(feature = "python")]
pub mod face;
pub mod fault;
mod grammar;
pub mod key;
pub mod manner;
pub mod refusal;
pub mod routes;
pub mod rule;
pub mod rules;
pub mod server;
pub mod service;
#[cfg(test)]
mod tests;
pub mod world;
