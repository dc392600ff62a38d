//! Rows that were read but not committed yet, and the batch that they become.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::events::{Event, Rows};
use super::progress::ProgressCounters;
use crate::api::Resource;
use crate::arrow::columns::{
    CursorColumns, GoneColumns, ListColumns, MessageColumns, RejectColumns, UserColumns,
    columns_failure,
};
use crate::client::Client;
use crate::decode::json::Fault;
use crate::decode::page::Row;
use crate::error::Error;
use crate::list_state::{Hints, Kind, ListRow, ListState, requestable_id};
use crate::prefetch::Gather;
use crate::privacy::Privacy;
use crate::report::WalkReport;
use crate::timestamp::Timestamp;

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
/// Large batches hold a multiple of this many messages, as many as the mirror's database stores
/// together (`ROWS_A_GROUP` in `database.py`). It writes such batches to their place at once; what
/// is left over of others it writes to its log, and packs anew later. In a replay of 500,000
/// messages of 200 bytes this saved a tenth of the CPU of storing them and a quarter of the
/// database; of 5,000,000 it saves more, because most batches are large.
const GROUP: u64 = 16_384;

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

    /// The rows and the responses of the next batch.
    fn shares(&self) -> (u64, u64) {
        (
            (self.emitted_rows / SHARE).clamp(LEAST_ROWS, MOST_ROWS),
            (self.emitted_responses / SHARE).clamp(LEAST_RESPONSES, MOST_RESPONSES),
        )
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
        let (rows, responses) = self.shares();
        let enough = match self.pending.groups {
            None => self.pending.rows >= rows || self.pending.responses >= responses,
            // Other rows than messages may fill it, too.
            Some(_) => {
                self.pending.rest.is_some()
                    || self.pending.rows >= 2 * MOST_ROWS
                    || self.pending.responses >= 2 * responses
            }
        };
        (enough || self.pending.bytes >= MOST_BYTES) && !self.is_empty()
    }

    fn finish(&mut self) -> Result<Batch, Error> {
        let mut pending = std::mem::take(&mut self.pending);
        self.emitted_rows += pending.rows;
        self.emitted_responses += pending.responses;
        let (rows, _) = self.shares();
        self.pending.groups = (rows >= GROUP / 2).then(|| (rows / GROUP).max(1));
        if let Some(rest) = pending.rest.take() {
            self.pending.take_messages(rest, self.privacy.as_deref());
        }
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
    /// Messages among the columns, and how many times `GROUP` of them make a large batch.
    stored_messages: u64,
    groups: Option<u64>,
    /// What did not fit into a large batch of the last page; it comes with the next one.
    rest: Option<Rows>,
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

    fn take_messages(&mut self, mut page: Rows, privacy: Option<&Privacy>) {
        let user_id = page.user_id.unwrap_or_default();
        let rows = page.rows.len() as u64;
        let within_group = self.stored_messages % GROUP + rows <= GROUP && !self.is_large();
        let readable = page.rows.iter().all(|row| row.unreadable.is_none());
        if within_group && privacy.is_none() && readable {
            self.messages
                .append_rows(user_id, &page.rows.iter().collect::<Vec<_>>());
            self.stored_messages += rows;
            for row in &page.rows {
                self.count(row);
            }
            return self.close(page);
        }
        for (taken, row) in page.rows.iter().enumerate() {
            if self.is_large() {
                page.rows.drain(..taken);
                self.rest = Some(page);
                return;
            }
            // Messages always come with their user.
            self.take_message(user_id, row, privacy);
        }
        self.close(page);
    }

    /// Whether a multiple of `GROUP` was reached and this was the last one, because there are enough
    /// messages or another `GROUP` would be too much JSON.
    fn is_large(&self) -> bool {
        let Some(most) = self.groups else {
            return false;
        };
        let groups = self.stored_messages / GROUP;
        let bytes_a_group = self.bytes / usize::try_from(groups.max(1)).unwrap_or(usize::MAX);
        groups > 0
            && self.stored_messages.is_multiple_of(GROUP)
            && (groups >= most || self.bytes + bytes_a_group > MOST_BYTES)
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
        self.count(row);
        let appended = self.users.append_row(row, privacy);
        self.reject(row, row.id, appended, privacy);
    }

    fn take_message(&mut self, user_id: i64, row: &Row, privacy: Option<&Privacy>) {
        self.count(row);
        let appended = self.messages.append_row(user_id, row, privacy);
        self.stored_messages += u64::from(appended.is_ok());
        self.reject(row, Some(user_id), appended, privacy);
    }

    /// Notes where to resume the list after this page's rows.
    fn close(&mut self, page: Rows) {
        self.responses += 1;
        if let Some(cursor) = page.cursor {
            self.cursors.insert(page.user_id, cursor);
        }
    }

    fn count(&mut self, row: &Row) {
        self.rows += 1;
        self.bytes += row.json().len();
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
