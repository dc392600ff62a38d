//! What a sync remembers besides rows, as columns: lists that were read, records that do not fit.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;

use super::{LISTS, REJECTS, append_instant, timestamps, whole};
use crate::core::page::Row;
use crate::core::report::WalkReport;
use crate::core::timestamp::Timestamp;

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
    /// `user_id` is the user whose list the row stood in, or the user that it is.
    pub fn append(&mut self, row: &Row, user_id: Option<i64>, reason: &str) {
        self.resource.append_value(row.resource.key());
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
