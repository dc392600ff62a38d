//! Faults of responses, the requests that they apply to, and how the response is then sent.

pub mod delivery;
pub mod fault;
mod field;
mod grammar;
pub mod rate;
pub mod rule;
pub mod rules;
