//! Message lists as columns: what the mirror stores about each from one run to the next.

use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Int64Builder, ListBuilder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::column::{Column, append_instant};
use super::table;
use crate::list_state::{Grows, ListRow};

table! {
    /// One row per message list that was read to its end.
    LISTS;
    /// Collects the ends of message lists into a batch of `LISTS`.
    ListColumns {
        user_id: Int64Builder;
        rows: Int64Builder;
        total: Int64Builder, nullable;
        requests: Int64Builder;
        certificate: StringBuilder;
        reason: StringBuilder, nullable;
        started_at: TimestampMicrosecondBuilder, nullable;
        ended_at: TimestampMicrosecondBuilder, nullable;
        kind: StringBuilder;
        swept_at: TimestampMicrosecondBuilder, nullable;
        grows: StringBuilder, nullable;
        first_ids: ListBuilder<Int64Builder>;
        last_ids: ListBuilder<Int64Builder>;
        unread_from: Int64Builder, nullable;
        user_updated_at: TimestampMicrosecondBuilder, nullable;
        user_online_at: TimestampMicrosecondBuilder, nullable;
        digest: BinaryBuilder, nullable;
        unchanged: BooleanBuilder;
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
        self.digest
            .append_option(state.digest.map(|digest| digest.0));
        self.unchanged.append_value(row.unchanged);
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
