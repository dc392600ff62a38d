//! `backread` reads every user and every message of a chat widget's service.
//!
//! `core` is the client and has no Python in it, `mock` is a fake of the service, and `py` holds the
//! bindings of both for CPython. `mock` and `core` share the `clock` below both, and no other type.

pub mod clock;
pub mod core;
#[cfg(feature = "mock")]
pub mod mock;
#[cfg(feature = "python")]
mod py;

// glibc's allocator has locks, and a page is often freed by another thread than the one that made it:
// a table of 500,000 rows took 1.3 times as long with it (benches/speed.py, "own").
#[cfg(feature = "python")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
