//! Compares what is read of a page with what `serde_json::Value` says of it.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fuzz_seeds::fuzz_seeds;
use crate::schema::Object;

fn user_row() -> Value {
    json!({
        "id": 1, "name": "Ann \"A\" Ön", "email": "a@example.org", "reference": "r-1",
        "created_at": "2024-03-05T09:31:07.042Z", "updated_at": "2024-03-05T09:31:07Z",
        "online_at": null, "last_url": "https://example.org/a?b=c",
        "user_attributes": [{"name": "plan", "value": "pro"}, {"name": null, "more": [1, {"a": 2.5e3}]}]
    })
}

fn message_row() -> Value {
    json!({
        "id": 7, "body": "Hello\nworld 😀", "read_by_user": true, "read_by_operator": false,
        "created_at": "2024-03-05T09:31:07.042Z", "file_url": null, "auto_invitation": false,
        "sender_type": "operator",
        "sender": {"id": 3, "forename": "Ann", "surname": "Lee", "email": "x@y.z",
                   "picture_thumb_url": null}
    })
}

#[test]
fn what_is_no_record_is_refused() {
    let user = user_row().to_string();
    let two = format!("{user}{user}");
    let cut = user.replace('}', "");
    for (text, misfit) in [
        ("", Misfit::NotJson),
        (&two, Misfit::NotJson),
        (&cut, Misfit::NotJson),
        ("[]", Misfit::Envelope),
        ("7", Misfit::Envelope),
    ] {
        let refused = Row::alone(Arc::new(text.to_owned()), Resource::Users).unwrap_err();
        assert_eq!(refused.misfit, misfit, "{text}");
    }
}

#[test]
fn a_row_that_is_nested_too_deep_is_left_out_and_nothing_else() {
    for depth in [100, 126, 127, 300, 100_000] {
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let body =
            format!("{{\"users\":[{{\"id\":1,\"deep\":{deep}}},{{\"id\":2}}],\"x\":{deep}}}");
        let page = Page::of_body(body.into(), None, Resource::Users).unwrap();
        let read: Vec<_> = page
            .rows
            .iter()
            .map(|row| (row.id, row.unreadable))
            .collect();
        let too_deep = (depth > 126).then_some(Unreadable::TooDeep);
        assert_eq!(read, [(Some(1), too_deep), (Some(2), None)], "{depth}");
    }
}

#[test]
fn what_the_fuzzer_starts_from_is_read() {
    let mut read = [0, 0];
    for body in fuzz_seeds("page") {
        for (rows, resource) in read.iter_mut().zip([Resource::Users, Resource::Messages]) {
            *rows += agreement::check(&body, resource);
        }
    }
    assert!(read.iter().all(|rows| *rows > 30), "{read:?}");
}

/// Any JSON, with all kinds of strings and numbers, and values that fields may have.
fn any_json() -> impl Strategy<Value = String> {
    let text = proptest::collection::vec(
        prop_oneof![
            "[^\"\\\\\\p{Cc}]{0,20}",
            "\\\\[\"\\\\/bfnrt]",
            any::<u16>().prop_map(|unit| format!("\\u{unit:04X}")),
        ],
        0..6,
    );
    let leaf = prop_oneof![
        4 => Just("null".to_owned()),
        2 => any::<bool>().prop_map(|truth| truth.to_string()),
        2 => "(0|-?[1-9][0-9]{0,20})([.][0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        1 => any::<i64>().prop_map(|number| number.to_string()),
        4 => text.prop_map(|parts| format!("\"{}\"", parts.concat())),
        2 => Just("\"2024-03-05T09:31:07.042Z\"".to_owned()),
        1 => Just("\"user\"".to_owned()),
        1 => Just(r#"{"id": 1, "name": "n"}"#.to_owned()),
        1 => Just(r#"[{"name": "n", "value": null, "other": 1}]"#.to_owned()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let items = proptest::collection::vec(inner, 0..6);
        (items, any::<bool>(), " {0,2}").prop_map(|(items, object, space)| {
            let keyed = |(number, item)| match object {
                true => format!("{space}\"k\\n{number}\"{space}:{item}"),
                false => item,
            };
            let items: Vec<String> = items.into_iter().enumerate().map(keyed).collect();
            let joined = items.join(&format!("{space},\n"));
            match object {
                true => format!("{{{joined}{space}}}"),
                false => format!("[{space}{joined}]"),
            }
        })
    })
}

/// A documented row with some of its fields changed, omitted or added, in any order.
fn row_near(documented: Value) -> impl Strategy<Value = String> {
    let objects = [Object::User, Object::Message, Object::Sender];
    let names = objects.iter().flat_map(|object| object.fields());
    let mut names: Vec<&str> = names.map(|field| field.name).collect();
    names.extend(["extra", "other"]);
    let fields = documented.as_object().unwrap().iter();
    let fields = fields.map(|(key, value)| (key.clone(), value.to_string()));
    let fields: Vec<(String, String)> = fields.collect();
    let changes = proptest::collection::vec((prop::sample::select(names), any_json()), 0..3);
    (
        Just(fields).prop_shuffle(),
        0..3_usize,
        changes,
        any::<bool>(),
    )
        .prop_map(|(mut fields, dropped, changes, pretty)| {
            fields.truncate(fields.len() - dropped);
            let changes = changes.into_iter();
            fields.extend(changes.map(|(key, value)| (key.to_owned(), value)));
            let members = fields.iter();
            let members: Vec<String> = members
                .map(|(key, value)| format!("{}: {value}", Value::from(key.as_str())))
                .collect();
            format!("{{{}}}", members.join(if pretty { ",\n  " } else { "," }))
        })
}

proptest! {
    #[test]
    fn rows_near_the_documented_ones_are_read(
        users in proptest::collection::vec(row_near(user_row()), 0..4),
        messages in proptest::collection::vec(row_near(message_row()), 0..4),
    ) {
        let users = format!("{{\"users\":[{}],\"total\":3}}", users.join(","));
        agreement::check(users.as_bytes(), Resource::Users);
        let messages = format!("{{\"messages\":[{}]}}", messages.join(" , "));
        agreement::check(messages.as_bytes(), Resource::Messages);
    }

    #[test]
    fn a_page_with_a_byte_changed_is_read_or_refused(
        row in row_near(message_row()),
        at in any::<prop::sample::Index>(),
        byte in prop_oneof![
            any::<u8>(),
            prop::sample::select(b"\"\\{}[],:0123456789eE+-.ntfu \x1f\x00a".to_vec()),
        ],
        remove in any::<bool>(),
    ) {
        let mut bytes = format!("{{\"messages\":[{row}],\"total\":1}}").into_bytes();
        let at = at.index(bytes.len());
        if remove {
            bytes.remove(at);
        } else {
            bytes.insert(at, byte);
        }
        agreement::check(&bytes, Resource::Messages);
    }
}
