//! From the bytes of an answer to rows.

pub mod flat_message;
pub mod json;
pub mod model;
pub mod page;
