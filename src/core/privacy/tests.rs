//! What is left of a row.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::arrow::columns::{MessageColumns, UserColumns};
use crate::schema::{Kind, Object};

const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

fn row(json: &Value, resource: Resource) -> Row {
    Row::alone(Arc::new(json.to_string()), resource).unwrap()
}

/// An object with every documented field, and one that is not.
fn object(of: Object) -> Value {
    let field = |kind: Kind, name: &str| match kind {
        Kind::Id | Kind::Integer => json!(7),
        Kind::Text | Kind::Label => json!(format!("private {name}")),
        Kind::Category => json!("user"),
        Kind::Boolean => json!(true),
        Kind::Timestamp => json!("2026-01-02T03:04:05.678Z"),
        Kind::Attributes => json!([object(Object::UserAttribute)]),
        Kind::Sender => object(Object::Sender),
    };
    let fields = of.fields().iter();
    let mut members: serde_json::Map<String, Value> = fields
        .map(|each| (each.name.to_owned(), field(each.kind, each.name)))
        .collect();
    let mood = json!({"private": ["private", 491701234567_u64, true]});
    members.insert("mood".to_owned(), mood);
    members.insert("private name".to_owned(), json!("private"));
    Value::Object(members)
}

/// What columns hold of a row.
fn stored(privacy: &Privacy, row: &Row) -> String {
    let (mut users, mut messages) = (UserColumns::default(), MessageColumns::default());
    match row.resource() {
        Resource::Users => users.append_row(row, Some(privacy)).unwrap(),
        Resource::Messages => messages.append_row(7, row, Some(privacy)).unwrap(),
    }
    format!(
        "{:?} {:?}",
        users.finish().unwrap(),
        messages.finish().unwrap()
    )
}

fn privacy() -> Privacy {
    Privacy::new(Some(KEY), false, false)
}

#[test]
fn no_text_of_a_person_is_left_but_the_body_and_the_names_of_attributes() {
    let privacy = privacy();
    let user = row(&object(Object::User), Resource::Users);
    let told = stored(&privacy, &user);
    assert_eq!(told.matches("private").count(), 1, "{told}");
    assert!(told.contains("private name"), "{told}");
    assert!(!told.contains("491701234567"), "{told}");
    let mut message = object(Object::Message);
    for sender_type in ["user", "operator", "bot"] {
        message["sender_type"] = json!(sender_type);
        let message = row(&message, Resource::Messages);
        let told = stored(&privacy, &message);
        assert_eq!(told.matches("private").count(), 1, "{told}");
        assert!(told.contains("private body"), "{told}");
    }
}

#[test]
fn null_stays_null_and_empty_stays_empty() {
    let user = json!({"id": 1, "name": null, "email": "", "user_attributes": [], "last_url": ""});
    let user = row(&user, Resource::Users);
    let (text, user) = privacy().user(&user).unwrap();
    let read = [user.name, user.email, user.last_url].map(|span| span.map(|span| span.text(&text)));
    assert_eq!(read, [None, Some("".into()), Some("".into())]);
    assert_eq!(user.user_attributes.map(|list| list.len()), Some(0));
}

#[test]
fn of_an_address_only_the_host_is_kept() {
    let pseudonyms = Pseudonyms::new(KEY);
    let page = pseudonyms.page("https://jane:pw@Shop.example:8443/users/jane?mail=j@x.example#me");
    assert!(
        page.starts_with("https://shop.example:8443/page-"),
        "{page}"
    );
    let plain = pseudonyms.page("https://shop.example:8443/users/jane");
    assert_eq!(page, plain);
    let start = pseudonyms.page("http://shop.example/?q=jane");
    assert_eq!(start, "http://shop.example/");
    for odd in ["mailto:jane@x.example", "/users/jane", "file:///jane"] {
        assert!(pseudonyms.page(odd).starts_with("url-"), "{odd}");
    }
}

#[test]
fn bodies_are_dropped_wherever_they_are() {
    let privacy = Privacy::new(None, true, false);
    for body in [json!("private"), json!(["private"]), Value::Null] {
        let message = json!({
            "id": 1, "body": body, "body_html": "<p>private</p>",
            "sender_type": "user", "sender": {"id": 2, "last_message": "private"},
        });
        let message = row(&message, Resource::Messages);
        let told = stored(&privacy, &message);
        assert!(!told.contains("private"), "{told}");
    }
}

#[test]
fn bodies_are_redacted_wherever_they_are() {
    let privacy = Privacy::new(None, false, true);
    for (field, body) in [
        ("body", json!("write to jane@example.com")),
        ("body", json!(["write to jane@example.com"])),
        ("body", json!(4111111111111111_u64)),
        (
            "body_html",
            json!({"p": "call +49 170 1234567", "jane@example.com": 1}),
        ),
        ("jane@example.com", json!(1)),
        (
            "sender",
            json!({"id": 2, "phone": "+49 170 1234567", "jane@example.com": 1}),
        ),
    ] {
        let message = json!({"id": 1, "sender_type": "user", field: body});
        let told = stored(&privacy, &row(&message, Resource::Messages));
        let left = ["jane", "1234567", "4111"].map(|text| told.contains(text));
        assert_eq!(left, [false; 3], "{told}");
    }
}

#[test]
fn fields_whose_names_are_redacted_alike_are_kept_apart() {
    let privacy = Privacy::new(None, false, true);
    let message = json!({"id": 1, "jane@example.com": "one", "joe@example.com": "two"});
    let message = row(&message, Resource::Messages);
    let (text, message) = privacy.message(&message).unwrap();
    let extra = message.extra.iter();
    let extra = extra.map(|(name, value)| (name.text(&text), value.of(&text)));
    let extra: Vec<_> = extra.collect();
    assert_eq!([extra[0].1, extra[1].1], [r#""one""#, r#""two""#]);
    assert_eq!(format!("{} 2", extra[0].0), extra[1].0);
}

#[test]
fn rejects_say_nothing_either() {
    let page = |rows: &str| {
        let json = format!(r#"{{"limit":9,"offset":0,"total":3,"messages":[{rows}]}}"#);
        let text = crate::decode::json::Text::repair(json.into(), None);
        crate::decode::page::Page::read(text, Resource::Messages).unwrap()
    };
    let page = page(
        r#""private jane@example.com",{"id":"private","body":"jane@example.com"},{"sender":"jane@example.com"}"#,
    );
    for (privacy, of_all) in [
        (Privacy::new(Some(KEY), false, false), true),
        (Privacy::new(None, true, false), true),
        (Privacy::new(None, false, true), false),
    ] {
        assert_eq!(page.rows.len(), 3);
        for row in &page.rows {
            let (json, reason) = privacy.reject(row);
            assert!(!json.contains("jane"), "{json}");
            assert!(!of_all || !json.contains("private"), "{json}");
            assert!(
                !reason.contains("jane") && !reason.contains("private"),
                "{reason}"
            );
        }
    }
}

#[test]
fn its_debug_form_has_no_key() {
    let told = format!("{:?}", privacy());
    assert!(
        !told.contains("abcdef") && !told.contains("97, 98"),
        "{told}"
    );
}
