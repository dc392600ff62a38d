//! Faults of responses, the requests that they apply to, and how the response is then sent.

mod argument;
pub mod delivery;
pub mod fault;
pub(super) mod grammar;
pub mod rate;
pub mod rule;
pub mod rules;
