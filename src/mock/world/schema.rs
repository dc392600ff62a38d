//! The rows that the mock serves, field by field, in the order in which they are sent.
//!
//! This is the only place in the mock that names them: generated rows are written by these tables,
//! and JSON lines and added messages find the times in a row by them. Edits and dialects change
//! whatever fields a row has. A test compares the tables with the OpenAPI document.

use super::calendar::write_timestamp;
use super::message::MessageRow;
use super::text;
use super::user::{OperatorRow, Person, UserRow};

/// A field: its name, its kind, and how its JSON value is written.
#[derive(Clone, Copy, Debug)]
pub struct Field<Writer> {
    pub name: &'static str,
    /// The name in quotes, between a comma and a colon.
    key: &'static str,
    pub kind: Kind,
    write: Writer,
}

/// What the world must know about a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Value,
    /// A value or null.
    Nullable,
    /// A timestamp.
    Time,
    /// A timestamp that follows the user's last message.
    Activity,
}

/// Writes the value of one field of a row.
type Write<Row> = fn(&mut Row, &mut Vec<u8>);
type WriteOfMessage = fn(&mut MessageRow<'_>, &mut Vec<u8>);

macro_rules! fields {
    ($($name:literal: $kind:ident = $write:expr),+ $(,)?) => {
        &[$(Field {
            name: $name,
            key: concat!(",\"", $name, "\":"),
            kind: Kind::$kind,
            write: $write,
        }),+]
    };
}

pub const USER: &[Field<Write<UserRow>>] = fields! {
    "id": Value = |user, out| text::number(user.person.id, out),
    "name": Value = |user, out| user.person.write_name(out),
    "email": Value = |user, out| user.person.write_email(out),
    "reference": Value = |user, out| user.write_reference(out),
    "created_at": Time = |user, out| write_time(user.arrived, out),
    "updated_at": Activity = |user, out| write_time(user.updated, out),
    "online_at": Activity = |user, out| write_time(user.online, out),
    "last_url": Value = |user, out| user.write_last_url(out),
    "user_attributes": Value = |user, out| user.write_attributes(out),
};

pub const MESSAGE: &[Field<WriteOfMessage>] = fields! {
    "id": Value = |message, out| text::number(message.id, out),
    "body": Value = |message, out| message.write_body(out),
    "read_by_user": Value = |message, out| text::boolean(message.turn.read_by_user, out),
    "read_by_operator": Value = |message, out| text::boolean(message.turn.read_by_operator, out),
    "created_at": Time = |message, out| write_time(message.moment, out),
    "file_url": Nullable = |message, out| message.write_file_url(out),
    "auto_invitation": Value = |message, out| text::boolean(message.turn.auto_invitation, out),
    "sender_type": Value = |message, out| out.extend_from_slice(message.sender_type()),
    "sender": Value = |message, out| out.extend_from_slice(&message.sender),
};

/// The sender of a user's message; the values are those of the user.
pub const USER_SENDER: &[Field<Write<Person>>] = fields! {
    "id": Value = |person, out| text::number(person.id, out),
    "name": Value = |person, out| person.write_name(out),
    "email": Value = |person, out| person.write_email(out),
};

pub const OPERATOR_SENDER: &[Field<Write<OperatorRow>>] = fields! {
    "id": Value = |operator, out| text::number(operator.id(), out),
    "forename": Value = |operator, out| text::quoted(operator.forename.0, out),
    "surname": Value = |operator, out| text::quoted(operator.surname.0, out),
    "email": Value = |operator, out| operator.write_email(out),
    "picture_thumb_url": Nullable = |operator, out| operator.write_picture(out),
};

/// Writes a row with these fields.
#[inline(always)]
pub fn write<Row>(fields: &[Field<Write<Row>>], row: &mut Row, out: &mut Vec<u8>) {
    write_values(fields, out, |field, out| (field.write)(row, out));
}

/// Writes a row with the names of these fields and other values.
#[inline(always)]
pub fn write_values<Writer>(
    fields: &[Field<Writer>],
    out: &mut Vec<u8>,
    mut value: impl FnMut(&Field<Writer>, &mut Vec<u8>),
) {
    let start = out.len();
    for field in fields {
        out.extend_from_slice(field.key.as_bytes());
        value(field, out);
    }
    out.push(b'}');
    // In place of the comma before the first name.
    if let Some(first) = out.get_mut(start) {
        *first = b'{';
    }
}

/// The names of all times in a row.
pub fn times<Writer>(fields: &[Field<Writer>]) -> impl Iterator<Item = &'static str> {
    named(fields, |kind| matches!(kind, Kind::Time | Kind::Activity))
}

/// The names of the user's times that follow the last message.
pub fn activity() -> impl Iterator<Item = &'static str> {
    named(USER, |kind| kind == Kind::Activity)
}

fn named<Writer>(
    fields: &[Field<Writer>],
    wanted: fn(Kind) -> bool,
) -> impl Iterator<Item = &'static str> {
    let wanted = fields.iter().filter(move |field| wanted(field.kind));
    wanted.map(|field| field.name)
}

fn write_time(moment: u64, out: &mut Vec<u8>) {
    out.push(b'"');
    write_timestamp(moment, out);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::service::OPENAPI;

    #[test]
    fn the_fields_are_those_of_the_openapi_document() {
        let document: Value = serde_json::from_str(OPENAPI).unwrap();
        let documented = |name: &str| -> Vec<(String, bool, bool)> {
            let fields = &document["components"]["schemas"][name]["properties"];
            let nullable = |field: &Value| {
                let null = |kind: &Value| kind == "null";
                field["type"]
                    .as_array()
                    .is_some_and(|kinds| kinds.iter().any(null))
            };
            let is_time = |field: &Value| field["$ref"] == "#/components/schemas/Timestamp";
            let fields = fields.as_object().unwrap().iter();
            fields
                .map(|(name, field)| (name.clone(), nullable(field), is_time(field)))
                .collect()
        };
        fn ours<Writer>(fields: &[Field<Writer>]) -> Vec<(String, bool, bool)> {
            let is_time = |kind| matches!(kind, Kind::Time | Kind::Activity);
            let fields = fields.iter();
            fields
                .map(|field| {
                    (
                        field.name.to_owned(),
                        field.kind == Kind::Nullable,
                        is_time(field.kind),
                    )
                })
                .collect()
        }
        assert_eq!(ours(USER), documented("User"));
        assert_eq!(ours(MESSAGE), documented("Message"));
        assert_eq!(ours(USER_SENDER), documented("UserSender"));
        assert_eq!(ours(OPERATOR_SENDER), documented("OperatorSender"));
    }
}
