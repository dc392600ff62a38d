//! What was read but not committed yet, and the batch that it becomes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::context::{Event, ListProgress, ReadRows};
use super::known::{Audit, HalfRead};
use crate::arrow::columns::{
    GoneColumns, ListColumns, MessageColumns, RejectColumns, UserColumns, columns_failure,
};
use crate::decode::json::Fault;
use crate::decode::page::Row;
use crate::error::Error;
use crate::list_state::{Hints, Kind, ListRow, ListState, requestable_id};
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
/// together (`ROWS_A_GROUP` in `database.py`): it writes those to their place at once, and others
/// first to its log.
const GROUP: usize = 16_384;

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
    pending: VecDeque<Event>,
    size: Size,
    emitted: Size,
}

/// How much was read.
#[derive(Clone, Copy, Default)]
struct Size {
    rows: u64,
    responses: u64,
    bytes: usize,
}

impl Size {
    fn add(&mut self, event: &Event) {
        match event {
            Event::Rows(page) => {
                self.rows += page.rows.len() as u64;
                self.responses += 1;
                let json = page.rows.iter().map(|row| row.json().len());
                self.bytes += json.sum::<usize>();
            }
            Event::RowGone(_) => {
                self.rows += 1;
                self.responses += 1;
            }
            Event::ListEnded(ended) => {
                self.rows += 1;
                // A response without rows was not counted before.
                self.responses += u64::from(ended.list.state.rows == 0);
            }
            Event::UsersEnded(_) | Event::AuditDrawn(_) => {}
        }
    }
}

impl Batches {
    pub fn new(privacy: Option<Arc<Privacy>>) -> Self {
        Self {
            privacy,
            pending: VecDeque::new(),
            size: Size::default(),
            emitted: Size::default(),
        }
    }
}

impl Gather<Event> for Batches {
    type Gathered = Batch;

    fn take(&mut self, event: Event) -> Result<(), Error> {
        self.size.add(&event);
        self.pending.push_back(event);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    fn is_full(&self) -> bool {
        let rows = (self.emitted.rows / SHARE).clamp(LEAST_ROWS, MOST_ROWS);
        let responses = (self.emitted.responses / SHARE).clamp(LEAST_RESPONSES, MOST_RESPONSES);
        self.size.rows >= rows || self.size.responses >= responses || self.size.bytes >= MOST_BYTES
    }

    fn finish(&mut self) -> Result<Batch, Error> {
        let messages: usize = self.pending.iter().map(Event::messages).sum();
        let mut room = match messages / GROUP {
            0 => messages,
            groups => groups * GROUP,
        };
        let mut filling = Filling {
            privacy: self.privacy.clone(),
            ..Filling::default()
        };
        while let Some(mut event) = self.pending.pop_front() {
            let messages = event.messages();
            if messages > room {
                if let Event::Rows(page) = &mut event {
                    filling.take(Event::Rows(ReadRows {
                        user_id: page.user_id,
                        rows: page.rows.drain(..room).collect(),
                        progress: None,
                    }));
                }
                self.pending.push_front(event);
                break;
            }
            room -= messages;
            filling.take(event);
        }
        self.emitted.rows += self.size.rows;
        self.emitted.responses += self.size.responses;
        self.size = Size::default();
        for event in &self.pending {
            self.size.add(event);
        }
        filling.finish().map_err(columns_failure)
    }
}

/// A batch that is being filled.
#[derive(Default)]
struct Filling {
    privacy: Option<Arc<Privacy>>,
    users: UserColumns,
    messages: MessageColumns,
    lists: ListColumns,
    rejects: RejectColumns,
    gone: GoneColumns,
    /// The lists that are being read, by user; `None` for the list of users.
    unfinished: BTreeMap<Option<i64>, Box<ListProgress>>,
    users_report: Option<Box<WalkReport>>,
    audit: Option<Audit>,
    lists_ended: u64,
}

impl Filling {
    fn take(&mut self, event: Event) {
        match event {
            Event::Rows(page) => self.take_rows(page),
            Event::RowGone(key) => self.gone.append(key.resource, key.user_id, key.id),
            Event::ListEnded(ended) => {
                self.unfinished.remove(&Some(ended.list.user_id));
                let state = match (ended.half_read, ended.list.state.kind) {
                    (Some(half_read), _) => self.half_read_state(half_read),
                    (None, Kind::Unread) => None,
                    (None, _) => serde_json::to_string(&ended.list.state).ok(),
                };
                self.lists.append(&ended.list, state.as_deref());
                self.lists_ended += 1;
            }
            Event::UsersEnded(report) => {
                self.unfinished.remove(&None);
                self.users_report = Some(report);
            }
            Event::AuditDrawn(audit) => self.audit = Some(audit),
        }
    }

    fn take_rows(&mut self, page: ReadRows) {
        let readable = page.rows.iter().all(|row| row.unreadable.is_none());
        match page.user_id {
            Some(user_id) if readable && self.privacy.is_none() => {
                self.messages
                    .append_rows(user_id, &page.rows.iter().collect::<Vec<_>>());
            }
            user_id => {
                for row in &page.rows {
                    self.take_row(user_id, row);
                }
            }
        }
        if let Some(progress) = page.progress {
            self.unfinished.insert(page.user_id, progress);
        }
    }

    fn take_row(&mut self, user_id: Option<i64>, row: &Row) {
        let privacy = self.privacy.as_deref();
        let appended = match user_id {
            None => self.users.append_row(row, privacy),
            Some(user_id) => self.messages.append_row(user_id, row, privacy),
        };
        // Stores a row that is no record with the rejects.
        if let Err(Fault { path, reason, .. }) = appended {
            let (json, reason) = match privacy {
                None => (row.json().to_owned(), format!("{path}: {reason}")),
                Some(privacy) => privacy.reject(row),
            };
            self.rejects.append(row, user_id.or(row.id), &json, &reason);
        }
        if user_id.is_none()
            && let (Some(user_id), None) = (row.id, requestable_id(row))
        {
            let mut report = WalkReport::not_read_yet();
            report.doubt("a negative user id cannot be requested".to_owned());
            let state = ListState::of(&report, Kind::Whole, Hints::default());
            let list = ListRow::of(user_id, &report, state);
            self.lists.append(&list, None);
        }
    }

    /// As the mirror stores it. No hash is stored of a text that is not.
    fn half_read_state(&self, mut half_read: HalfRead) -> Option<String> {
        if let (Some(_), Some(walk)) = (&self.privacy, &mut half_read.walk) {
            walk.without_hashes();
        }
        serde_json::to_string(&half_read).ok()
    }

    fn finish(mut self) -> Result<Batch, ArrowError> {
        let mut users_state = None;
        for (user_id, unfinished) in std::mem::take(&mut self.unfinished) {
            let half_read = unfinished.half_read;
            let state = half_read.and_then(|half_read| self.half_read_state(half_read));
            match user_id {
                Some(_) => self.lists.append(&unfinished.list, state.as_deref()),
                None => users_state = state,
            }
        }
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
