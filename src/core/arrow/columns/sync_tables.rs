//! What a sync stores in addition to rows: about each list from one run to the next, records that do not
//! fit, rows that are gone.

use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_array::builder::{
    BooleanBuilder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::column::{Column, append_instant};
use super::table;
use crate::api::Resource;
use crate::decode::page::Row;
use crate::list_state::ListRow;
use crate::timestamp::Timestamp;

table! {
    /// One row per message list that was read, to its end or in part.
    LISTS;
    /// Collects message lists into a batch of `LISTS`.
    ListColumns {
        user_id: Int64Builder;
        rows: Int64Builder;
        total: Int64Builder, nullable;
        certificate: StringBuilder;
        kind: StringBuilder;
        reason: StringBuilder, nullable;
        checked_at: TimestampMicrosecondBuilder, nullable;
        swept_at: TimestampMicrosecondBuilder, nullable;
        state: StringBuilder, nullable;
        moved: BooleanBuilder, nullable;
        rows_differ: BooleanBuilder;
        audited: BooleanBuilder;
    }
}

impl ListColumns {
    /// `state` is what the next run needs, as JSON.
    pub fn append(&mut self, list: &ListRow, state: Option<&str>) {
        let ListRow {
            user_id,
            total,
            reason,
            state: known,
            compared,
        } = list;
        self.user_id.append_value(*user_id);
        self.rows
            .append_value(i64::try_from(known.rows).unwrap_or(i64::MAX));
        self.total.append_option(*total);
        self.certificate.append_value(known.certificate.name());
        self.kind.append_value(known.kind.name());
        self.reason.append_option(reason.as_deref());
        append_instant(&mut self.checked_at, known.checked_at);
        append_instant(&mut self.swept_at, known.swept_at);
        self.state.append_option(state);
        self.moved.append_option(compared.moved);
        self.rows_differ.append_value(compared.rows_differ);
        self.audited.append_value(compared.audited);
    }
}

table! {
    /// One row per record that does not fit, as sent, with the reason.
    REJECTS;
    /// Collects records that do not fit into a batch of `REJECTS`.
    RejectColumns {
        resource: StringBuilder;
        user_id: Int64Builder, nullable;
        id: Int64Builder, nullable;
        json: StringBuilder;
        reason: StringBuilder;
        seen_at: TimestampMicrosecondBuilder;
    }
}

impl RejectColumns {
    /// `user_id` is the user whose list had the row, or the user itself; `json` is the row's, or
    /// what may be stored of it.
    pub fn append(&mut self, row: &Row, user_id: Option<i64>, json: &str, reason: &str) {
        self.resource.append_value(row.resource().key());
        self.user_id.append_option(user_id);
        self.id.append_option(row.id);
        self.json.append_value(json);
        self.reason.append_value(reason);
        append_instant(&mut self.seen_at, Some(Timestamp::now()));
    }
}

table! {
    /// One row per record that was fetched by its id and not found.
    GONE;
    /// Collects rows that answered 404 into a batch of `GONE`.
    GoneColumns {
        resource: StringBuilder;
        user_id: Int64Builder, nullable;
        id: Int64Builder;
    }
}

impl GoneColumns {
    pub fn append(&mut self, resource: Resource, user_id: Option<i64>, id: i64) {
        self.resource.append_value(resource.key());
        self.user_id.append_option(user_id);
        self.id.append_value(id);
    }
}
