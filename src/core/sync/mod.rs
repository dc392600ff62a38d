//! One run of the mirror's reading: what to request, and batches in the order they may be
//! committed.
//!
//! `known` is what the mirror passes in, `plan` decides what to read next, `growing_end` reads a
//! long list's new rows with one request, `reading` sends, `row_fetches` fetches single rows,
//! `events` is what they find, `batch` collects it, `progress` tracks progress.

mod batch;
mod events;
mod growing_end;
mod known;
mod list_shape;
mod plan;
mod progress;
mod reading;
mod row_fetches;

use std::sync::Arc;
use std::time::Duration;

pub use self::batch::Batch;
use self::batch::Batches;
use self::events::Event;
pub use self::events::RowKey;
pub use self::known::{HalfRead, Known, MeasuredPages, Mode};
use self::plan::{Plan, Terms};
pub use self::progress::Progress;
use self::progress::ProgressCounters;
use self::reading::read_all;
use self::row_fetches::fetch_rows;
use super::client::Client;
use super::error::Error;
use super::prefetch::{Prefetch, gathered};
use super::timestamp::Timestamp;

/// A batch is emitted when its first row is this old.
pub const BATCH_AGE: Duration = Duration::from_secs(2);

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
        let events = Prefetch::new(move |outlet| read_all(reader, plan, shared, outlet));
        Self::of(client, events, counters)
    }

    /// Fetches these rows one by one.
    pub fn fetch(client: Client, keys: Vec<RowKey>) -> Self {
        let client = client.counted().patient();
        let reader = client.clone();
        let events = Prefetch::new(move |outlet| fetch_rows(reader, keys, outlet));
        Self::of(client, events, Arc::default())
    }

    fn of(client: Client, events: Prefetch<Event>, counters: Arc<ProgressCounters>) -> Self {
        let batches = Batches::new(client.clone(), Arc::clone(&counters));
        Self {
            batches: gathered(events, batches, Some(BATCH_AGE)),
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
