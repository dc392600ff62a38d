//! Any text as a base URL and as a proxy: no request leaves the origin or its path, and no message
//! shows a password.

#![no_main]

use backread_core::config::agreement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    agreement::check(text);
});
