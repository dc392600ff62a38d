//! What users of the world rely on.

mod changes;
mod generated;
mod lines;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::chunks::Chunks;

fn world(seed: u64, users: u64, lo: u64, hi: u64) -> World {
    World::new(seed, users, lo, hi).unwrap()
}

/// A row as text.
fn text(world: &World, user: Option<u64>, id: u64) -> String {
    String::from_utf8(world.view().read(user, id).unwrap().to_vec()).unwrap()
}

fn parsed(world: &World, user: Option<u64>, id: u64) -> Value {
    serde_json::from_str(&text(world, user, id)).unwrap()
}

fn fields(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

fn page(list: &List<'_>, offset: u64, limit: u64) -> Vec<u8> {
    let mut out = Chunks::default();
    list.write(offset, limit, &mut out);
    out.to_vec()
}
