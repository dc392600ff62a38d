//! What users of the world rely on.

mod changes;
mod lines;
mod speed;

use std::time::{Duration, Instant};

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::mock::chunks::Chunks;

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
    fn a_larger_world_keeps_the_rows_of_a_smaller_one(seed: u64, users in 1_u64..50, more: u32) {
        let small = world(seed, users, 0, 60);
        let large = world(seed, users + u64::from(more >> 2), 0, 60);
        for id in small.view().user_ids() {
            prop_assert_eq!(small.user_json(id), large.user_json(id));
            let ids = small.view().message_ids(id).unwrap_or_default();
            prop_assert_eq!(Some(ids.clone()), large.view().message_ids(id));
            for message_id in ids {
                let row = small.message_json(id, message_id);
                prop_assert!(row.is_some());
                prop_assert_eq!(row, large.message_json(id, message_id));
            }
        }
    }

    #[test]
    fn ids_lead_back_to_their_rows(seed: u64, index in 0..MAX_USERS, position in 0..MAX_LIST) {
        let id = identity::user_id(seed, index);
        prop_assert_eq!(identity::user_index(seed, id), Some(index));
        prop_assert!(index + 1 == MAX_USERS || identity::user_id(seed, index + 1) > id);
        let id = identity::message_id(seed, index, position);
        prop_assert_eq!(identity::message_place(seed, id), Some((index, position)));
        prop_assert!(id < 1 << 53);
        prop_assert!(position + 1 == MAX_LIST || identity::message_id(seed, index, position + 1) > id);
    }

    #[test]
    fn an_id_stands_for_one_row_or_none(seed: u64, id in 0_u64..1 << 54) {
        if let Some(index) = identity::user_index(seed, id) {
            prop_assert_eq!(identity::user_id(seed, index), id);
        }
        if let Some((index, position)) = identity::message_place(seed, id) {
            prop_assert_eq!(identity::message_id(seed, index, position), id);
        }
    }

    #[test]
    fn rows_have_the_documented_fields_in_order(seed: u64, index in 0_u64..10_000_000) {
        let world = world(seed, index + 1, 1, 30);
        let id = identity::user_id(seed, index);
        let user = world.user_json(id).unwrap_or_default();
        let user = fields(serde_json::from_str(&user).unwrap_or_default());
        prop_assert_eq!(
            user.keys().map(String::as_str).collect::<Vec<_>>(),
            ["id", "name", "email", "reference", "created_at", "updated_at", "online_at",
             "last_url", "user_attributes"]
        );
        prop_assert!(user.values().all(|value| !value.is_null()));
        prop_assert_eq!(user.get("id"), Some(&json!(id)));
        let moment = |name: &str| user.get(name).and_then(Value::as_str).unwrap_or_default();
        prop_assert!(moment("created_at") <= moment("updated_at"));
        let attributes = user.get("user_attributes").and_then(Value::as_array);
        prop_assert!(attributes.is_some_and(|list| list.len() <= 4));

        let ids = world.view().message_ids(id).unwrap_or_default();
        let mut last = moment("created_at").to_owned();
        for (position, message_id) in ids.into_iter().enumerate() {
            let message = world.message_json(id, message_id).unwrap_or_default();
            let message = fields(serde_json::from_str(&message).unwrap_or_default());
            prop_assert_eq!(
                message.keys().map(String::as_str).collect::<Vec<_>>(),
                ["id", "body", "read_by_user", "read_by_operator", "created_at", "file_url",
                 "auto_invitation", "sender_type", "sender"]
            );
            let sender = message.get("sender").and_then(Value::as_object).cloned();
            let sender = sender.unwrap_or_default();
            let keys: Vec<&str> = sender.keys().map(String::as_str).collect();
            let invitation = message.get("auto_invitation") == Some(&json!(true));
            if message.get("sender_type") == Some(&json!("user")) {
                prop_assert_eq!(keys, ["id", "name", "email"]);
                prop_assert_eq!(sender.get("name"), user.get("name"));
                prop_assert!(!invitation);
            } else {
                prop_assert_eq!(keys, ["id", "forename", "surname", "email", "picture_thumb_url"]);
                prop_assert!(!invitation || position == 0);
            }
            let created = message.get("created_at").and_then(Value::as_str).unwrap_or_default();
            prop_assert!(last.as_str() < created);
            last = created.to_owned();
        }
        prop_assert!(moment("online_at") > last.as_str());
    }
}

