//! The service, faked: a world of made-up users and messages, and a server that answers for it.
//!
//! Shares no type with the core: its JSON is written from the interface document.

pub mod admin;
mod answer;
pub mod audit;
mod body;
pub mod chunks;
mod connection;
pub mod counters;
pub mod delivery;
pub mod dialect;
pub mod drift;
pub mod exchange;
#[cfg(feature = "python")]
pub mod face;
pub mod fault;
mod grammar;
mod heads;
pub mod journal;
pub mod lane;
pub mod order;
mod page;
mod query;
pub mod rate;
pub mod refusal;
pub mod request_key;
pub mod responder;
pub mod routes;
pub mod row_mutation;
pub mod rule;
pub mod rules;
mod secret;
pub mod server;
pub mod service;
mod switch_enum;
#[cfg(test)]
mod tests;
mod wire;
pub mod world;
