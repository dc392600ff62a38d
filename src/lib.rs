//! `backread` reads every user and every message of a chat widget's service.
//!
//! This package is Python's extension module. `backread-core` is the client and has no Python in it,
//! `backread-mock` is a fake of the service. They share the clock of `backread-clock`, and no other type.

mod py;

/// The allocator of the bindings; `.cargo/config.toml` has its setting. With glibc's, threads that free
/// each other's pages wait for its locks: a table of 500,000 rows took 1.3 times as long
/// (benches/speed.py, "own"). mimalloc is as fast and smaller, but reserves a gigabyte of addresses, which
/// `ulimit -v` counts, and a forked child may hang at its exit. Other platforms were not measured.
#[cfg(all(
    feature = "jemalloc",
    target_os = "linux",
    target_env = "gnu",
    target_arch = "x86_64"
))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
