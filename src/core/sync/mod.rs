//! One run of the mirror's reading: what to request, and batches in the order they may be
//! committed.
//!
//! `known` is what the mirror passes in, `plan` decides what to read next, `growing_end`
//! reads a long list's new rows with one request, `reading` sends, `batch` collects, `ask`
//! fetches single rows, `progress` tracks progress.

mod ask;
mod batch;
mod growing_end;
mod known;
mod list_shape;
mod plan;
mod progress;
mod reading;

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::ArrowError;
use tokio::time::{Instant, timeout_at};

pub use self::ask::RowKey;
use self::ask::{Asked, ask_all};
pub use self::batch::Batch;
use self::batch::{Given, Pending};
pub use self::known::{HalfRead, Known, Mode, largest_page};
use self::plan::{Plan, Terms};
pub use self::progress::Progress;
use self::progress::ProgressCounters;
use self::reading::{Event, read_all};
use super::client::Client;
use super::error::Error;
use super::prefetch::{Outlet, Prefetch};
use super::timestamp::Timestamp;
use crate::core::arrow::columns::columns_failure;

/// A batch is emitted when its first row is this old.
pub const BATCH_AGE: Duration = Duration::from_secs(2);

/// What a run reads.
enum Source {
    /// The users and their messages.
    Lists(Prefetch<Event>),
    /// Single rows.
    Rows(Prefetch<Asked>),
}

/// A run in progress, at most one batch ahead of the caller that commits them.
pub struct SyncRun {
    batches: Prefetch<Batch>,
    client: Client,
    /// The outage time before this run.
    down_before: Duration,
    counters: Arc<ProgressCounters>,
}

impl SyncRun {
    /// Reads all users, and the messages of all users whose lists are not done.
    pub fn new(client: Client, known: Known, mode: Mode, max_staleness: Option<Duration>) -> Self {
        let client = client.counted().patient();
        let counters = Arc::new(ProgressCounters::default());
        if let Some(limit) = known.largest_page {
            counters.note_page_rows(limit.get().into());
        }
        let terms = Terms {
            mode,
            max_staleness,
            now: Timestamp::by(client.clock()),
        };
        let plan = Plan::new(known, terms);
        counters.add_lists_done(plan.lists_done());
        let (reader, shared) = (client.clone(), Arc::clone(&counters));
        let prefetch = Prefetch::new(move |outlet| read_all(reader, plan, shared, outlet));
        Self::under_way(client, Source::Lists(prefetch), counters)
    }

    /// Fetches these rows one by one.
    pub fn ask(client: Client, keys: Vec<RowKey>) -> Self {
        let client = client.counted().patient();
        let reader = client.clone();
        let prefetch = Prefetch::new(move |outlet| ask_all(reader, keys, outlet));
        Self::under_way(client, Source::Rows(prefetch), Arc::default())
    }

    fn under_way(client: Client, source: Source, counters: Arc<ProgressCounters>) -> Self {
        let gathering = Gathering {
            source,
            client: client.clone(),
            counters: Arc::clone(&counters),
        };
        Self {
            batches: Prefetch::new(move |outlet| gathering.run(outlet)),
            down_before: client.outage_time(),
            client,
            counters,
        }
    }

    /// Requests sent so far, including retries.
    pub fn requests(&self) -> u64 {
        self.client.sent()
    }

    /// How many users there are, as the service last said.
    pub fn users_total(&self) -> Option<i64> {
        self.counters.users_total()
    }

    /// The run's progress and current speed.
    pub fn progress(&self) -> Progress {
        self.counters.progress(
            self.client.sent(),
            self.client.outage_seconds_since(self.down_before),
            self.client.clock().now(),
        )
    }

    pub fn stop(&self) {
        self.batches.stop();
    }

    /// The next batch; `None` at the end. Rows read before a failure are emitted before its error.
    pub async fn next(&self) -> Result<Option<Batch>, Error> {
        let batch = self.batches.next().await?;
        if let Some(batch) = &batch {
            self.counters.add_lists_done(batch.lists_ended);
        }
        Ok(batch)
    }
}

/// The task that assembles batches.
struct Gathering {
    source: Source,
    client: Client,
    counters: Arc<ProgressCounters>,
}

impl Gathering {
    async fn run(self, outlet: Outlet<Batch>) -> Result<(), Error> {
        let mut given = Given::default();
        // A kill loses what was read for the next batch, so read at most one ahead.
        while outlet.room().await {
            let (pending, ended) = self.gather(&given).await;
            given.add(&pending);
            if !pending.is_empty() {
                let batch = pending.finish().map_err(columns_failure)?;
                outlet.put(batch).await;
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
        Ok(())
    }

    /// Collects the next batch; also returns the result if the reading has ended.
    async fn gather(&self, given: &Given) -> (Pending, Option<Result<(), Error>>) {
        let mut pending = Pending::default();
        let mut due: Option<Instant> = None;
        while !pending.is_full(given) {
            let taken = match due {
                None => self.take_next(&mut pending).await,
                Some(due) => match timeout_at(due, self.take_next(&mut pending)).await {
                    Ok(taken) => taken,
                    Err(_) => break,
                },
            };
            self.counters
                .sample(self.client.sent(), self.client.clock().now());
            match taken {
                Ok(true) => {
                    if due.is_none() && !pending.is_empty() {
                        due = Instant::now().checked_add(BATCH_AGE);
                    }
                }
                Ok(false) => return (pending, Some(Ok(()))),
                Err(error) => return (pending, Some(Err(error))),
            }
        }
        (pending, None)
    }

    /// Adds what comes next to the pending rows; false at the end. Cancel-safe: dropping the future
    /// loses nothing.
    async fn take_next(&self, pending: &mut Pending) -> Result<bool, Error> {
        let taken: Result<bool, ArrowError> = match &self.source {
            Source::Lists(prefetch) => match prefetch.next().await? {
                Some(event) => pending.take(event).map(|()| true),
                None => Ok(false),
            },
            Source::Rows(prefetch) => match prefetch.next().await? {
                Some(asked) => pending.take_asked(asked).map(|()| true),
                None => Ok(false),
            },
        };
        taken.map_err(columns_failure)
    }
}
