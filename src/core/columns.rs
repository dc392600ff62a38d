//! Rows as Arrow record batches, under fixed schemas.

use std::sync::{Arc, LazyLock};

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, StringDictionaryBuilder,
    StructBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use super::error::{Error, ErrorKind};
use super::interface::Resource;
use super::model::{Extra, Message, Sender, User, UserAttribute};
use super::report::WalkReport;
use super::timestamp::Timestamp;

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

fn schema(columns: &[(&str, DataType, bool)]) -> SchemaRef {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, data_type, nullable)| Field::new(*name, data_type.clone(), *nullable))
        .collect();
    Arc::new(Schema::new(fields))
}

/// One row a user; `extra` is the JSON of the fields that the interface does not name.
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

/// One row a message, with the user it belongs to; the sender's fields are flattened.
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

/// One row a message list that was read to its end.
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
    ])
});

/// One row a record that does not fit, as sent, with the reason.
pub static REJECTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(&[
        ("resource", DataType::Utf8, false),
        ("user_id", DataType::Int64, true),
        ("json", DataType::Utf8, false),
        ("reason", DataType::Utf8, false),
        ("seen_at", instant(), false),
    ])
});

/// The columns' own error, which no answer of a service can cause, as the core's.
pub fn columns_failure(error: ArrowError) -> Error {
    Error::new(ErrorKind::Transport(format!(
        "the rows cannot be put into columns: {error}"
    )))
}

fn extra_json(extra: &Extra) -> Option<String> {
    (!extra.is_empty())
        .then(|| serde_json::to_string(extra).ok())
        .flatten()
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

/// Collects users into a batch of `USERS`.
pub struct UserColumns {
    id: Int64Builder,
    name: StringBuilder,
    email: StringBuilder,
    reference: StringBuilder,
    created_at: TimestampMicrosecondBuilder,
    updated_at: TimestampMicrosecondBuilder,
    online_at: TimestampMicrosecondBuilder,
    last_url: StringBuilder,
    user_attributes: ListBuilder<StructBuilder>,
    extra: StringBuilder,
}

impl Default for UserColumns {
    fn default() -> Self {
        let attributes = StructBuilder::from_fields(attribute_fields(), 0);
        Self {
            id: Int64Builder::new(),
            name: StringBuilder::new(),
            email: StringBuilder::new(),
            reference: StringBuilder::new(),
            created_at: timestamps(),
            updated_at: timestamps(),
            online_at: timestamps(),
            last_url: StringBuilder::new(),
            user_attributes: ListBuilder::new(attributes).with_field(attribute_item()),
            extra: StringBuilder::new(),
        }
    }
}

impl UserColumns {
    pub fn append(&mut self, user: &User) {
        self.id.append_value(user.id);
        self.name.append_option(user.name.as_deref());
        self.email.append_option(user.email.as_deref());
        self.reference.append_option(user.reference.as_deref());
        append_instant(&mut self.created_at, user.created_at);
        append_instant(&mut self.updated_at, user.updated_at);
        append_instant(&mut self.online_at, user.online_at);
        self.last_url.append_option(user.last_url.as_deref());
        for attribute in user.user_attributes.iter().flatten() {
            self.append_attribute(attribute);
        }
        self.user_attributes.append(user.user_attributes.is_some());
        self.extra.append_option(extra_json(&user.extra));
    }

    fn append_attribute(&mut self, attribute: &UserAttribute) {
        let item = self.user_attributes.values();
        let texts = [
            attribute.name.clone(),
            attribute.value.clone(),
            extra_json(&attribute.extra),
        ];
        for (index, text) in texts.into_iter().enumerate() {
            if let Some(column) = item.field_builder::<StringBuilder>(index) {
                column.append_option(text);
            }
        }
        item.append(true);
    }

    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.id.finish()),
            Arc::new(self.name.finish()),
            Arc::new(self.email.finish()),
            Arc::new(self.reference.finish()),
            Arc::new(self.created_at.finish()),
            Arc::new(self.updated_at.finish()),
            Arc::new(self.online_at.finish()),
            Arc::new(self.last_url.finish()),
            Arc::new(self.user_attributes.finish()),
            Arc::new(self.extra.finish()),
        ];
        RecordBatch::try_new(Arc::clone(&USERS), columns)
    }
}

