//! One run of the mirror's reading: what to request, and batches in the order they may be
//! committed.
//!
//! `known` is what the mirror passes in, `evidence` whether hints are trusted,
//! `plan` decides what to read next, `reading` reads users and
//! lists, `list_reading` one list, `growing_end` a long list's new rows with one request,
//! `list_shape` is what its pages showed, `row_fetches` fetches single rows, `context` is what they
//! share, `events` is what they find, `batch` collects it, `progress` tracks progress.

mod batch;
mod context;
mod events;
mod evidence;
mod growing_end;
mod known;
mod list_reading;
mod list_shape;
mod plan;
mod progress;
mod reading;
mod row_fetches;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

pub use self::batch::Batch;
use self::batch::Batches;
use self::events::Event;
pub use self::events::RowKey;
pub use self::evidence::{Evidence, RunEvidence};
pub use self::known::{Audit, HalfRead, Known, MeasuredPages, Mode};
use self::plan::{Plan, Terms};
pub use self::progress::Progress;
use self::progress::ProgressCounters;
use self::reading::{REQUESTS_A_LIST, read_all};
use self::row_fetches::fetch_rows;
use super::budget::RunBudget;
use super::client::Client;
use super::error::Error;
use super::prefetch::{Prefetch, gathered};
use super::privacy::Privacy;
use super::timestamp::Timestamp;

/// A batch is emitted when its first row is this old.
pub const BATCH_AGE: Duration = Duration::from_secs(2);

/// With a budget, the most lists that failed last time and come first,
const MOST_UNREAD_FIRST: u64 = 64;
/// but, if they fail again, of at most this fraction of its requests.
const SHARE_OF_UNREAD: u64 = 4;

/// How a run reads, and how much it may spend.
#[derive(Debug, Clone, Copy)]
pub struct RunOptions {
    pub mode: Mode,
    pub max_staleness: Option<Duration>,
    pub limits: RunLimits,
}

/// What a run may spend; then it ends early, without an error.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunLimits {
    /// Requests, retries included.
    pub max_requests: Option<u64>,
    pub max_time: Option<Duration>,
}

impl RunLimits {
    fn start(self, client: &Client) -> Arc<RunBudget> {
        let clock = client.clock();
        Arc::new(RunBudget::start(self.max_requests, self.max_time, clock))
    }
}

/// A run in progress, at most one batch ahead of the caller that commits them.
pub struct SyncRun {
    batches: Prefetch<Batch>,
    client: Client,
    /// The outage time before this run.
    down_before: Duration,
    counters: Arc<ProgressCounters>,
    budget: Arc<RunBudget>,
    /// Nothing was read so far, and a run that reads nothing because the service fails is an error.
    nothing_read: AtomicBool,
}

/// The client of a run, which waits longer in an outage and counts what the run sends.
fn of_a_run(client: &Client) -> Client {
    client.with(|call| {
        call.count_anew();
        call.wait_as_a_sync();
    })
}

impl SyncRun {
    /// Reads all users, or those given, and their messages unless their lists are done; the rows
    /// leave out what `privacy` says.
    pub fn new(
        client: Client,
        known: Known,
        options: RunOptions,
        privacy: Option<Arc<Privacy>>,
    ) -> Self {
        let client = of_a_run(&client);
        let budget = options.limits.start(&client);
        let counters = Arc::new(ProgressCounters::default());
        if let Some(limit) = known.largest_page {
            counters.note_page_rows(limit.get().into());
        }
        let terms = Terms {
            mode: options.mode,
            max_staleness: options.max_staleness,
            now: Timestamp::by(client.clock()),
            all_users_first: budget.is_limited() || options.mode == Mode::Quick,
            most_unread_first: most_unread_first(&client, &budget),
            most_end_pages: most_end_pages(&budget),
            seed: RandomState::new().hash_one(0),
        };
        let batches = Batches::new(privacy, &known.half_read);
        let plan = Plan::new(known, terms);
        counters.add_lists_done(plan.lists_done());
        let (reader, run) = (client.clone(), Arc::clone(&budget));
        let shared = Arc::clone(&counters);
        let events = Prefetch::new(move |outlet| read_all(reader, run, plan, shared, outlet));
        let run = Self::of(client, events, counters, budget, batches);
        run.nothing_read.store(true, Ordering::Relaxed);
        run
    }

