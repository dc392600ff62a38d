//! Message lists as columns: what the mirror stores about each from one run to the next.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;

use super::{LISTS, append_instant, id_item, timestamps, whole};
use crate::core::list_state::{Grows, ListRow};

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
    kind: StringBuilder,
    swept_at: TimestampMicrosecondBuilder,
    grows: StringBuilder,
    first_ids: ListBuilder<Int64Builder>,
    last_ids: ListBuilder<Int64Builder>,
    unread_from: Int64Builder,
    user_updated_at: TimestampMicrosecondBuilder,
    user_online_at: TimestampMicrosecondBuilder,
}

fn ids() -> ListBuilder<Int64Builder> {
    ListBuilder::new(Int64Builder::new()).with_field(id_item())
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
            kind: StringBuilder::new(),
            swept_at: timestamps(),
            grows: StringBuilder::new(),
            first_ids: ids(),
            last_ids: ids(),
            unread_from: Int64Builder::new(),
            user_updated_at: timestamps(),
            user_online_at: timestamps(),
        }
    }
}

impl ListColumns {
    pub fn append(&mut self, row: &ListRow) {
        let state = &row.state;
        self.user_id.append_value(row.user_id);
        self.rows.append_value(whole(state.rows));
        self.total.append_option(state.total);
        self.requests.append_value(whole(row.requests));
        self.certificate.append_value(state.certificate.name());
        self.reason.append_option(row.reason.as_deref());
        append_instant(&mut self.started_at, state.started_at);
        append_instant(&mut self.ended_at, state.ended_at);
        self.kind.append_value(state.kind.name());
        append_instant(&mut self.swept_at, state.swept_at);
        self.grows.append_option(state.grows.map(Grows::name));
        self.first_ids
            .append_value(state.first_ids.iter().copied().map(Some));
        self.last_ids
            .append_value(state.last_ids.iter().copied().map(Some));
        self.unread_from.append_option(state.unread_from.map(whole));
        append_instant(&mut self.user_updated_at, state.hints.updated_at);
        append_instant(&mut self.user_online_at, state.hints.online_at);
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
            Arc::new(self.kind.finish()),
            Arc::new(self.swept_at.finish()),
            Arc::new(self.grows.finish()),
            Arc::new(self.first_ids.finish()),
            Arc::new(self.last_ids.finish()),
            Arc::new(self.unread_from.finish()),
            Arc::new(self.user_updated_at.finish()),
            Arc::new(self.user_online_at.finish()),
        ];
        RecordBatch::try_new(Arc::clone(&LISTS), columns)
    }
}
