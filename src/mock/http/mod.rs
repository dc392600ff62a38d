//! What lies between a socket and an answer.

pub mod body;
pub mod exchange;
pub mod heads;
pub mod socket;
