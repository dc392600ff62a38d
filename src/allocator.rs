//! The allocator of the bindings. With glibc's, threads that free each other's pages wait for its
//! locks: a table of 500,000 rows took 1.3 times as long (benches/speed.py, "own"). mimalloc is as fast
//! and smaller, but reserves a gigabyte of addresses, which `ulimit -v` counts, and a forked child may
//! hang at its exit. Other platforms were not measured.

#![allow(unsafe_code)]

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Larger blocks, such as the columns of a table, go back to the system as soon as they are freed;
/// others wait for the next allocations of their thread. jemalloc reads the symbol as a pointer to
/// text that ends with a zero byte.
#[unsafe(export_name = "_rjem_malloc_conf")]
static SETTINGS: &[u8; 27] = b"oversize_threshold:1048576\0";
