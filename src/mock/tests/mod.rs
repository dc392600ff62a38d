//! What the mock does on a plain socket, and the parts that no client sees. What it answers is
//! tested in `tests/mock/`.

mod audits;
mod determinism;
mod faults;
mod grammar;
mod rules;
mod stub;
