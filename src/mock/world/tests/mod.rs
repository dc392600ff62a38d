//! What users of the world rely on.

mod changes;
mod lines;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::chunks::Chunks;

fn world(seed: u64, users: u64, lo: u64, hi: u64) -> World {
    World::new(seed, users, lo, hi).unwrap_or_else(|_| unreachable!("the arguments are right"))
}

fn field(row: Option<String>, name: &str) -> Value {
    row.and_then(|row| serde_json::from_str::<Value>(&row).ok())
        .and_then(|row| row.get(name).cloned())
        .unwrap_or_default()
}

fn fields(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

fn users_page(world: &World, offset: u64, limit: usize) -> Vec<Value> {
    let mut out = Chunks::from("[");
    world.view().write_users(offset, limit, &mut out);
    out.push("]");
    serde_json::from_slice(&out.to_vec()).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ids_lead_back_to_their_rows(seed: u64, index in 0..MAX_USERS, position in 0..MAX_LIST) {
        let id = ids::user_id(seed, index);
        prop_assert_eq!(ids::user_index(seed, id), Some(index));
        prop_assert!(index + 1 == MAX_USERS || ids::user_id(seed, index + 1) > id);
        let id = ids::message_id(seed, index, position);
        prop_assert_eq!(ids::message_place(seed, id), Some((index, position)));
        prop_assert!(id < 1 << 53);
        prop_assert!(position + 1 == MAX_LIST || ids::message_id(seed, index, position + 1) > id);
    }

    #[test]
    fn an_id_stands_for_one_row_or_none(seed: u64, id in 0_u64..1 << 54) {
        if let Some(index) = ids::user_index(seed, id) {
            prop_assert_eq!(ids::user_id(seed, index), id);
        }
        if let Some((index, position)) = ids::message_place(seed, id) {
            prop_assert_eq!(ids::message_id(seed, index, position), id);
        }
    }
}

#[test]
fn edits_show_in_lists_and_alone_and_nowhere_else() {
    let world = world(5, 10, 2, 9);
    let user_id = world.view().user_ids().get(4).copied().unwrap_or_default();
    let untouched = world
        .view()
        .user_ids()
        .get(5)
        .and_then(|id| world.user_json(*id));
    let edit = fields(json!({"name": "Ο \"νέος\"", "email": null, "badge": [1, 2.50]}));
    assert_eq!(world.edit_user(user_id, edit), Ok(()));
    let alone = world.user_json(user_id).unwrap_or_default();
    assert!(alone.ends_with(r#","badge":[1,2.5]}"#), "{alone}");
    let listed = users_page(&world, 4, 2);
    assert_eq!(listed.first(), serde_json::from_str(&alone).ok().as_ref());
    assert_eq!(listed.get(1).map(Value::to_string), untouched);

    let message_id = world
        .view()
        .message_ids(user_id)
        .and_then(|ids| ids.last().copied());
    let message_id = message_id.unwrap_or_default();
    let edit = fields(json!({"sender_type": "bot", "sender": {"id": 9}}));
    assert_eq!(world.edit_message(user_id, message_id, edit), Ok(()));
    assert_eq!(
        field(world.message_json(user_id, message_id), "sender"),
        json!({"id": 9})
    );

    assert!(world.edit_user(user_id, fields(json!({"id": 1}))).is_err());
    assert!(world.edit_user(1, Fields::new()).is_err());
}

#[test]
fn the_fingerprint_follows_what_is_served() {
    let print = |seed, users, lo, hi| world(seed, users, lo, hi).fingerprint();
    assert_eq!(print(1, 10, 0, 9), print(1, 10, 0, 9));
    let changed = world(1, 10, 0, 9);
    let user_id = changed
        .view()
        .user_ids()
        .first()
        .copied()
        .unwrap_or_default();
    let mut seen = vec![print(1, 10, 0, 9), print(2, 10, 0, 9), print(1, 11, 0, 9)];
    assert!(changed.add_users(1).is_ok());
    seen.push(changed.fingerprint());
    assert!(changed.add_messages(user_id, 1).is_ok());
    seen.push(changed.fingerprint());
    assert!(
        changed
            .edit_user(user_id, fields(json!({"name": "x"})))
            .is_ok()
    );
    seen.push(changed.fingerprint());
    assert!(changed.remove_user(user_id).is_ok());
    seen.push(changed.fingerprint());
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all);
}

#[test]
fn a_given_end_changes_times_alone() {
    const END: u64 = 1_795_455_000_000; // 2026-11-23T17:30Z
    let usual = world(7, 300, 0, 200);
    let ending = |end| world(7, 300, 0, 200).ending(end);
    let recent = ending(END).unwrap();
    assert_eq!(recent.view().user_ids(), usual.view().user_ids());
    assert_eq!(recent.total_messages(), usual.total_messages());
    let mut latest = 0;
    let mut time = |row: Option<String>, name| {
        let text = field(row, name);
        let moment = calendar::read_timestamp(text.as_str().unwrap()).unwrap();
        latest = latest.max(moment);
        moment
    };
    for id in usual.view().user_ids() {
        let row = recent.user_json(id);
        for name in ["name", "reference", "user_attributes"] {
            assert_eq!(field(row.clone(), name), field(usual.user_json(id), name));
        }
        let mut before = time(row.clone(), "created_at");
        time(row.clone(), "updated_at");
        time(row, "online_at");
        for message_id in usual.view().message_ids(id).unwrap() {
            let row = recent.message_json(id, message_id);
            let moment = time(row, "created_at");
            assert!(before < moment, "message {message_id} of user {id}");
            before = moment;
        }
    }
    assert!(latest <= END, "{latest}");
    assert!(latest > END - 2 * calendar::DAY, "{latest}");

    let prints = [
        usual.fingerprint(),
        recent.fingerprint(),
        ending(END + 1).unwrap().fingerprint(),
    ];
    assert_eq!(recent.fingerprint(), ending(END).unwrap().fingerprint());
    assert_eq!(
        prints
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        3
    );
    assert!(ending(0).is_err());
    assert!(ending(u64::MAX).is_err());
}

/// If this fails, rows have changed: raise the generator's version, then pin the new digest.
#[test]
fn the_generator_version_pins_the_rows() {
    let world = world(7, 60, 0, 90);
    let mut digest = draw::Digest::new();
    for id in world.view().user_ids() {
        digest.text(&world.user_json(id).unwrap_or_default());
        for message_id in world.view().message_ids(id).unwrap_or_default() {
            digest.text(&world.message_json(id, message_id).unwrap_or_default());
        }
    }
    assert_eq!(
        (GENERATOR_VERSION, digest.hex().as_str()),
        (1, "c25fee9202871b27")
    );
}
