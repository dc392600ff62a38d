//! From the bytes of a response to rows.

pub mod flat_message;
pub mod json;
pub mod model;
pub mod page;
