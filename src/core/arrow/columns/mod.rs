//! Rows as Arrow record batches, under fixed schemas.

mod lists;
mod messages;
mod read_back;
mod state;
mod users;

use std::sync::{Arc, LazyLock};

use arrow_array::builder::TimestampMicrosecondBuilder;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

pub use self::lists::ListColumns;
pub use self::messages::MessageColumns;
pub use self::read_back::Rows;
pub use self::state::{CursorColumns, GoneColumns, RejectColumns};
pub use self::users::UserColumns;
use crate::core::decode::model::{Unknown, object_of};
use crate::core::error::{Error, ErrorKind};
use crate::core::timestamp::Timestamp;

const UTC: &str = "UTC";

fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
}

fn attribute_fields() -> Fields {
    Fields::from(vec![
        Field::new("name", DataType::Utf8, true),
        Field::new("value", DataType::Utf8, true),
        Field::new("extra", DataType::Utf8, true),
    ])
}

fn attribute_item() -> Field {
    Field::new("item", DataType::Struct(attribute_fields()), true)
}

fn id_item() -> Field {
    Field::new("item", DataType::Int64, true)
}

fn schema(columns: &[(&str, DataType, bool)]) -> SchemaRef {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, data_type, nullable)| Field::new(*name, data_type.clone(), *nullable))
        .collect();
    Arc::new(Schema::new(fields))
}

/// One row per user; `extra` is the JSON of the fields that the interface does not name.
pub static USERS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(&[
        ("id", DataType::Int64, false),
        ("name", DataType::Utf8, true),
        ("email", DataType::Utf8, true),
        ("reference", DataType::Utf8, true),
        ("created_at", instant(), true),
        ("updated_at", instant(), true),
        ("online_at", instant(), true),
        ("last_url", DataType::Utf8, true),
        (
            "user_attributes",
            DataType::List(Arc::new(attribute_item())),
            true,
        ),
        ("extra", DataType::Utf8, true),
    ])
});

/// One row per message, with its user's id; the sender's fields are flattened.
pub static MESSAGES: LazyLock<SchemaRef> = LazyLock::new(|| {
    let sender_type = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    schema(&[
        ("user_id", DataType::Int64, false),
        ("id", DataType::Int64, false),
        ("body", DataType::Utf8, true),
        ("read_by_user", DataType::Boolean, true),
        ("read_by_operator", DataType::Boolean, true),
        ("created_at", instant(), true),
        ("file_url", DataType::Utf8, true),
        ("auto_invitation", DataType::Boolean, true),
        ("sender_type", sender_type, true),
        ("sender_id", DataType::Int64, true),
        ("sender_name", DataType::Utf8, true),
        ("sender_email", DataType::Utf8, true),
        ("sender_forename", DataType::Utf8, true),
        ("sender_surname", DataType::Utf8, true),
        ("sender_picture_thumb_url", DataType::Utf8, true),
        ("sender_extra", DataType::Utf8, true),
        ("extra", DataType::Utf8, true),
    ])
});

/// One row per message list that was read to its end.
pub static LISTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(&[
        ("user_id", DataType::Int64, false),
        ("rows", DataType::Int64, false),
        ("total", DataType::Int64, true),
        ("requests", DataType::Int64, false),
        ("certificate", DataType::Utf8, false),
        ("reason", DataType::Utf8, true),
        ("started_at", instant(), true),
        ("ended_at", instant(), true),
        ("kind", DataType::Utf8, false),
        ("swept_at", instant(), true),
        ("grows", DataType::Utf8, true),
        ("first_ids", DataType::List(Arc::new(id_item())), false),
        ("last_ids", DataType::List(Arc::new(id_item())), false),
        ("unread_from", DataType::Int64, true),
        ("user_updated_at", instant(), true),
        ("user_online_at", instant(), true),
    ])
});

/// One row per partly read list, with its resume point; `user_id` is null for the list of users.
pub static CURSORS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(&[
        ("user_id", DataType::Int64, true),
        ("checkpoint", DataType::Utf8, false),
        ("started_at", instant(), true),
    ])
});

/// One row per record that was fetched by its id and not found.
pub static GONE: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(&[
        ("resource", DataType::Utf8, false),
        ("user_id", DataType::Int64, true),
        ("id", DataType::Int64, false),
    ])
});

/// One row per record that does not fit, as sent, with the reason.
pub static REJECTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(&[
        ("resource", DataType::Utf8, false),
        ("user_id", DataType::Int64, true),
        ("id", DataType::Int64, true),
        ("json", DataType::Utf8, false),
        ("reason", DataType::Utf8, false),
        ("seen_at", instant(), false),
    ])
});

/// Converts the columns' own error, which no response can cause, to the core's.
pub fn columns_failure(error: ArrowError) -> Error {
    Error::new(ErrorKind::Transport(format!(
        "the rows cannot be put into columns: {error}"
    )))
}

fn extra_json(extra: &Unknown<'_>) -> Option<String> {
    if extra.is_empty() {
        return None;
    }
    serde_json::to_string(&object_of(extra).ok()?).ok()
}

fn timestamps() -> TimestampMicrosecondBuilder {
    TimestampMicrosecondBuilder::new().with_timezone(UTC)
}

fn append_instant(column: &mut TimestampMicrosecondBuilder, instant: Option<Timestamp>) {
    column.append_option(instant.map(Timestamp::microseconds));
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
