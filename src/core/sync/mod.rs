//! One run of the mirror's reading: what to request, and batches in the order they may be
//! committed.
//!
//! `known` is what the mirror passes in, `evidence` whether hints are trusted,
//! `plan` decides what to read next, `reading` reads users and
//! lists, `list_reading` one list, `growing_end` a long list's new rows with one request,
//! `list_shape` is what its pages showed, `row_fetches` fetches single rows, `context` is what they
//! share and find, `batch` collects it.

mod batch;
mod context;
mod evidence;
mod growing_end;
mod known;
mod list_reading;
mod list_shape;
mod plan;
mod reading;
mod row_fetches;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use self::batch::Batch;
use self::batch::Batches;
use self::context::Context;
pub use self::evidence::{Evidence, RunEvidence};
pub use self::known::{Audit, HalfRead, Known, Mode};
use self::plan::{Plan, SharedPlan, Terms};
use self::reading::{REQUESTS_A_LIST, read_all};
use self::row_fetches::fetch_rows;
use super::api::RowKey;
use super::budget::RunBudget;
use super::client::Client;
use super::error::Error;
use super::prefetch::{Prefetch, gathered};
use super::privacy::Privacy;
use super::timestamp::Timestamp;
use super::walk::unread::UnreadLists;

/// A batch is emitted when its first row is this old.
pub const BATCH_AGE: Duration = Duration::from_secs(2);

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

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Requests sent so far, including retries.
    pub requests: u64,
    /// How many users there are, as the service last said.
    pub users_total: Option<i64>,
    /// Lists to read, including finished ones; an estimate until all users are known.
    pub lists_total: Option<u64>,
    /// Lists emitted to their end, in this run or before it was resumed.
    pub lists_done: u64,
    /// How long the service was down during this run.
    pub outage_seconds: f64,
}

/// A run in progress, at most one batch ahead of the caller that commits them.
pub struct SyncRun {
    batches: Prefetch<Batch>,
    /// The client of this run, which waits longer in an outage and counts what the run sends.
    pub client: Client,
    /// The outage time before this run.
    down_before: Duration,
    plan: SharedPlan,
    pub budget: Arc<RunBudget>,
    /// Nothing was read so far, and a run that reads nothing because the service fails is an error.
    nothing_read: AtomicBool,
}

impl SyncRun {
    /// Reads all users, or those given, and their messages unless their lists are done; the rows
    /// leave out what `privacy` says.
    pub fn new(
        client: &Client,
        known: Known,
        options: RunOptions,
        privacy: Option<Arc<Privacy>>,
    ) -> Self {
        let run = Self::start(client, known, options, privacy, read_all);
        run.nothing_read.store(true, Ordering::Relaxed);
        run
    }

    /// Fetches these rows one by one.
    pub fn fetch(
        client: &Client,
        keys: Vec<RowKey>,
        limits: RunLimits,
        privacy: Option<Arc<Privacy>>,
    ) -> Self {
        let options = RunOptions {
            mode: Mode::Incremental,
            max_staleness: None,
            limits,
        };
        let fetch = |context| fetch_rows(context, keys);
        Self::start(client, Known::default(), options, privacy, fetch)
    }

    fn start<F>(
        client: &Client,
        known: Known,
        options: RunOptions,
        privacy: Option<Arc<Privacy>>,
        read: impl FnOnce(Context) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let client = client.with(|call| {
            call.count_anew();
            call.wait_as_a_sync();
        });
        let (limits, clock) = (options.limits, client.clock());
        let budget = Arc::new(RunBudget::start(
            limits.max_requests,
            limits.max_time,
            clock,
        ));
        let terms = Terms {
            mode: options.mode,
            max_staleness: options.max_staleness,
            now: Timestamp::by(client.clock()),
            all_users_first: budget.is_limited() || options.mode == Mode::Quick,
            most_end_pages: most_end_pages(&budget),
            seed: RandomState::new().hash_one(0),
        };
        let plan = SharedPlan::new(Plan::new(known, terms));
        let (reader, run, shared) = (client.clone(), Arc::clone(&budget), plan.clone());
        let events = Prefetch::new(move |outlet| {
            read(Context {
                budget: reader.budget().within(Arc::clone(&run)),
                client: reader,
                run,
                plan: shared,
                outlet,
                unread: UnreadLists::default(),
            })
        });
        Self {
            batches: gathered(events, Batches::new(privacy), Some(BATCH_AGE)),
            down_before: client.outage_time(),
            client,
            plan,
            budget,
            nothing_read: false.into(),
        }
    }

    /// How far the run has come.
    pub fn progress(&self) -> Progress {
        Progress {
            requests: self.client.sent(),
            users_total: self.plan.with(|plan| plan.users_total),
            lists_total: self.plan.with(|plan| plan.lists()),
            lists_done: self.plan.with(|plan| plan.lists_done),
            outage_seconds: self.client.outage_seconds_since(self.down_before),
        }
    }

    pub fn stop(&self) {
        self.batches.stop();
    }

    /// The next batch; `None` at the end. Rows read before a failure are emitted before its error.
    pub async fn next(&self) -> Result<Option<Batch>, Error> {
        let batch = self.batches.next().await?;
        if let Some(batch) = &batch {
            self.nothing_read.store(false, Ordering::Relaxed);
            self.plan.with(|plan| plan.lists_done += batch.lists_ended);
        } else if self.nothing_read.load(Ordering::Relaxed)
            && let Some(error) = self.budget.stopped_by()
        {
            return Err(error);
        }
        Ok(batch)
    }
}

/// The most pages read at a list's growing end: few with a budget, for only a sweep can be resumed.
fn most_end_pages(budget: &RunBudget) -> u64 {
    if !budget.is_limited() {
        return growing_end::MOST_PAGES;
    }
    let of_requests = budget.most_requests().unwrap_or(u64::MAX) / REQUESTS_A_LIST;
    of_requests.clamp(1, growing_end::MOST_PAGES_OF_A_BUDGET)
}
