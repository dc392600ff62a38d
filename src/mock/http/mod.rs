//! What lies between a socket and an answer.

pub(super) mod body;
pub mod exchange;
pub(super) mod heads;
pub(super) mod socket;
