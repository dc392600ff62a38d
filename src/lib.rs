//! `backread` reads every user and every message of a chat widget's service.
//!
//! This package is Python's extension module. `backread-core` is the client and has no Python in it,
//! `backread-mock` is a fake of the service. They share the clock of `backread-clock`, and no other type.

#[cfg(all(
    feature = "jemalloc",
    target_os = "linux",
    target_env = "gnu",
    target_arch = "x86_64"
))]
mod allocator;
mod py;
