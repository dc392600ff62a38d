//! Worlds as JSON lines.

use std::fmt::Write as _;

use super::changes::{Plain, steps};
use super::*;

fn written(world: &World) -> String {
    let mut out = Vec::new();
    world.to_jsonl(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn read(lines: &str) -> World {
    World::from_jsonl(lines.as_bytes()).unwrap()
}

/// Every page and every row of a world, as text.
fn everything(world: &World) -> String {
    let view = world.view();
    let mut all = String::new();
    let users = view.users().ids();
    for user in [None].into_iter().chain(users.into_iter().map(Some)) {
        let list = view.list(user).unwrap();
        for offset in (0..=list.total()).step_by(30) {
            let page = page(&list, offset, 99);
            let _ = writeln!(all, "{}", String::from_utf8_lossy(&page));
        }
        for id in list.ids() {
            let _ = writeln!(all, "{id} {:?}", view.read(user, id));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_world_written_and_read_back_serves_the_same_bytes(
        seed: u64, users in 0_u64..80, steps in steps(20),
    ) {
        let world = world(seed, users, 0, 80);
        let mut plain = Plain::of(&world);
        plain.change(&world, &steps);
        let lines = written(&world);
        let back = read(&lines);
        prop_assert_eq!(everything(&back), everything(&world));
        prop_assert_eq!(written(&back), lines.clone());
        prop_assert_eq!(read(&lines).fingerprint(), back.fingerprint());
    }

    #[test]
    fn a_world_from_lines_is_changed_like_any_other(
        seed: u64, users in 1_u64..80, steps in steps(20),
        order in any::<prop::sample::Index>(),
    ) {
        let lines = written(&world(seed, users, 0, 90));
        let mut lines: Vec<&str> = lines.lines().collect();
        let turned = order.index(lines.len());
        lines.rotate_left(turned);
        let world = read(&lines.join("\n"));
        let mut plain = Plain::of(&world);
        plain.change(&world, &steps);
        plain.check(&world);
    }
}

#[test]
fn rows_stay_as_they_were_given() {
    let row = r#"{"name":"\u00e4\/ \" ","id":7,"created_at":"2024-03-05T10:00:00+01:00","x":1.50}"#;
    let message = r#"{"sender":{"deep":[ ]},"id":3,"body":"a  b"}"#;
    let spaced = row
        .replace(':', " : ")
        .replace("10 : 00 : 00+01 : 00", "10:00:00+01:00");
    let line = spaced.replacen('{', &format!("{{ \"messages\":[ {message} ],\t"), 1);
    let world = read(&format!("\n{line}\r\n\n"));
    assert_eq!(text(&world, None, 7), row);
    let kept = message.replace("[ ]", "[]");
    assert_eq!(text(&world, Some(7), 3), kept);
    let expected = format!("{},\"messages\":[{kept}]}}\n", row.trim_end_matches('}'));
    assert_eq!(written(&world), expected);
    assert_ne!(world.fingerprint(), read(row).fingerprint());
}

#[test]
fn a_line_that_is_no_user_is_named_with_the_reason() {
    let none = r#"{"id":1,"messages":[]}"#;
    for (line, reason) in [
        (r#"{"id":2"#, "EOF while parsing an object (column 7)"),
        ("{}", "has no id"),
        (
            r#"{"id":-1}"#,
            "id must be an integer from 0 to 2^63 - 1, not -1",
        ),
        (none, "there is a user 1 already"),
        (
            r#"{"id":2,"messages":[3]}"#,
            "user 2: messages[0]: invalid type: integer",
        ),
        (
            r#"{"id":2,"messages":[{"id":1},{"id":1}]}"#,
            "user 2: messages[1]: there is a message 1 already",
        ),
    ] {
        let lines = format!("{none}\n{line}\n");
        let refused = World::from_jsonl(lines.as_bytes()).unwrap_err();
        assert!(
            refused.starts_with(&format!("line 2: {reason}")),
            "{refused}"
        );
    }
}

#[test]
fn rows_added_to_given_ones_follow_them() {
    let messages = r#"[{"id":900,"body":"hi","created_at":"2030-01-01T00:00:00.000Z"},{"id":20}]"#;
    let world = read(&format!(
        "{{\"id\":50000,\"name\":\"Zoë\",\"messages\":{messages}}}\n{{\"id\":3,\"email\":null}}"
    ));
    assert_eq!(world.view().users().ids(), [50_000, 3]);
    assert_eq!((world.users(), world.total_messages()), (2, 2));
    assert_eq!(world.messages_per_user(), (0, 2));
    let users = world.add(None, 70).unwrap();
    assert!(users.is_sorted() && users[0] > 50_000);
    assert_eq!(world.view().users().position(users[69]), Some(71));

    let added = world.add(Some(50_000), 40).unwrap();
    assert!(added.is_sorted() && added[0] > 900);
    let user = parsed(&world, None, 50_000);
    assert!(user["updated_at"].as_str() > Some("2030-01-01T00:00:00.000Z"));
    assert_eq!(user["name"], json!("Zoë"));
    let rows = added.iter().map(|id| parsed(&world, Some(50_000), *id));
    let rows: Vec<Value> = rows.collect();
    let mut by_user = rows
        .iter()
        .filter(|row| row["sender_type"] == "user")
        .peekable();
    let sender = json!({"id": 50_000, "name": "Zoë", "email": null});
    assert!(by_user.peek().is_some() && by_user.all(|row| row["sender"] == sender));
    assert!(rows.is_sorted_by_key(|row| row["created_at"].to_string()));
}
