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

#[test]
fn edits_show_in_lists_and_alone_and_nowhere_else() {
    let world = world(5, 10, 2, 9);
    let ids = world.view().users().ids();
    let (user, untouched) = (ids[4], text(&world, None, ids[5]));
    let edit = fields(json!({"name": "Ο \"νέος\"", "email": null, "badge": [1, 2.50]}));
    world.edit(None, user, edit).unwrap();
    let alone = text(&world, None, user);
    assert!(alone.ends_with(r#","badge":[1,2.5]}"#), "{alone}");
    let listed = page(&world.view().users(), 4, 2);
    assert_eq!(listed, format!("{alone},{untouched}").into_bytes());

    let message = world.view().list(Some(user)).unwrap().id_at(1).unwrap();
    let edit = fields(json!({"sender_type": "bot", "sender": {"id": 9}}));
    world.edit(Some(user), message, edit).unwrap();
    assert_eq!(
        parsed(&world, Some(user), message)["sender"],
        json!({"id": 9})
    );

    assert!(world.edit(None, user, fields(json!({"id": 1}))).is_err());
    assert!(world.edit(None, 1, Fields::new()).is_err());
}

#[test]
fn the_fingerprint_follows_what_is_served() {
    let print = |seed, users, lo, hi| world(seed, users, lo, hi).fingerprint();
    assert_eq!(print(1, 10, 0, 9), print(1, 10, 0, 9));
    let changed = world(1, 10, 0, 9);
    let mut seen = vec![print(1, 10, 0, 9), print(2, 10, 0, 9), print(1, 11, 0, 9)];
    changed.add(None, 1).unwrap();
    seen.push(changed.fingerprint());
    changed.add(Some(42), 1).unwrap();
    seen.push(changed.fingerprint());
    changed
        .edit(None, 42, fields(json!({"name": "x"})))
        .unwrap();
    seen.push(changed.fingerprint());
    changed.remove(None, 42).unwrap();
    seen.push(changed.fingerprint());
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all);
}
