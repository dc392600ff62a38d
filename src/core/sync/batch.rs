//! Rows that were read but not committed yet, and the batch that they become.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::events::{Event, Held, Rows};
use super::known::{self, Audit, Cursor};
use crate::api::Resource;
use crate::arrow::columns::{
    GoneColumns, ListColumns, MessageColumns, RejectColumns, UserColumns, columns_failure,
};
use crate::decode::json::Fault;
use crate::decode::page::Row;
use crate::error::Error;
use crate::list_state::{Compared, Hints, Kind, ListRow, ListState, requestable_id};
use crate::prefetch::Gather;
use crate::privacy::Privacy;
use crate::report::WalkReport;

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

/// The content of one transaction: rows, and their lists as far as they are read.
#[derive(Debug)]
pub struct Batch {
    pub users: Option<RecordBatch>,
    pub messages: Option<RecordBatch>,
    pub lists: Option<RecordBatch>,
    pub rejects: Option<RecordBatch>,
    pub gone: Option<RecordBatch>,
    /// Where to resume the list of users, if it is being read.
    pub users_state: Option<String>,
    /// Set on the batch that ends the sweep of users.
    pub users_report: Option<Box<WalkReport>>,
    /// The sample of a quick run, in the batch after it was drawn.
    pub audit: Option<Audit>,
    /// The number of lists that end in this batch.
    pub lists_ended: u64,
}

/// Collects what a run finds into batches.
pub struct Batches {
    privacy: Option<Arc<Privacy>>,
    pending: Pending,
    /// Rows and responses in the batches emitted so far.
    emitted_rows: u64,
    emitted_responses: u64,
}

impl Batches {
    /// `begun` are the lists of users that the run has partly read.
    pub fn new(privacy: Option<Arc<Privacy>>, begun: &HashMap<i64, known::HalfRead>) -> Self {
        let half_read = begun.iter().map(|(user_id, begun)| {
            let half_read = HalfRead {
                cursor: Box::new(begun.cursor.clone()),
                held: Held::default(),
                emitted: true,
            };
            (Some(*user_id), half_read)
        });
        Self {
            privacy,
            pending: Pending {
                half_read: half_read.collect(),
                ..Pending::default()
            },
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
        self.pending.take(event, self.privacy.as_deref());
        Ok(())
    }

    fn is_empty(&self) -> bool {
        let Pending {
            rows,
            users_report,
            audit,
            ..
        } = &self.pending;
        *rows == 0 && users_report.is_none() && audit.is_none()
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
        let users_state = pending.append_half_read(self.privacy.as_deref());
        self.pending.half_read = std::mem::take(&mut pending.half_read);
        if let Some(rest) = pending.rest.take() {
            self.pending.take_messages(rest, self.privacy.as_deref());
        }
        pending.finish(users_state).map_err(columns_failure)
    }
}

/// Where to resume a list that is being read.
struct HalfRead {
    cursor: Box<Cursor>,
    held: Held,
    /// It is in a batch already.
    emitted: bool,
}

impl HalfRead {
    /// As the mirror stores it. No hash is stored of a text that is not.
    fn state(&mut self, privacy: Option<&Privacy>) -> Option<String> {
        if privacy.is_some() {
            self.cursor.walk.without_hashes();
        }
        serde_json::to_string(&self.cursor).ok()
    }
}

/// Rows that were read but not emitted yet.
#[derive(Default)]
struct Pending {
    rows: u64,
    responses: u64,
    bytes: usize,
    lists_ended: u64,
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
    /// The lists that are being read, by user; `None` for the list of users.
    half_read: BTreeMap<Option<i64>, HalfRead>,
    users_report: Option<Box<WalkReport>>,
    audit: Option<Audit>,
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
                self.half_read.remove(&None);
                self.users_report = Some(report);
            }
            Event::AuditDrawn(audit) => self.audit = Some(audit),
            Event::ListEnded(row) => {
                // A response without rows was not counted before.
                self.responses += u64::from(row.state.rows == 0);
                // A run that ends with an error resumes within a list that was given up.
                let begun = self.half_read.remove(&Some(row.user_id));
                let state = match row.state.kind {
                    Kind::Unread => begun.and_then(|mut begun| begun.state(privacy)),
                    _ => serde_json::to_string(&row.state).ok(),
                };
                self.lists.append(&row, state.as_deref());
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
            let state = ListState::of(&report, Kind::Whole, Hints::default());
            self.lists
                .append(&ListRow::of(user_id, &report, state), None);
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
            let half_read = HalfRead {
                cursor,
                held: page.held,
                emitted: false,
            };
            self.half_read.insert(page.user_id, half_read);
        }
    }

    /// Adds the lists that are being read; returns where to resume the list of users.
    fn append_half_read(&mut self, privacy: Option<&Privacy>) -> Option<String> {
        let mut users_state = None;
        for (user_id, read) in &mut self.half_read {
            if std::mem::replace(&mut read.emitted, true) {
                continue;
            }
            let state = read.state(privacy);
            let Some(user_id) = *user_id else {
                users_state = state;
                continue;
            };
            let list = ListRow {
                user_id,
                total: read.held.total,
                reason: Some("it is not read to its end yet".to_owned()),
                state: ListState {
                    kind: Kind::Partial,
                    rows: read.held.rows,
                    checked_at: read.held.checked_at,
                    ..ListState::default()
                },
                compared: Compared::default(),
            };
            self.lists.append(&list, state.as_deref());
        }
        users_state
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

    fn finish(mut self, users_state: Option<String>) -> Result<Batch, ArrowError> {
        let filled = |batch: RecordBatch| (batch.num_rows() > 0).then_some(batch);
        Ok(Batch {
            users: filled(self.users.finish()?),
            messages: filled(self.messages.finish()?),
            lists: filled(self.lists.finish()?),
            rejects: filled(self.rejects.finish()?),
            gone: filled(self.gone.finish()?),
            users_state,
            users_report: self.users_report,
            audit: self.audit,
            lists_ended: self.lists_ended,
        })
    }
}
