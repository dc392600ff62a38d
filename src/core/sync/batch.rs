//! Rows that were read but not committed yet, and the batch that they become.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::events::{Event, Rows};
use super::progress::ProgressCounters;
use crate::core::api::Resource;
use crate::core::arrow::columns::{
    CursorColumns, GoneColumns, ListColumns, MessageColumns, RejectColumns, UserColumns,
    columns_failure,
};
use crate::core::client::Client;
use crate::core::decode::json::Fault;
use crate::core::decode::page::{Row, Unreadable};
use crate::core::error::Error;
use crate::core::list_state::{Hints, Kind, ListRow, ListState, requestable_id};
use crate::core::prefetch::Gather;
use crate::core::privacy::Privacy;
use crate::core::report::WalkReport;
use crate::core::timestamp::Timestamp;

/// A batch is emitted at this many responses, so that a killed run has little to request again,
const LEAST_RESPONSES: u64 = 12;
/// or at this many rows.
const LEAST_ROWS: u64 = 1_200;
/// As a run emits more, the batch size grows to what was emitted divided by this: larger commits
/// cost less per row, and a kill still loses only a small part of the work.
const SHARE: u64 = 16;
const MOST_RESPONSES: u64 = 2_000;
const MOST_ROWS: u64 = 50_000;
/// Or at this much JSON, because message bodies have no documented maximum size.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The content of one transaction: rows, the lists that they complete, and resume points for the
/// others.
#[derive(Debug)]
pub struct Batch {
    pub users: Option<RecordBatch>,
    pub messages: Option<RecordBatch>,
    pub lists: Option<RecordBatch>,
    pub rejects: Option<RecordBatch>,
    pub cursors: Option<RecordBatch>,
    pub gone: Option<RecordBatch>,
    /// Set on the batch that ends the sweep of users.
    pub users_report: Option<Box<WalkReport>>,
    /// The number of lists that end in this batch.
    pub lists_ended: u64,
    /// Rows of these lists that are as they were, so that they are not in the batch.
    pub rows_skipped: u64,
}

/// Collects what a run finds into batches.
pub struct Batches {
    client: Client,
    counters: Arc<ProgressCounters>,
    privacy: Option<Arc<Privacy>>,
    pending: Pending,
    /// Rows and responses in the batches emitted so far.
    emitted_rows: u64,
    emitted_responses: u64,
}

impl Batches {
    pub fn new(
        client: Client,
        counters: Arc<ProgressCounters>,
        privacy: Option<Arc<Privacy>>,
    ) -> Self {
        Self {
            client,
            counters,
            privacy,
            pending: Pending::default(),
            emitted_rows: 0,
            emitted_responses: 0,
        }
    }
}

impl Gather<Event> for Batches {
    type Gathered = Batch;

    fn take(&mut self, event: Event) -> Result<(), Error> {
        let (sent, now) = (self.client.sent(), self.client.clock().now());
        self.counters.sample(sent, now);
        self.pending.take(event, self.privacy.as_deref());
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.pending.rows == 0 && self.pending.users_report.is_none()
    }

    fn is_full(&self) -> bool {
        let rows = (self.emitted_rows / SHARE).clamp(LEAST_ROWS, MOST_ROWS);
        let responses = (self.emitted_responses / SHARE).clamp(LEAST_RESPONSES, MOST_RESPONSES);
        let enough = self.pending.rows >= rows
            || self.pending.responses >= responses
            || self.pending.bytes >= MOST_BYTES;
        enough && !self.is_empty()
    }

    fn finish(&mut self) -> Result<Batch, Error> {
        let pending = std::mem::take(&mut self.pending);
        self.emitted_rows += pending.rows;
        self.emitted_responses += pending.responses;
        pending.finish().map_err(columns_failure)
    }
}

/// Rows that were read but not emitted yet.
#[derive(Default)]
struct Pending {
    rows: u64,
    responses: u64,
    bytes: usize,
    lists_ended: u64,
    rows_skipped: u64,
    users: UserColumns,
    messages: MessageColumns,
    lists: ListColumns,
    rejects: RejectColumns,
    gone: GoneColumns,
    cursors: BTreeMap<Option<i64>, (String, Option<Timestamp>)>,
    users_report: Option<Box<WalkReport>>,
}