/// Collects messages into a batch of `MESSAGES`.
pub struct MessageColumns {
    user_id: Int64Builder,
    id: Int64Builder,
    body: StringBuilder,
    read_by_user: BooleanBuilder,
    read_by_operator: BooleanBuilder,
    created_at: TimestampMicrosecondBuilder,
    file_url: StringBuilder,
    auto_invitation: BooleanBuilder,
    sender_type: StringDictionaryBuilder<Int32Type>,
    sender_id: Int64Builder,
    sender_name: StringBuilder,
    sender_email: StringBuilder,
    sender_forename: StringBuilder,
    sender_surname: StringBuilder,
    sender_picture_thumb_url: StringBuilder,
    sender_extra: StringBuilder,
    extra: StringBuilder,
}

impl Default for MessageColumns {
    fn default() -> Self {
        Self {
            user_id: Int64Builder::new(),
            id: Int64Builder::new(),
            body: StringBuilder::new(),
            read_by_user: BooleanBuilder::new(),
            read_by_operator: BooleanBuilder::new(),
            created_at: timestamps(),
            file_url: StringBuilder::new(),
            auto_invitation: BooleanBuilder::new(),
            sender_type: StringDictionaryBuilder::new(),
            sender_id: Int64Builder::new(),
            sender_name: StringBuilder::new(),
            sender_email: StringBuilder::new(),
            sender_forename: StringBuilder::new(),
            sender_surname: StringBuilder::new(),
            sender_picture_thumb_url: StringBuilder::new(),
            sender_extra: StringBuilder::new(),
            extra: StringBuilder::new(),
        }
    }
}

/// A sender's fields, whatever its shape; those it does not have are null.
#[derive(Default)]
struct FlatSender<'a> {
    id: Option<i64>,
    name: Option<&'a str>,
    email: Option<&'a str>,
    forename: Option<&'a str>,
    surname: Option<&'a str>,
    picture_thumb_url: Option<&'a str>,
    extra: Option<&'a Extra>,
}

impl<'a> From<Option<&'a Sender>> for FlatSender<'a> {
    fn from(sender: Option<&'a Sender>) -> Self {
        match sender {
            None => Self::default(),
            Some(Sender::User(user)) => Self {
                id: Some(user.id),
                name: user.name.as_deref(),
                email: user.email.as_deref(),
                extra: Some(&user.extra),
                ..Self::default()
            },
            Some(Sender::Operator(operator)) => Self {
                id: Some(operator.id),
                email: operator.email.as_deref(),
                forename: operator.forename.as_deref(),
                surname: operator.surname.as_deref(),
                picture_thumb_url: operator.picture_thumb_url.as_deref(),
                extra: Some(&operator.extra),
                ..Self::default()
            },
            Some(Sender::Other(other)) => Self {
                id: other.id,
                extra: Some(&other.extra),
                ..Self::default()
            },
        }
    }
}

