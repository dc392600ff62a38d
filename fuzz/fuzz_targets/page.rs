//! Any bytes as a page and its rows as records: what is read is what `serde_json::Value` says.

#![no_main]

use backread_core::api::Resource;
use backread_core::decode::page::agreement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    for resource in [Resource::Users, Resource::Messages] {
        agreement::check(body, resource);
    }
});