impl Pending {
    fn take(&mut self, event: Event, privacy: Option<&Privacy>) {
        match event {
            Event::Users(page) => {
                for row in &page.rows {
                    self.take_user(row, privacy);
                }
                self.close(page);
            }
            Event::Messages(page) => self.take_messages(page, privacy),
            Event::UsersEnded(report) => {
                self.cursors.remove(&None);
                self.users_report = Some(report);
            }
            Event::ListEnded(row) => {
                // A response without rows was not counted before.
                self.responses += u64::from(row.state.rows == 0 || row.rows_skipped > 0);
                self.rows_skipped += row.rows_skipped;
                // A run that ends with an error resumes within a list that was given up.
                if row.state.kind != Kind::Unread {
                    self.cursors.remove(&Some(row.user_id));
                }
                self.lists.append(&row);
                self.lists_ended += 1;
                self.rows += 1;
            }
            Event::RowFound { user_id, row } => {
                self.responses += 1;
                match row.resource() {
                    Resource::Users => self.take_user(&row, privacy),
                    Resource::Messages => {
                        self.take_message(user_id.unwrap_or_default(), &row, privacy);
                    }
                }
            }
            Event::RowGone(key) => {
                self.responses += 1;
                self.gone.append(key.resource, key.user_id, key.id);
                self.rows += 1;
            }
        }
    }

    fn take_messages(&mut self, page: Rows, privacy: Option<&Privacy>) {
        for row in &page.rows {
            // Messages always come with their user.
            self.take_message(page.user_id.unwrap_or_default(), row, privacy);
        }
        self.close(page);
    }

    fn take_user(&mut self, row: &Row, privacy: Option<&Privacy>) {
        if let (Some(user_id), None) = (row.id, requestable_id(row)) {
            let mut report = WalkReport::not_read_yet();
            report.doubt("a negative user id cannot be requested".to_owned());
            self.lists.append(&ListRow {
                user_id,
                state: ListState::of(&report, Kind::Whole, Hints::default()),
                unchanged: false,
                rows_skipped: 0,
                requests: 0,
                reason: report.reason,
            });
        }
        if self.counts(row) {
            let appended = self.users.append_row(row, privacy);
            self.reject(row, row.id, appended, privacy);
        }
    }

    fn take_message(&mut self, user_id: i64, row: &Row, privacy: Option<&Privacy>) {
        if self.counts(row) {
            let appended = self.messages.append_row(user_id, row, privacy);
            self.reject(row, Some(user_id), appended, privacy);
        }
    }

    /// Notes where to resume the list after this page's rows.
    fn close(&mut self, page: Rows) {
        self.responses += 1;
        if let Some(cursor) = page.cursor {
            self.cursors.insert(page.user_id, cursor);
        }
    }

    /// Counts a row; returns whether it has content to store. One that is too large has none; its
    /// list's reason names it.
    fn counts(&mut self, row: &Row) -> bool {
        self.rows += 1;
        self.bytes += row.json().len();
        row.unreadable != Some(Unreadable::TooLarge)
    }

    /// Stores a row that is no record with the rejects.
    fn reject(
        &mut self,
        row: &Row,
        user_id: Option<i64>,
        appended: Result<(), Fault>,
        privacy: Option<&Privacy>,
    ) {
        let Err(Fault { path, reason, .. }) = appended else {
            return;
        };
        match privacy {
            None => {
                let reason = format!("{path}: {reason}");
                self.rejects.append(row, user_id, row.json(), &reason);
            }
            Some(privacy) => {
                let (json, reason) = privacy.reject(row);
                self.rejects.append(row, user_id, &json, &reason);
            }
        }
    }

    fn finish(mut self) -> Result<Batch, ArrowError> {
        let mut cursors = CursorColumns::default();
        for (user_id, (cursor, started_at)) in &self.cursors {
            cursors.append(*user_id, cursor, *started_at);
        }
        let filled = |batch: RecordBatch| (batch.num_rows() > 0).then_some(batch);
        Ok(Batch {
            users: filled(self.users.finish()?),
            messages: filled(self.messages.finish()?),
            lists: filled(self.lists.finish()?),
            rejects: filled(self.rejects.finish()?),
            cursors: filled(cursors.finish()?),
            gone: filled(self.gone.finish()?),
            users_report: self.users_report,
            lists_ended: self.lists_ended,
            rows_skipped: self.rows_skipped,
        })
    }
}
