//! `backread` reads every user and every message of a chat widget's service.
//!
//! `core` is the client and has no Python in it, `mock` is a fake of the service, and `py` holds the
//! bindings of both for CPython. `mock` and `core` share the `clock` below both, and no other type.

#[cfg(all(
    feature = "python",
    target_os = "linux",
    target_env = "gnu",
    target_arch = "x86_64"
))]
mod allocator;
pub mod clock;
pub mod core;
#[cfg(feature = "mock")]
pub mod mock;
#[cfg(feature = "python")]
mod py;