    /// Fetches these rows one by one.
    pub fn fetch(
        client: Client,
        keys: Vec<RowKey>,
        limits: RunLimits,
        privacy: Option<Arc<Privacy>>,
    ) -> Self {
        let client = of_a_run(&client);
        let budget = limits.start(&client);
        let (reader, run) = (client.clone(), Arc::clone(&budget));
        let events = Prefetch::new(move |outlet| fetch_rows(reader, run, keys, outlet));
        let batches = Batches::new(privacy, &HashMap::new());
        Self::of(client, events, Arc::default(), budget, batches)
    }

    fn of(
        client: Client,
        events: Prefetch<Event>,
        counters: Arc<ProgressCounters>,
        budget: Arc<RunBudget>,
        batches: Batches,
    ) -> Self {
        Self {
            batches: gathered(events, batches, Some(BATCH_AGE)),
            down_before: client.outage_time(),
            client,
            counters,
            budget,
            nothing_read: AtomicBool::new(false),
        }
    }

    /// Whether something was not read because the budget was spent.
    pub fn ended_early(&self) -> bool {
        self.budget.was_spent()
    }

    /// The last failure whose retry would have come after the end of the run's time.
    pub fn stopped_by(&self) -> Option<Error> {
        self.budget.stopped_by()
    }

    /// The time by the service's clock at its last answer, if it tells.
    pub fn service_date(&self) -> Option<SystemTime> {
        self.client.service_date()
    }

    /// Requests sent so far, including retries.
    pub fn requests(&self) -> u64 {
        self.client.sent()
    }

    /// Places that were not valid Unicode in what was read so far.
    pub fn repaired_text(&self) -> u64 {
        self.client.repaired_text()
    }

    /// How many users there are, as the service last said.
    pub fn users_total(&self) -> Option<i64> {
        self.counters.users_total()
    }

    /// How far the run has come.
    pub fn progress(&self) -> Progress {
        self.counters.progress(
            self.client.sent(),
            self.client.outage_seconds_since(self.down_before),
        )
    }

    pub fn stop(&self) {
        self.batches.stop();
    }

    /// The next batch; `None` at the end. Rows read before a failure are emitted before its error.
    pub async fn next(&self) -> Result<Option<Batch>, Error> {
        let batch = self.batches.next().await?;
        match &batch {
            Some(batch) => {
                self.nothing_read.store(false, Ordering::Relaxed);
                self.counters.add_lists_done(batch.lists_ended);
            }
            None if self.nothing_read.load(Ordering::Relaxed) => {
                if let Some(error) = self.stopped_by() {
                    return Err(error);
                }
            }
            None => {}
        }
        Ok(batch)
    }
}

/// How many of the lists that failed last time come first.
fn most_unread_first(client: &Client, budget: &RunBudget) -> u64 {
    if !budget.is_limited() {
        return u64::MAX;
    }
    let each = u64::from(client.options().max_retries).saturating_add(1);
    let requests = budget.most_requests().unwrap_or(u64::MAX);
    (requests / SHARE_OF_UNREAD / each).clamp(1, MOST_UNREAD_FIRST)
}

/// The most pages read at a list's growing end: few with a budget, for only a sweep can be resumed.
fn most_end_pages(budget: &RunBudget) -> u64 {
    if !budget.is_limited() {
        return growing_end::MOST_PAGES;
    }
    let of_requests = budget.most_requests().unwrap_or(u64::MAX) / REQUESTS_A_LIST;
    of_requests.clamp(1, growing_end::MOST_PAGES_OF_A_BUDGET)
}
