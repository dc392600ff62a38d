//! The allocator of the bindings; `.cargo/config.toml` has its setting. With glibc's, threads that free
//! each other's pages wait for its locks: a table of 500,000 rows took 1.3 times as long
//! (benches/speed.py, "own"). mimalloc is as fast and smaller, but reserves a gigabyte of addresses, which
//! `ulimit -v` counts, and a forked child may hang at its exit. Other platforms were not measured.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
