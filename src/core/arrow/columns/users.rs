//! Users as columns.

use std::sync::Arc;

use arrow_array::builder::{
    Int64Builder, ListBuilder, StringBuilder, StructBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;

use super::{USERS, append_instant, attribute_fields, attribute_item, extra_json, timestamps};
use crate::core::decode::model::{User, UserAttribute};

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
    pub fn append(&mut self, user: &User<'_>) {
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

    fn append_attribute(&mut self, attribute: &UserAttribute<'_>) {
        let item = self.user_attributes.values();
        let extra = extra_json(&attribute.extra);
        let texts = [
            attribute.name.as_deref(),
            attribute.value.as_deref(),
            extra.as_deref(),
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
