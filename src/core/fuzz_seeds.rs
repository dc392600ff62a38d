//! The inputs the fuzz targets start from, for tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// The seeds in `fuzz/seeds/<target>.json`: a string is text, an array holds bytes.
pub fn fuzz_seeds(target: &str) -> Vec<Vec<u8>> {
    let file = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fuzz/seeds")
        .join(target)
        .with_extension("json");
    let seeds: BTreeMap<String, Value> = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    seeds
        .into_values()
        .map(|seed| match seed {
            Value::String(text) => text.into_bytes(),
            bytes => serde_json::from_value(bytes).unwrap(),
        })
        .collect()
}
