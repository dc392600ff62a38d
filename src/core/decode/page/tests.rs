//! Compares what is read of a page with what `serde_json::Value` says of it.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fuzz_seeds::fuzz_seeds;

fn compare(body: &str, resource: Resource) -> usize {
    agreement::check(body.as_bytes(), resource)
}

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

fn body(key: &str, rows: &[Value]) -> String {
    json!({"limit": 99, "offset": 0, "total": rows.len(), key: rows}).to_string()
}

#[test]
fn rows_of_the_documented_shape_are_read() {
    let mut by_user = message_row();
    by_user["sender_type"] = json!("user");
    by_user["sender"] = json!({"id": 5, "name": "Bo", "email": null, "mood": {"a": [1e40]}});
    let rows = [message_row(), by_user];
    assert_eq!(compare(&body("messages", &rows), Resource::Messages), 2);
    assert_eq!(compare(&body("users", &[user_row()]), Resource::Users), 1);
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
fn odd_rows_and_envelopes_are_read() {
    let odd_fields = [
        r#""id":"7""#,
        r#""id":7.0"#,
        r#""id":-0"#,
        r#""id":9223372036854775808"#,
        r#""id":null"#,
        r#""id":7,"id":8"#,
        r#""id":7,"\u0069d":8"#,
        r#""id":7,"body":5"#,
        r#""id":7,"created_at":"yesterday""#,
        r#""id":7,"created_at":"2024-03-05T09:31:07.042\u005a""#,
        r#""id":7,"sender":{"id":1}"#,
        r#""id":7,"sender_type":"bot","sender":{"id":1,"x":2}"#,
        r#""id":7,"sender_type":"user","sender":{"id":1,"forename":"F"}"#,
        r#""id":7,"sender_type":"operator","sender":{"id":1,"name":"N"}"#,
        r#""id":7,"sender_type":"operator","sender":{"id":null,"email":"N"}"#,
        r#""id":7,"sender":{"id":1,"name":"N"},"sender_type":"us\u0065r""#,
        r#""id":7,"sender":[1],"sender_type":"user""#,
        r#""id":7,"sender":null,"sender_type":"user""#,
        r#""id":7,"a":1,"b":{"c":[]},"a":2"#,
        r#""id":7,"user_attributes":null"#,
        r#""id":7,"user_attributes":[null]"#,
        r#""id":7,"user_attributes":[{"value":"v","value":"w"}]"#,
        r#""id" : 7 , "name" : "tab\tquote\"" "#,
        r#""id":7,"extra":"\ud83d\ude00\u00e9\/""#,
        r#""id":7,"read_by_user":1"#,
        r#""id":007"#,
        r#""id":7,"body":"a	b""#,
        r#""id":7,,"#,
    ];
    for (key, resource) in [("users", Resource::Users), ("messages", Resource::Messages)] {
        for field in odd_fields {
            for envelope in [
                r#""limit":99,"offset":0,"total":1"#,
                r#""total":null,"limit":1e2"#,
            ] {
                compare(&format!("{{{envelope},\"{key}\":[{{{field}}}]}}"), resource);
            }
        }
        for odd in [
            "",
            "[]",
            "{}",
            "null",
            "{\"users\":null}",
            "{\"users\":null,\"total\":0}",
            "{\"users\":[],\"users\":[{\"id\":1}]}",
            "{\"users\":[1,\"a\",null,[],{}],\"total\":5}",
            "{\"messages\":[{}]}",
            "{\"users\":[{\"id\":1}]} x",
            "{\"limit\":\"9\",\"users\":[]}",
            "{\"total\":-1,\"users\":[],\"more\":{\"a\":[true,false]}}",
            "\u{feff}{\"users\":[{\"id\":1}]}",
            " {\n\"users\" : [ ] } ",
            "{\"us\\u0065rs\":[{\"id\":1}]}",
        ] {
            compare(odd, resource);
        }
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

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(Value::Null),
        2 => any::<bool>().prop_map(Value::from),
        2 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        4 => ".{0,12}".prop_map(Value::from),
        2 => Just(json!("2024-03-05T09:31:07.042Z")),
        1 => Just(json!("user")),
        1 => Just(json!([])),
        1 => Just(json!({"id": 1, "name": "n"})),
        1 => Just(json!([{"name": "n", "value": null, "other": 1}])),
    ]
}

const FIELDS: [&str; 21] = [
    "id",
    "body",
    "read_by_user",
    "read_by_operator",
    "created_at",
    "file_url",
    "auto_invitation",
    "sender_type",
    "sender",
    "name",
    "email",
    "reference",
    "updated_at",
    "online_at",
    "last_url",
    "user_attributes",
    "forename",
    "surname",
    "picture_thumb_url",
    "extra",
    "other",
];

/// A documented row with some of its fields changed, omitted or added, in any order.
fn row_near(documented: Value) -> impl Strategy<Value = String> {
    let fields: Vec<(String, Value)> = documented
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let changes = proptest::collection::vec((prop::sample::select(&FIELDS[..]), any_value()), 0..3);
    (
        Just(fields).prop_shuffle(),
        0..3_usize,
        changes,
        any::<bool>(),
    )
        .prop_map(|(mut fields, dropped, changes, pretty)| {
            fields.truncate(fields.len() - dropped);
            fields.extend(
                changes
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value)),
            );
            let members: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{}: {value}", Value::from(key.as_str())))
                .collect();
            format!("{{{}}}", members.join(if pretty { ",\n  " } else { "," }))
        })
}

proptest! {
    #[test]
    fn users_near_the_documented_ones_are_read(
        rows in proptest::collection::vec(row_near(user_row()), 0..4),
    ) {
        compare(&format!("{{\"users\":[{}],\"total\":3}}", rows.join(",")), Resource::Users);
    }

    #[test]
    fn messages_near_the_documented_ones_are_read(
        rows in proptest::collection::vec(row_near(message_row()), 0..4),
    ) {
        compare(&format!("{{\"messages\":[{}]}}", rows.join(" , ")), Resource::Messages);
    }

    #[test]
    fn a_page_with_a_byte_changed_is_read_or_refused(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        insert in any::<bool>(),
    ) {
        let mut bytes = body("messages", &[message_row()]).into_bytes();
        let at = at.index(bytes.len());
        if insert {
            bytes.insert(at, byte);
        } else {
            bytes[at] = byte;
        }
        compare(&String::from_utf8_lossy(&bytes), Resource::Messages);
    }
}
