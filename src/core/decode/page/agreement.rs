//! What `serde_json::Value` says of a page and of its rows, for the tests and the fuzzer.

// A check fails by panicking.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{Page, Row, Unreadable};
use crate::api::Resource;
use crate::decode::json::Text;
use crate::decode::rows::{self, Extra};
use crate::error::Misfit;
use crate::schema::{Kind, Object, SenderType};
use crate::timestamp::Timestamp;

/// Checks a body as a page, and each of its rows by itself; returns how many rows were read.
pub fn check(body: &[u8], resource: Resource) -> usize {
    let text = Text::repair(Bytes::copy_from_slice(body), None);
    let json = Arc::clone(&text.json);
    let page = Page::read(text, resource);
    let value: Value = match serde_json::from_str(&json) {
        Ok(value) => value,
        // serde_json reads no deeper nesting.
        Err(error) if error.to_string().starts_with("recursion limit") => return 0,
        Err(_) => {
            assert_eq!(page.unwrap_err().misfit, Misfit::NotJson, "{json}");
            return 0;
        }
    };
    let items = match value.get(resource.key()) {
        Some(Value::Array(items)) => items.as_slice(),
        Some(Value::Null) if value["total"].as_i64().is_some() => &[],
        _ => {
            assert_eq!(page.unwrap_err().misfit, Misfit::Envelope, "{json}");
            return 0;
        }
    };
    let page = page.unwrap();
    let number = |name: &str| value[name].as_i64();
    let envelope = (page.limit, page.offset, page.total);
    assert_eq!(
        envelope,
        (number("limit"), number("offset"), number("total")),
        "{json}"
    );
    assert_eq!(page.rows.len(), items.len(), "{json}");
    for (row, item) in page.rows.iter().zip(items) {
        check_row(row, item);
        if item.is_object() {
            let alone = Row::alone(Arc::new(format!(" {}\n", row.json())), resource);
            check_row(&alone.unwrap(), item);
        }
    }
    page.rows
        .iter()
        .filter(|row| row.unreadable.is_none())
        .count()
}

fn check_row(row: &Row, item: &Value) {
    assert_eq!(serde_json::from_str::<Value>(row.json()).unwrap(), *item);
    let id = item.get("id").and_then(Value::as_i64);
    let unreadable = match item {
        Value::Object(_) if id.is_some() => None,
        Value::Object(_) => Some(Unreadable::NoId),
        _ => Some(Unreadable::NoObject),
    };
    assert_eq!((row.id, row.unreadable), (id, unreadable), "{item}");
    let (object, read) = match row.resource() {
        Resource::Users => (
            Object::User,
            row.user()
                .map(|(text, row)| (text, row.values(text).into(), &row.extra)),
        ),
        Resource::Messages => (
            Object::Message,
            row.message()
                .map(|(text, row)| (text, row.values(text).into(), &row.extra)),
        ),
    };
    match (read, unreadable) {
        (Ok((text, values, extra)), None) => {
            let (expected, odd_values) = expected(object, item, None);
            assert_eq!(shown(object, text, values, extra), expected, "{item}");
            assert_eq!(row.odd_values, odd_values, "{item}");
        }
        (read, unreadable) => assert!(read.is_err() && unreadable.is_some(), "{item}"),
    }
}

/// What a row holds, as JSON.
fn shown(object: Object, text: &str, values: Vec<rows::Value<'_>>, extra: &Extra) -> Value {
    let fields = object.fields().iter().zip(values).map(|(field, value)| {
        let value = match value {
            rows::Value::Integer(number) => json!(number),
            rows::Value::Text(text) | rows::Value::Label(text) => json!(text),
            rows::Value::Boolean(truth) => json!(truth),
            rows::Value::Timestamp(instant) => json!(instant.map(Timestamp::microseconds)),
            rows::Value::Attributes(list) => json!(list.map(|list| {
                let attribute = Object::UserAttribute;
                let each = list.iter();
                each.map(|each| shown(attribute, text, each.values(text).into(), &each.extra))
                    .collect::<Vec<_>>()
            })),
            rows::Value::Sender(sender) => json!(sender.map(|sender| {
                let values = sender.values(text).into();
                shown(Object::Sender, text, values, &sender.extra)
            })),
        };
        (field.name.to_owned(), value)
    });
    let mut object: Map<String, Value> = fields.collect();
    let extra = extra.iter().map(|(key, value)| {
        let value = serde_json::from_str(value.of(text)).unwrap();
        (key.text(text).into_owned(), value)
    });
    object.insert("extra".to_owned(), Value::Object(extra.collect()));
    Value::Object(object)
}

/// What a row should hold, as JSON, and how many of its values have another type.
fn expected(object: Object, item: &Value, sender_type: Option<SenderType>) -> (Value, u64) {
    let mut extra = item.as_object().unwrap().clone();
    let mut typed = Map::new();
    let mut odd = 0;
    for field in object.fields() {
        let known = sender_type.is_none_or(|sender_type| sender_type.has(field));
        let sent = known.then(|| extra.shift_remove(field.name)).flatten();
        let sent = sent.filter(|value| !value.is_null());
        let all = |items: &[Value]| items.iter().all(Value::is_object);
        let value = sent.as_ref().and_then(|sent| match field.kind {
            Kind::Id | Kind::Integer => sent.as_i64().map(Value::from),
            Kind::Text | Kind::Label | Kind::Category => sent.as_str().map(Value::from),
            Kind::Boolean => sent.as_bool().map(Value::from),
            Kind::Timestamp => Timestamp::parse(sent.as_str()?).map(|at| at.microseconds().into()),
            Kind::Attributes => {
                let items = sent.as_array().filter(|items| all(items))?.iter();
                let items = items.map(|item| {
                    let (item, inner) = expected(Object::UserAttribute, item, None);
                    odd += inner;
                    item
                });
                Some(items.collect())
            }
            Kind::Sender => {
                let sender = sent.as_object()?;
                let name = item.get("sender_type").and_then(Value::as_str);
                let id = sender.get("id").and_then(Value::as_i64);
                let of = SenderType::of(name, id);
                let (sender, inner) = expected(Object::Sender, sent, Some(of));
                odd += inner;
                Some(sender)
            }
        });
        if let (None, Some(sent)) = (&value, sent) {
            odd += 1;
            extra.insert(field.name.to_owned(), sent);
        }
        typed.insert(field.name.to_owned(), value.unwrap_or(Value::Null));
    }
    typed.insert("extra".to_owned(), Value::Object(extra));
    (Value::Object(typed), odd)
}
