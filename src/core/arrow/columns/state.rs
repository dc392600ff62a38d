//! What a sync stores in addition to rows and lists: records that do not fit, rows that
//! are gone.

use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_array::builder::{Int64Builder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::column::{Column, append_instant};
use super::table;
use crate::api::Resource;
use crate::decode::page::Row;
use crate::timestamp::Timestamp;

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
