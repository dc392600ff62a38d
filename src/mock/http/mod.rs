//! The layer between a socket and a response.

pub(super) mod body;
pub mod exchange;
pub(super) mod socket;
