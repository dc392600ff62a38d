//! From the bytes of a response to rows.

pub mod json;
pub mod page;
pub mod rows;
