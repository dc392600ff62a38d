//! Any bytes as a page or as one record: no reading panics, and the scan reads what serde_json reads.

#![no_main]

use backread_core::api::Resource;
use backread_core::decode::page::agreement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    for resource in [Resource::Users, Resource::Messages] {
        agreement::check(body, resource);
        agreement::check_alone(body, resource);
    }
});
