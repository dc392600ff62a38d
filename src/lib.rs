//! `backread` reads every user and every message of a chat widget's service.
//!
//! `core` is the client and knows nothing of Python, `py` is its face for CPython, `mock` is the
//! service, faked. `mock` and `core` share the `clock` below both, and no other type.

pub mod clock;
pub mod core;
#[cfg(feature = "mock")]
pub mod mock;
#[cfg(feature = "python")]
mod py;
