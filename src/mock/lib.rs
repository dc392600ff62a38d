//! A fake of the service: a world of made-up users and messages, and a server for it.
//!
//! It shares no type with the core: its JSON is written from the interface document.

pub mod admin;
pub mod audit;
pub mod chunks;
mod connection;
pub mod counters;
pub mod dialect;
pub mod drift;
pub mod faults;
pub mod http;
pub mod journal;
pub mod lane;
mod page;
mod query;
pub mod refusal;
mod request_handler;
pub mod request_key;
pub mod routes;
mod secret;
pub mod server;
pub mod service;
mod switch;
#[cfg(test)]
mod tests;
pub mod world;
