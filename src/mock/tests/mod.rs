//! What the mock does on a plain socket, and the parts that no client sees. What it answers is
//! tested in `tests/mock/`.

mod admin_access;
mod audits;
mod body;
mod determinism;
mod faults;
mod grammar;
mod rate;
mod requests;
mod rules;
mod stub;
