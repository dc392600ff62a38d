//! The rows that the mock serves, field by field, in the order in which they are sent.
//!
//! JSON lines and added messages find the times in a row by the constants here. Edits and dialects
//! change whatever fields a row has. A test compares all of this with the OpenAPI document.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The fields that are timestamps,
pub const TIMES: [&str; 3] = ["created_at", "updated_at", "online_at"];
/// and those of a user that follow the last message.
pub const ACTIVITY: [&str; 2] = ["updated_at", "online_at"];

#[derive(Debug, Serialize)]
pub struct User {
    pub id: u64,
    pub name: String,
    pub email: String,
    pub reference: String,
    pub created_at: Moment,
    pub updated_at: Moment,
    pub online_at: Moment,
    pub last_url: String,
    pub user_attributes: Vec<Attribute>,
}

/// A custom property.
#[derive(Debug, Serialize)]
pub struct Attribute {
    pub name: &'static str,
    pub value: String,
}

#[derive(Debug, Serialize)]
pub struct Message<'sender> {
    pub id: u64,
    pub body: String,
    pub read_by_user: bool,
    pub read_by_operator: bool,
    pub created_at: Moment,
    pub file_url: Option<String>,
    pub auto_invitation: bool,
    pub sender_type: &'static str,
    pub sender: &'sender RawValue,
}

/// The sender of a user's message, as the user's row has it.
#[derive(Debug, Serialize)]
pub struct UserSender<'row> {
    pub id: &'row RawValue,
    pub name: &'row RawValue,
    pub email: &'row RawValue,
}

#[derive(Debug, Serialize)]
pub struct OperatorSender {
    pub id: u64,
    pub forename: &'static str,
    pub surname: &'static str,
    pub email: String,
    pub picture_thumb_url: Option<String>,
}

/// Milliseconds since 1970, sent as `2024-03-05T09:31:07.042Z`.
#[derive(Clone, Copy, Debug)]
pub struct Moment(pub u64);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
        let moment = Timestamp::from_millisecond(self.0 as i64).unwrap_or_default();
        serializer.serialize_str(&PRINTER.timestamp_to_string(&moment))
    }
}

impl Moment {
    /// Reads a timestamp of RFC 3339, whatever its offset and precision; `None` before 1970.
    pub fn read(text: &str) -> Option<Self> {
        let moment: Timestamp = text.parse().ok()?;
        moment.as_millisecond().try_into().ok().map(Self)
    }
}

/// A row as JSON, for use in others.
pub fn raw(row: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(row).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
