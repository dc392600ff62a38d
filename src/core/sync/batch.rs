//! Rows that were read but not committed yet, and the batch that they become.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::ask::Asked;
use super::reading::{Event, Rows};
use crate::core::api::Resource;
use crate::core::arrow::columns::{
    CursorColumns, GoneColumns, ListColumns, MessageColumns, RejectColumns, UserColumns,
};
use crate::core::decode::json::Fault;
use crate::core::decode::page::{Row, Unreadable};
use crate::core::list_state::{Hints, Kind, ListRow, ListState, askable};
use crate::core::report::WalkReport;
use crate::core::timestamp::Timestamp;

/// A batch is emitted at this many responses, so that a killed run has little to request again,
const LEAST_ANSWERS: u64 = 16;
/// or at this many rows.
const LEAST_ROWS: u64 = 1_600;
/// As a run emits more, the batch size grows to what was emitted divided by this: larger commits
/// cost less per row, and a kill still loses only a small part of the work.
const SHARE: u64 = 16;
const MOST_ANSWERS: u64 = 600;
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
}

/// What a run has emitted so far.
#[derive(Debug, Default)]
pub struct Given {
    rows: u64,
    answers: u64,
}

impl Given {
    pub fn add(&mut self, pending: &Pending) {
        self.rows += pending.rows;
        self.answers += pending.answers;
    }
}

/// Rows that were read but not emitted yet.
#[derive(Default)]
pub struct Pending {
    rows: u64,
    answers: u64,
    bytes: usize,
    lists_ended: u64,
    users: UserColumns,
    messages: MessageColumns,
    lists: ListColumns,
    rejects: RejectColumns,
    gone: GoneColumns,
    cursors: BTreeMap<Option<i64>, (String, Option<Timestamp>)>,
    users_report: Option<Box<WalkReport>>,
}

impl Pending {
    /// Whether it has reached the batch size, which depends on what was emitted before.
    pub fn is_full(&self, given: &Given) -> bool {
        let enough = self.rows >= (given.rows / SHARE).clamp(LEAST_ROWS, MOST_ROWS)
            || self.answers >= (given.answers / SHARE).clamp(LEAST_ANSWERS, MOST_ANSWERS)
            || self.bytes >= MOST_BYTES;
        enough && !self.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0 && self.users_report.is_none()
    }

    pub fn take(&mut self, event: Event) -> Result<(), ArrowError> {
        match event {
            Event::Users(page) => {
                for row in &page.rows {
                    self.take_user(row);
                }
                self.close(page);
            }
            Event::Messages(page) => {
                for row in &page.rows {
                    // Messages always come with their user.
                    self.take_message(page.user_id.unwrap_or_default(), row)?;
                }
                self.close(page);
            }
            Event::UsersEnded(report) => {
                self.cursors.remove(&None);
                self.users_report = Some(report);
            }
            Event::ListEnded(row) => {
                // A run that ends with an error resumes within a list that was given up.
                if row.state.kind != Kind::Unread {
                    self.cursors.remove(&Some(row.user_id));
                }
                self.lists.append(&row);
                // The response for an empty list had no rows, so it was not counted before.
                self.answers += u64::from(row.state.rows == 0);
                self.lists_ended += 1;
                self.rows += 1;
            }
        }
        Ok(())
    }

    /// Takes the result of fetching a row by its id.
    pub fn take_asked(&mut self, asked: Asked) -> Result<(), ArrowError> {
        match asked {
            Asked::Found { user_id, row } => match row.resource() {
                Resource::Users => self.take_user(&row),
                Resource::Messages => self.take_message(user_id.unwrap_or_default(), &row)?,
            },
            Asked::Gone(gone) => {
                self.gone.append(gone.resource, gone.user_id, gone.id);
                self.rows += 1;
            }
        }
        self.answers += 1;
        Ok(())
    }

    fn take_user(&mut self, row: &Row) {
        if let (Some(user_id), None) = (row.id, askable(row)) {
            let mut report = WalkReport::not_read_yet();
            report.doubt("a negative user id cannot be asked for".to_owned());
            self.lists.append(&ListRow {
                user_id,
                state: ListState::of(&report, Kind::Whole, Hints::default()),
                requests: 0,
                reason: report.reason,
            });
        }
        if let Some(user) = self.fit(row, row.id, Row::user) {
            self.users.append(&user);
        }
    }

    fn take_message(&mut self, user_id: i64, row: &Row) -> Result<(), ArrowError> {
        if let Some(message) = row.flat_message() {
            self.count(row);
            return self.messages.append_flat(user_id, &message);
        }
        match self.fit(row, Some(user_id), Row::message) {
            Some(message) => self.messages.append(user_id, &message),
            None => Ok(()),
        }
    }

    /// Notes where to resume the list after this page's rows.
    fn close(&mut self, page: Rows) {
        self.answers += 1;
        if let Some(cursor) = page.cursor {
            self.cursors.insert(page.user_id, cursor);
        }
    }

    fn count(&mut self, row: &Row) {
        self.rows += 1;
        self.bytes += row.json().len();
    }

    /// Converts a row to a record; one that does not fit goes to the rejects.
    fn fit<'a, T>(
        &mut self,
        row: &'a Row,
        user_id: Option<i64>,
        read: impl FnOnce(&'a Row) -> Result<T, Fault>,
    ) -> Option<T> {
        self.count(row);
        // A row that is too large has no content to store; its list's reason names it.
        if row.unreadable == Some(Unreadable::TooLarge) {
            return None;
        }
        match read(row) {
            Ok(record) => Some(record),
            Err(Fault { path, reason, .. }) => {
                let reason = format!("{path}: {reason}");
                self.rejects.append(row, user_id, &reason);
                None
            }
        }
    }

    pub fn finish(mut self) -> Result<Batch, ArrowError> {
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
        })
    }
}
