//! What a sync stores in addition to rows and lists: records that do not fit, resume points, rows
//! that are gone.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;

use super::{CURSORS, GONE, REJECTS, append_instant, timestamps};
use crate::core::api::Resource;
use crate::core::decode::page::Row;
use crate::core::timestamp::Timestamp;

/// Collects records that do not fit into a batch of `REJECTS`.
pub struct RejectColumns {
    resource: StringBuilder,
    user_id: Int64Builder,
    id: Int64Builder,
    json: StringBuilder,
    reason: StringBuilder,
    seen_at: TimestampMicrosecondBuilder,
}

impl Default for RejectColumns {
    fn default() -> Self {
        Self {
            resource: StringBuilder::new(),
            user_id: Int64Builder::new(),
            id: Int64Builder::new(),
            json: StringBuilder::new(),
            reason: StringBuilder::new(),
            seen_at: timestamps(),
        }
    }
}

impl RejectColumns {
    /// `user_id` is the user whose list had the row, or the user itself.
    pub fn append(&mut self, row: &Row, user_id: Option<i64>, reason: &str) {
        self.resource.append_value(row.resource().key());
        self.user_id.append_option(user_id);
        self.id.append_option(row.id);
        self.json.append_value(row.json());
        self.reason.append_value(reason);
        append_instant(&mut self.seen_at, Some(Timestamp::now()));
    }

    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.resource.finish()),
            Arc::new(self.user_id.finish()),
            Arc::new(self.id.finish()),
            Arc::new(self.json.finish()),
            Arc::new(self.reason.finish()),
            Arc::new(self.seen_at.finish()),
        ];
        RecordBatch::try_new(Arc::clone(&REJECTS), columns)
    }
}

/// Collects the resume points of partly read lists into a batch of `CURSORS`.
pub struct CursorColumns {
    user_id: Int64Builder,
    checkpoint: StringBuilder,
    started_at: TimestampMicrosecondBuilder,
}

impl Default for CursorColumns {
    fn default() -> Self {
        Self {
            user_id: Int64Builder::new(),
            checkpoint: StringBuilder::new(),
            started_at: timestamps(),
        }
    }
}

impl CursorColumns {
    /// `user_id` is `None` for the list of users.
    pub fn append(
        &mut self,
        user_id: Option<i64>,
        checkpoint: &str,
        started_at: Option<Timestamp>,
    ) {
        self.user_id.append_option(user_id);
        self.checkpoint.append_value(checkpoint);
        append_instant(&mut self.started_at, started_at);
    }

    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.user_id.finish()),
            Arc::new(self.checkpoint.finish()),
            Arc::new(self.started_at.finish()),
        ];
        RecordBatch::try_new(Arc::clone(&CURSORS), columns)
    }
}

/// Collects rows that answered 404 into a batch of `GONE`.
#[derive(Default)]
pub struct GoneColumns {
    resource: StringBuilder,
    user_id: Int64Builder,
    id: Int64Builder,
}

impl GoneColumns {
    pub fn append(&mut self, resource: Resource, user_id: Option<i64>, id: i64) {
        self.resource.append_value(resource.key());
        self.user_id.append_option(user_id);
        self.id.append_value(id);
    }

    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.resource.finish()),
            Arc::new(self.user_id.finish()),
            Arc::new(self.id.finish()),
        ];
        RecordBatch::try_new(Arc::clone(&GONE), columns)
    }
}
