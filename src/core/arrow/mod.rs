//! From rows to Arrow record batches.

pub mod batches;
pub mod columns;
