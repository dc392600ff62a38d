//! Any bytes as a service whose list changes, and that may say what is not so: a walk ends, delivers no
//! row twice, and certifies no list of an honest service without the rows that stayed in place.

#![no_main]

use backread_core::walk::agreement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    agreement::check(bytes);
});
