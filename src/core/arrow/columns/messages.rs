//! Messages as columns, with flattened sender fields.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, StringBuilder, StringDictionaryBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;

use super::{MESSAGES, append_instant, extra_json, timestamps};
use crate::core::decode::flat_message::FlatMessage;
use crate::core::decode::model::Message;

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

impl MessageColumns {
    pub fn append(&mut self, user_id: i64, message: &Message<'_>) -> Result<(), ArrowError> {
        self.append_flat(user_id, &FlatMessage::from(message))
    }

    pub fn append_flat(
        &mut self,
        user_id: i64,
        message: &FlatMessage<'_>,
    ) -> Result<(), ArrowError> {
        match message.sender_type {
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
        self.file_url.append_option(message.file_url);
        self.auto_invitation.append_option(message.auto_invitation);
        let sender = &message.sender;
        self.sender_id.append_option(sender.id);
        self.sender_name.append_option(sender.name);
        self.sender_email.append_option(sender.email);
        self.sender_forename.append_option(sender.forename);
        self.sender_surname.append_option(sender.surname);
        self.sender_picture_thumb_url
            .append_option(sender.picture_thumb_url);
        self.sender_extra
            .append_option(sender.extra.and_then(extra_json));
        self.extra.append_option(message.extra.and_then(extra_json));
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
