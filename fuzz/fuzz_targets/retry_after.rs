//! Any headers as an asked wait: no reading panics, none asks for years, and whole numbers and dates are
//! what a plain reading makes of them.

#![no_main]

use backread_core::retry::agreement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|lines: &[u8]| {
    agreement::check(lines);
});
