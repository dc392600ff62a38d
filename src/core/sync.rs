//! One run of the mirror's reading: what to ask, and batches in the order they may be committed.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::client::Client;
use super::columns::{ListColumns, MessageColumns, RejectColumns, UserColumns, columns_failure};
use super::crawl::{Event, Users, askable, crawl};
use super::error::Error;
use super::feed::Feed;
use super::json::Fault;
use super::model::{Message, Record, User};
use super::page::Row;
use super::report::WalkReport;
use super::walk::{WalkSettings, WalkedPage};

/// A batch is given out at this many rows, or when its first row is `BATCH_AGE` old.
pub const BATCH_ROWS: u64 = 5_000;
/// Or at this much JSON: bodies have no documented size.
pub const BATCH_BYTES: usize = 64 * 1024 * 1024;
pub const BATCH_AGE: Duration = Duration::from_secs(2);

/// What belongs into one transaction: rows, and the lists that are finished by them.
#[derive(Debug)]
pub struct Batch {
    pub users: Option<RecordBatch>,
    pub messages: Option<RecordBatch>,
    pub lists: Option<RecordBatch>,
    pub rejects: Option<RecordBatch>,
    /// Set on the batch that ends the sweep of users.
    pub users_report: Option<Box<WalkReport>>,
}

/// A run under way.
pub struct SyncRun {
    feed: Feed<Event>,
    state: Mutex<State>,
    client: Client,
    /// The total of users that the service last gave; -1 where it gave none.
    users_total: AtomicI64,
}

#[derive(Default)]
struct State {
    pending: Pending,
    failed: Option<Error>,
    ended: bool,
}

impl SyncRun {
    /// Reads all users, and the messages of all but those whose lists are `done`.
    pub fn new(client: Client, done: HashSet<i64>) -> Self {
        let client = client.counted();
        Self {
            feed: crawl(
                client.clone(),
                Users::Listed,
                WalkSettings::WHOLE,
                move |user_id| done.contains(&user_id),
            ),
            state: Mutex::default(),
            client,
            users_total: AtomicI64::new(-1),
        }
    }

    /// Requests sent so far, retries among them.
    pub fn requests(&self) -> u64 {
        self.client.sent()
    }

    /// How many users there are, as the service last said.
    pub fn users_total(&self) -> Option<i64> {
        let total = self.users_total.load(Ordering::Relaxed);
        (total >= 0).then_some(total)
    }

    pub fn stop(&self) {
        self.feed.stop();
    }

    /// The next batch; `None` at the end. What was read before a failure is given out ahead of it.
    pub async fn next(&self) -> Result<Option<Batch>, Error> {
        let mut state = self.state.lock().await;
        if let Some(error) = state.failed.take() {
            state.ended = true;
            return Err(error);
        }
        let mut due: Option<Instant> = None;
        while !state.ended && !state.pending.is_full() {
            let event = match due {
                None => self.feed.next().await,
                Some(due) => match timeout_at(due, self.feed.next()).await {
                    Ok(event) => event,
                    Err(_) => break,
                },
            };
            match event {
                Ok(Some(event)) => {
                    if let Event::Users(page) = &event {
                        let total = page.total.unwrap_or(-1);
                        self.users_total.store(total, Ordering::Relaxed);
                    }
                    state.pending.take(event).map_err(columns_failure)?;
                    if due.is_none() && !state.pending.is_empty() {
                        due = Instant::now().checked_add(BATCH_AGE);
                    }
                }
                Ok(None) => state.ended = true,
                Err(error) => {
                    let held = &state.pending;
                    if held.is_empty() {
                        state.ended = true;
                        return Err(error);
                    }
                    state.failed = Some(error);
                    break;
                }
            }
        }
        if state.pending.is_empty() {
            return Ok(None);
        }
        std::mem::take(&mut state.pending)
            .finish()
            .map(Some)
            .map_err(columns_failure)
    }
}

/// Rows that were read and not given out yet.
#[derive(Default)]
struct Pending {
    rows: u64,
    bytes: usize,
    user_rows: u64,
    message_rows: u64,
    list_rows: u64,
    reject_rows: u64,
    users: UserColumns,
    messages: MessageColumns,
    lists: ListColumns,
    rejects: RejectColumns,
    users_report: Option<Box<WalkReport>>,
}

impl Pending {
    fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    fn is_empty(&self) -> bool {
        self.rows == 0 && self.users_report.is_none()
    }

    fn take(&mut self, event: Event) -> Result<(), ArrowError> {
        match event {
            Event::Users(page) => {
                for row in page.rows {
                    if let (Some(user_id), None) = (row.id, askable(&row)) {
                        let mut report = WalkReport::not_read_yet();
                        report.doubt("a negative user id cannot be asked for".to_owned());
                        self.lists.append(user_id, &report);
                        self.list_rows += 1;
                    }
                    if let Some(user) = self.fit::<User>(&row, row.id) {
                        self.users.append(&user);
                        self.user_rows += 1;
                    }
                    self.rows += 1;
                }
            }
            Event::Messages(page) => self.take_messages(page)?,
            Event::UsersEnded(report) => self.users_report = Some(report),
            Event::ListEnded { user_id, report } => {
                self.lists.append(user_id, &report);
                self.list_rows += 1;
                self.rows += 1;
            }
            Event::UserGone {
                user_id,
                mut report,
            } => {
                report.doubt("the user was gone when the messages were asked for".to_owned());
                self.lists.append(user_id, &report);
                self.list_rows += 1;
                self.rows += 1;
            }
        }
        Ok(())
    }

    fn take_messages(&mut self, page: WalkedPage) -> Result<(), ArrowError> {
        for row in page.rows {
            if let Some(message) = self.fit::<Message>(&row, page.user_id) {
                // A walk over messages always knows its user.
                self.messages
                    .append(page.user_id.unwrap_or_default(), &message)?;
                self.message_rows += 1;
            }
            self.rows += 1;
        }
        Ok(())
    }

    /// The row as a record; one that does not fit goes to the rejects.
    fn fit<T: Record>(&mut self, row: &Row, user_id: Option<i64>) -> Option<T> {
        self.bytes += row.json().len();
        match row.read() {
            Ok(record) => Some(record),
            Err(Fault { path, reason, .. }) => {
                let reason = format!("{path}: {reason}");
                self.rejects.append(row, user_id, &reason);
                self.reject_rows += 1;
                None
            }
        }
    }

    fn finish(mut self) -> Result<Batch, ArrowError> {
        let filled = |rows: u64, batch: Result<RecordBatch, ArrowError>| match rows {
            0 => Ok(None),
            _ => batch.map(Some),
        };
        Ok(Batch {
            users: filled(self.user_rows, self.users.finish())?,
            messages: filled(self.message_rows, self.messages.finish())?,
            lists: filled(self.list_rows, self.lists.finish())?,
            rejects: filled(self.reject_rows, self.rejects.finish())?,
            users_report: self.users_report,
        })
    }
}
