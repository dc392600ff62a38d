//! One run of the mirror's reading: what to ask, and batches in the order they may be committed.
//!
//! `known.rs` is what the mirror handed over, `plan.rs` what to ask next, `growing_end.rs` the one
//! request that shows a long list's new rows, `reading.rs` sends, `batch.rs` gathers, `ask.rs` asks
//! for single rows, `board.rs` says how far it has come.

mod ask;
mod batch;
mod board;
mod growing_end;
mod known;
mod outline;
mod plan;
mod reading;

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::ArrowError;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

pub use self::ask::RowKey;
use self::ask::{Asked, ask_all};
pub use self::batch::Batch;
use self::batch::Pending;
use self::board::Board;
pub use self::board::Progress;
pub use self::known::{HalfRead, Known, Mode, largest_page};
use self::plan::{Plan, Terms};
use self::reading::{Event, read_all};
use super::client::Client;
use super::columns::columns_failure;
use super::error::Error;
use super::feed::Feed;
use super::timestamp::Timestamp;

/// A batch is given out when its first row is this old.
pub const BATCH_AGE: Duration = Duration::from_secs(2);

/// What a run is to read.
enum Source {
    /// The users and their messages.
    Lists(Feed<Event>),
    /// Single rows.
    Rows(Feed<Asked>),
}

/// A run under way.
pub struct SyncRun {
    source: Source,
    state: Mutex<State>,
    client: Client,
    board: Arc<Board>,
}

#[derive(Default)]
struct State {
    pending: Pending,
    failed: Option<Error>,
    ended: bool,
}

impl SyncRun {
    /// Reads all users, and the messages of all whose lists are not done.
    pub fn new(client: Client, known: Known, mode: Mode, max_staleness: Option<Duration>) -> Self {
        let client = client.counted();
        let board = Arc::new(Board::default());
        if let Some(limit) = known.largest_page {
            board.note_page_rows(limit.get().into());
        }
        let terms = Terms {
            mode,
            max_staleness,
            now: Timestamp::by(client.clock()),
        };
        let plan = Plan::new(known, terms);
        board.add_lists_done(plan.lists_done());
        let (reader, shared) = (client.clone(), Arc::clone(&board));
        let feed = Feed::new(move |outlet| read_all(reader, plan, shared, outlet));
        Self::under_way(client, Source::Lists(feed), board)
    }

    /// Asks for these rows one by one.
    pub fn ask(client: Client, keys: Vec<RowKey>) -> Self {
        let client = client.counted();
        let reader = client.clone();
        let feed = Feed::new(move |outlet| ask_all(reader, keys, outlet));
        Self::under_way(client, Source::Rows(feed), Arc::default())
    }

    fn under_way(client: Client, source: Source, board: Arc<Board>) -> Self {
        Self {
            source,
            state: Mutex::default(),
            client,
            board,
        }
    }

    /// Requests sent so far, retries among them.
    pub fn requests(&self) -> u64 {
        self.client.sent()
    }

    /// How many users there are, as the service last said.
    pub fn users_total(&self) -> Option<i64> {
        self.board.users_total()
    }

    /// How far the run has come, and how fast it goes now.
    pub fn progress(&self) -> Progress {
        self.board
            .progress(self.client.sent(), self.client.clock().now())
    }

    pub fn stop(&self) {
        match &self.source {
            Source::Lists(feed) => feed.stop(),
            Source::Rows(feed) => feed.stop(),
        }
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
            let taken = match due {
                None => self.take_next(&mut state.pending).await,
                Some(due) => match timeout_at(due, self.take_next(&mut state.pending)).await {
                    Ok(taken) => taken,
                    Err(_) => break,
                },
            };
            self.board
                .sample(self.client.sent(), self.client.clock().now());
            match taken {
                Ok(true) => {
                    if due.is_none() && !state.pending.is_empty() {
                        due = Instant::now().checked_add(BATCH_AGE);
                    }
                }
                Ok(false) => state.ended = true,
                Err(error) if state.pending.is_empty() => {
                    state.ended = true;
                    return Err(error);
                }
                Err(error) => {
                    state.failed = Some(error);
                    break;
                }
            }
        }
        if state.pending.is_empty() {
            return Ok(None);
        }
        let batch = std::mem::take(&mut state.pending)
            .finish()
            .map_err(columns_failure)?;
        self.board.add_lists_done(batch.lists_ended);
        Ok(Some(batch))
    }

    /// Puts what comes next with what is pending; false at the end. Nothing is lost when the future
    /// is dropped before it is done.
    async fn take_next(&self, pending: &mut Pending) -> Result<bool, Error> {
        let taken: Result<bool, ArrowError> = match &self.source {
            Source::Lists(feed) => match feed.next().await? {
                Some(event) => pending.take(event).map(|()| true),
                None => Ok(false),
            },
            Source::Rows(feed) => match feed.next().await? {
                Some(asked) => pending.take_asked(asked).map(|()| true),
                None => Ok(false),
            },
        };
        taken.map_err(columns_failure)
    }
}
