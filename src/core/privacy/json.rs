//! JSON whose fields are not documented, so that any value in it may be about a person.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Pseudonyms;
use super::redaction::redact;

const ID: &str = "id";

/// The longest name that is taken for one of a field.
const LONGEST_NAME: usize = 64;

/// Whether a member's name is one that a program gives, and no data.
pub fn is_plain_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    name.len() <= LONGEST_NAME
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(plain)
}

/// The JSON with a pseudonym for each text and number, since a number may be one of a phone. Names
/// of members inside become pseudonyms too; `null`, `true` and `false` stay.
pub fn pseudonymised(json: &str, pseudonyms: &Pseudonyms) -> String {
    changed(json, &|value| pseudonymised_value(value, pseudonyms))
}

/// The same for a whole record, whose own fields keep plain names; so does its id, by which `forget`
/// finds it.
pub fn pseudonymised_record(json: &str, pseudonyms: &Pseudonyms) -> String {
    let Ok(record) = serde_json::from_str::<Map<String, Value>>(json) else {
        return pseudonymised(json, pseudonyms);
    };
    let fields = record.into_iter().map(|(name, value)| {
        let name = match is_plain_name(&name) {
            true => name,
            false => pseudonyms.of("field", &name),
        };
        let value = match name == ID && is_whole_number(&value) {
            true => value,
            false => deeply(value, &|inner| pseudonymised_value(inner, pseudonyms)),
        };
        (name, value)
    });
    Value::Object(fields.collect()).to_string()
}

/// Whether a value is an id, perhaps as text.
fn is_whole_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_i64(),
        Value::String(text) => text.trim().parse::<i64>().is_ok(),
        _ => false,
    }
}

/// The JSON with each text and number redacted, as bodies are.
pub fn redacted(json: &str) -> String {
    changed(json, &|value| match value {
        Value::String(text) => Value::String(redact(&text).into()),
        Value::Number(number) => match redact(&number.to_string()) {
            Cow::Owned(redacted) => Value::String(redacted),
            Cow::Borrowed(_) => Value::Number(number),
        },
        Value::Object(members) => {
            let named = |(name, value): (String, Value)| (redact(&name).into_owned(), value);
            members.into_iter().map(named).collect()
        }
        other => other,
    })
}

fn pseudonymised_value(value: Value, pseudonyms: &Pseudonyms) -> Value {
    match value {
        Value::String(text) => Value::String(pseudonyms.of("extra", &text)),
        Value::Number(number) => Value::String(pseudonyms.of("extra", &number.to_string())),
        Value::Object(members) => {
            let named = |(name, value): (String, Value)| (pseudonyms.of("field", &name), value);
            members.into_iter().map(named).collect()
        }
        other => other,
    }
}

/// The JSON with each value changed, from the innermost; `null` if it cannot be read.
fn changed(json: &str, change: &impl Fn(Value) -> Value) -> String {
    let read = serde_json::from_str(json).unwrap_or(Value::Null);
    deeply(read, change).to_string()
}

// The parser bounds the depth.
fn deeply(value: Value, change: &impl Fn(Value) -> Value) -> Value {
    change(match value {
        Value::Array(items) => items.into_iter().map(|item| deeply(item, change)).collect(),
        Value::Object(members) => {
            let changed = |(name, value)| (name, deeply(value, change));
            members.into_iter().map(changed).collect::<Value>()
        }
        plain => plain,
    })
}
