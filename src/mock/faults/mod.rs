//! What can be wrong with an answer, for which requests, and how it is sent then.

pub mod delivery;
pub mod fault;
pub(super) mod grammar;
pub mod rate;
pub mod rule;
pub mod rules;