impl MessageColumns {
    pub fn append(&mut self, user_id: i64, message: &Message) -> Result<(), ArrowError> {
        match message.sender_type.as_deref() {
            Some(sender_type) => {
                self.sender_type.append(sender_type)?;
            }
            None => self.sender_type.append_null(),
        }
        self.user_id.append_value(user_id);
        self.id.append_value(message.id);
        self.body.append_option(message.body.as_deref());
        self.read_by_user.append_option(message.read_by_user);
        self.read_by_operator
            .append_option(message.read_by_operator);
        append_instant(&mut self.created_at, message.created_at);
        self.file_url.append_option(message.file_url.as_deref());
        self.auto_invitation.append_option(message.auto_invitation);
        let sender = FlatSender::from(message.sender.as_ref());
        self.sender_id.append_option(sender.id);
        self.sender_name.append_option(sender.name);
        self.sender_email.append_option(sender.email);
        self.sender_forename.append_option(sender.forename);
        self.sender_surname.append_option(sender.surname);
        self.sender_picture_thumb_url
            .append_option(sender.picture_thumb_url);
        self.sender_extra
            .append_option(sender.extra.and_then(extra_json));
        self.extra.append_option(extra_json(&message.extra));
        Ok(())
    }

    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.user_id.finish()),
            Arc::new(self.id.finish()),
            Arc::new(self.body.finish()),
            Arc::new(self.read_by_user.finish()),
            Arc::new(self.read_by_operator.finish()),
            Arc::new(self.created_at.finish()),
            Arc::new(self.file_url.finish()),
            Arc::new(self.auto_invitation.finish()),
            Arc::new(self.sender_type.finish()),
            Arc::new(self.sender_id.finish()),
            Arc::new(self.sender_name.finish()),
            Arc::new(self.sender_email.finish()),
            Arc::new(self.sender_forename.finish()),
            Arc::new(self.sender_surname.finish()),
            Arc::new(self.sender_picture_thumb_url.finish()),
            Arc::new(self.sender_extra.finish()),
            Arc::new(self.extra.finish()),
        ];
        RecordBatch::try_new(Arc::clone(&MESSAGES), columns)
    }
}

/// Collects the ends of message lists into a batch of `LISTS`.
pub struct ListColumns {
    user_id: Int64Builder,
    rows: Int64Builder,
    total: Int64Builder,
    requests: Int64Builder,
    certificate: StringBuilder,
    reason: StringBuilder,
    started_at: TimestampMicrosecondBuilder,
    ended_at: TimestampMicrosecondBuilder,
}

impl Default for ListColumns {
    fn default() -> Self {
        Self {
            user_id: Int64Builder::new(),
            rows: Int64Builder::new(),
            total: Int64Builder::new(),
            requests: Int64Builder::new(),
            certificate: StringBuilder::new(),
            reason: StringBuilder::new(),
            started_at: timestamps(),
            ended_at: timestamps(),
        }
    }
}

impl ListColumns {
    pub fn append(&mut self, user_id: i64, report: &WalkReport) {
        self.user_id.append_value(user_id);
        self.rows.append_value(whole(report.distinct));
        self.total.append_option(report.total_last);
        self.requests.append_value(whole(report.requests));
        self.certificate.append_value(report.certificate.name());
        self.reason.append_option(report.reason.as_deref());
        append_instant(&mut self.started_at, report.started_at);
        append_instant(&mut self.ended_at, report.ended_at);
    }

    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.user_id.finish()),
            Arc::new(self.rows.finish()),
            Arc::new(self.total.finish()),
            Arc::new(self.requests.finish()),
            Arc::new(self.certificate.finish()),
            Arc::new(self.reason.finish()),
            Arc::new(self.started_at.finish()),
            Arc::new(self.ended_at.finish()),
        ];
        RecordBatch::try_new(Arc::clone(&LISTS), columns)
    }
}

/// Collects records that do not fit into a batch of `REJECTS`.
pub struct RejectColumns {
    resource: StringBuilder,
    user_id: Int64Builder,
    json: StringBuilder,
    reason: StringBuilder,
    seen_at: TimestampMicrosecondBuilder,
}

impl Default for RejectColumns {
    fn default() -> Self {
        Self {
            resource: StringBuilder::new(),
            user_id: Int64Builder::new(),
            json: StringBuilder::new(),
            reason: StringBuilder::new(),
            seen_at: timestamps(),
        }
    }
}

impl RejectColumns {
    pub fn append(&mut self, resource: Resource, user_id: Option<i64>, json: &str, reason: &str) {
        self.resource.append_value(resource.key());
        self.user_id.append_option(user_id);
        self.json.append_value(json);
        self.reason.append_value(reason);
        append_instant(&mut self.seen_at, Some(Timestamp::now()));
    }

    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.resource.finish()),
            Arc::new(self.user_id.finish()),
            Arc::new(self.json.finish()),
            Arc::new(self.reason.finish()),
            Arc::new(self.seen_at.finish()),
        ];
        RecordBatch::try_new(Arc::clone(&REJECTS), columns)
    }
}
