//! Message lists as columns: what the mirror stores about each from one run to the next.

use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_array::builder::{
    BooleanBuilder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::column::{Column, append_instant};
use super::table;
use crate::list_state::ListRow;

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