#[test]
fn a_fixed_range_gives_exactly_that_many() {
    let world = world(3, 20, 17, 17);
    for id in world.view().user_ids() {
        assert_eq!(world.view().total_messages(id), Some(17));
    }
    assert_eq!(world.total_messages(), 340);
}

#[test]
fn size_costs_neither_time_nor_memory() {
    let start = Instant::now();
    let world = world(1, 10_000_000, 0, 500);
    assert!(start.elapsed() < Duration::from_secs(1));
    let last = users_page(&world, 9_999_999, 99);
    assert_eq!(last.len(), 1);
    assert_eq!(world.total_users(), 10_000_000);
}

#[test]
fn impossible_worlds_are_refused_by_argument() {
    for (users, lo, hi, name) in [
        (MAX_USERS + 1, 0, 1, "users"),
        (1, 5, 4, "messages_per_user"),
        (1, 0, MAX_GENERATED + 1, "messages_per_user"),
    ] {
        let refused = World::new(0, users, lo, hi)
            .err()
            .map(|error| error.to_string());
        assert!(refused.is_some_and(|text| text.starts_with(name)), "{name}");
    }
}

#[test]
fn added_rows_stand_at_the_end() {
    let world = world(5, 10, 0, 40);
    let before = world.view().user_ids();
    let messages = world.total_messages();
    let added = world.add_users(3).unwrap_or_default();
    assert_eq!(added.len(), 3);
    assert_eq!(
        world.view().user_ids(),
        [before.clone(), added.clone()].concat()
    );
    let brought: u64 = added
        .iter()
        .filter_map(|id| world.view().total_messages(*id))
        .sum();
    assert_eq!(world.total_messages(), messages + brought);

    let user_id = before.first().copied().unwrap_or_default();
    let moment = |name| field(world.user_json(user_id), name).to_string();
    let (updated, online) = (moment("updated_at"), moment("online_at"));
    let old = world.view().message_ids(user_id).unwrap_or_default();
    let new = world.add_messages(user_id, 2).unwrap_or_default();
    assert_eq!(
        world.view().message_ids(user_id),
        Some([old, new.clone()].concat())
    );
    assert!(moment("updated_at") > updated && moment("online_at") > online);
    assert!(
        new.iter()
            .all(|id| world.message_json(user_id, *id).is_some())
    );
    assert_eq!(world.total_messages(), messages + brought + 2);
}

#[test]
fn removed_rows_are_gone_and_the_rest_close_up() {
    let world = world(5, 200, 3, 9);
    let ids = world.view().user_ids();
    let gone: Vec<u64> = ids.iter().copied().step_by(3).collect();
    let kept: Vec<u64> = ids
        .iter()
        .copied()
        .filter(|id| !gone.contains(id))
        .collect();
    let total = world.total_messages();
    let lost: u64 = gone
        .iter()
        .filter_map(|id| world.view().total_messages(*id))
        .sum();
    for id in &gone {
        assert_eq!(world.remove_user(*id), Ok(()));
        assert_eq!(
            world.remove_user(*id),
            Err(WorldError::NoUser { user_id: *id })
        );
        assert_eq!(world.user_json(*id), None);
    }
    assert_eq!(world.total_messages(), total - lost);
    assert_eq!(world.total_users(), kept.len() as u64);
    let page = users_page(&world, 50, 10);
    let expected: Vec<Value> = kept.iter().skip(50).take(10).map(|id| json!(id)).collect();
    assert_eq!(
        page.iter()
            .filter_map(|row| row.get("id").cloned())
            .collect::<Vec<_>>(),
        expected
    );

    let user_id = kept.first().copied().unwrap_or_default();
    let mut messages = world.view().message_ids(user_id).unwrap_or_default();
    let message_id = messages.remove(1);
    assert_eq!(world.remove_message(user_id, message_id), Ok(()));
    assert_eq!(
        world.remove_message(user_id, message_id),
        Err(WorldError::NoMessage {
            user_id,
            message_id
        })
    );
    assert_eq!(world.view().message_ids(user_id), Some(messages.clone()));
    let added = world.add_messages(user_id, 1).unwrap_or_default();
    assert!(
        added
            .iter()
            .all(|id| *id > message_id && !messages.contains(id))
    );
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
