//! The offset walk over one list: it advances by the rows received, returns each row once, links
//! its pages, and says what that proves.

pub mod all_messages;
mod answered_length;
pub mod crawl;
pub mod failing_row;
mod in_turn;
pub mod page_request;
pub mod room;
mod row_order;
pub mod shard_users;
mod smaller_pages;
mod sweep;
#[cfg(test)]
mod tests;
mod totals;
pub mod unread;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};

use super::budget::Budget;
use super::client::{Client, Sent};
use super::error::{Error, ErrorKind};
use super::prefetch::{Outlet, Prefetch, Sink};
use super::process;
use super::report::{Certificate, Counts, WalkReport};
use super::timestamp::Timestamp;
use crate::api::{Limit, List, Natural};
use crate::decode::page::Row;
use failing_row::fails_for_its_rows;
use room::Held;
use smaller_pages::SmallerPages;
pub use sweep::{
    Checkpoint, Fetch, PROVING_REQUESTS, PROVING_REQUESTS_A_PAGE, Response, Resume, Sweep,
};
use unread::is_never_read;

/// Why a list is not certified if a response is older than its walk.
const OLD_PAGES: &str = "a cache answered with pages from before the walk began (header Age)";
// The most pages of one list requested concurrently.
const CONCURRENT_PAGES: usize = 8;
// Statuses for an offset past the end that some services send instead of a page; interface 7 does
// not specify it.
const PAST_END: [u16; 4] = [400, 404, 416, 422];

/// The settings of a walk.
#[derive(Debug, Clone, Copy)]
pub struct WalkSettings {
    pub strict: bool,
    pub page_size: Limit,
    pub max_items: Option<u64>,
    /// The most pages requested concurrently; a short list is read one page after the other.
    pub concurrent_pages: usize,
    /// Whether pages carry a checkpoint that a later walk can resume from.
    pub checkpoints: bool,
    /// Whether a page of users that can never be read ends the list, uncertified, and is no error.
    pub ends_unread: bool,
}

impl WalkSettings {
    /// A whole list in the largest pages, whatever is proved.
    pub const WHOLE: Self = Self {
        strict: false,
        page_size: Limit::LARGEST,
        max_items: None,
        concurrent_pages: CONCURRENT_PAGES,
        checkpoints: false,
        ends_unread: false,
    };
}

/// One page of a walk, without rows that earlier pages had.
#[derive(Debug)]
pub struct WalkedPage {
    pub limit: Option<i64>,
    pub offset: Option<i64>,
    pub total: Option<i64>,
    pub rows: Vec<Row>,
    /// The user whose messages these are; `None` for users.
    pub user_id: Option<i64>,
    /// The walk's counters, including this page.
    pub counts: Counts,
    pub sent: Sent,
    /// Where a later walk may resume after this page, if more follow.
    pub checkpoint: Option<Box<Checkpoint>>,
    /// The room that it takes while it waits for its reader, where that is bounded.
    pub held: Option<Held>,
}

impl WalkedPage {
    /// How much JSON its rows keep in memory, in bytes.
    pub fn size(&self) -> usize {
        self.rows.first().map_or(0, |row| row.page().bytes())
    }
}

/// The report of a running walk, shared between the walk and its readers.
#[derive(Debug, Clone)]
pub struct SharedReport {
    shared: Arc<Mutex<WalkReport>>,
    process: u32,
}

impl SharedReport {
    pub fn new(report: WalkReport) -> Self {
        Self {
            shared: Arc::new(Mutex::new(report)),
            process: process::id(),
        }
    }

    /// The report as it is now. In a forked child, the counts of a parent's walk are unknown if
    /// another thread was updating them at the fork.
    pub fn get(&self) -> WalkReport {
        if self.process != process::id() {
            return match self.shared.try_lock() {
                Ok(report) => report.clone(),
                Err(_) => WalkReport::not_read_yet(),
            };
        }
        self.update(|report| report.clone())
    }

    pub fn set(&self, report: WalkReport) {
        self.update(|held| *held = report);
    }

    pub fn update<R>(&self, change: impl FnOnce(&mut WalkReport) -> R) -> R {
        change(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A running walk, which prefetches for its reader.
#[derive(Debug)]
pub struct Walk {
    pub prefetch: Prefetch<WalkedPage>,
    pub report: SharedReport,
}

impl Walk {
    pub fn new(client: Client, list: List, settings: WalkSettings) -> Self {
        let report = SharedReport::new(WalkReport::not_read_yet());
        let shared = report.clone();
        let prefetch = Prefetch::new(move |outlet: Outlet<WalkedPage>| async move {
            let budget = client.budget();
            sweep_into(&client, list, settings, &budget, &shared, &outlet).await
        });
        Self { prefetch, report }
    }
}

/// Walks a list into a sink; keeps the report current, and final at the end.
pub async fn sweep_into(
    client: &Client,
    list: List,
    settings: WalkSettings,
    budget: &Budget,
    report: &SharedReport,
    sink: &impl Sink<WalkedPage>,
) -> Result<(), Error> {
    let from = Start::Beginning;
    sweep_from(client, list, settings, from, budget, report, sink).await
}

/// Where a walk begins.
#[derive(Debug)]
pub enum Start {
    Beginning,
    /// Where an earlier walk ended.
    Resumed(Box<Resume>),
}

impl From<Option<Resume>> for Start {
    fn from(resume: Option<Resume>) -> Self {
        resume.map_or(Self::Beginning, |resume| Self::Resumed(Box::new(resume)))
    }
}

/// Like `sweep_into`, but begins elsewhere.
pub async fn sweep_from(
    client: &Client,
    list: List,
    settings: WalkSettings,
    from: Start,
    budget: &Budget,
    report: &SharedReport,
    sink: &impl Sink<WalkedPage>,
) -> Result<(), Error> {
    let now = || Timestamp::by(client.clock());
    let settings = WalkSettings {
        concurrent_pages: settings
            .concurrent_pages
            .min(client.options().max_concurrency),
        ..settings
    };
    // A caller of a list is told, and may ask for smaller pages; a sync would never get through.
    let pages = SmallerPages::new(settings.checkpoints);
    let ends_unread = settings.ends_unread && list == List::Users;
    let mut sweep = match from {
        Start::Beginning => Sweep::new(list, settings, now()),
        Start::Resumed(resume) => Sweep::resumed(list, settings, *resume, now()),
    };
    let sender = Sender {
        client,
        list,
        budget,
        down_before: client.outage_time(),
        pages,
        ends_unread,
    };
    let mut swept = sender.run(&mut sweep, report, sink).await;
    if matches!(swept, Ok(Swept::Unread)) {
        return Ok(());
    }
    if swept.is_ok()
        && let Some(end) = sweep.cut_off_at()
        && let Some(error) = sender.pages.take_error_after(end)
    {
        swept = Err(error);
    }
    if let Err(error) = &swept {
        sweep.note_short();
        if ends_unread && sweep.has_rows() && is_never_read(client, budget, error).await {
            sweep.end_before(error);
            swept = Ok(Swept::ToTheEnd);
        } else {
            sweep.report.doubt("a request failed".to_owned());
        }
    }
    sweep.report.outage_seconds = sender.client.outage_seconds_since(sender.down_before);
    sweep.report.end(now());
    report.set(sweep.report.clone());
    swept?;
    let uncertified = sweep.report.certificate == Certificate::Uncertified;
    if settings.strict && uncertified && !sweep.is_as_wanted() {
        let incomplete = Error::new(ErrorKind::Incomplete(Box::new(sweep.report)));
        return Err(incomplete.during(client.redactor().url(&list), Vec::new()));
    }
    Ok(())
}

/// How a walk ended without an error.
enum Swept {
    ToTheEnd,
    /// There is no reader any more.
    Unread,
}

/// Sends a walk's requests.
struct Sender<'a> {
    client: &'a Client,
    list: List,
    budget: &'a Budget,
    down_before: Duration,
    pages: SmallerPages,
    /// A page that fails ends the list, so those before it are still taken.
    ends_unread: bool,
}

impl Sender<'_> {
    /// Sends what the sweep requests, as many at once as it allows, and puts its pages into the
    /// sink.
    async fn run(
        &self,
        sweep: &mut Sweep,
        report: &SharedReport,
        sink: &impl Sink<WalkedPage>,
    ) -> Result<Swept, Error> {
        let mut in_flight = FuturesUnordered::new();
        let mut arrived = VecDeque::new();
        let mut spent = None;
        loop {
            sweep.report.outage_seconds = self.client.outage_seconds_since(self.down_before);
            report.set(sweep.report.clone());
            while let Some(page) = sweep.next_page() {
                if page.rows.is_empty() {
                    continue;
                }
                let mut put = pin!(sink.put(page));
                // Requests in flight continue while the reader is behind.
                let read = loop {
                    tokio::select! {
                        read = &mut put => break read,
                        Some(response) = in_flight.next(), if !in_flight.is_empty() => {
                            arrived.push_back(response);
                        }
                    }
                };
                if !read {
                    return Ok(Swept::Unread);
                }
            }
            // After the rows that came before it.
            if let Some(error) = sweep.failed.take() {
                return Err(error);
            }
            if sweep.is_over() {
                return Ok(Swept::ToTheEnd);
            }
            while spent.is_none()
                && let Some(request) = sweep.next_request()
            {
                in_flight.push(async move { (request, self.send(request.fetch).await) });
            }
            let next = match arrived.pop_front() {
                Some(next) => Some(next),
                None => in_flight.next().await,
            };
            let Some((request, response)) = next else {
                return spent.map_or(Ok(Swept::ToTheEnd), Err);
            };
            sweep.report.requests += self.pages.take_uncounted();
            match response {
                Ok(response) => sweep.take(request, response),
                // The rows read remain valid without the proof.
                Err(error) if spares_the_rows(&error) && sweep.is_for_proof(&request) => {
                    sweep.take(request, Response::Refused(error));
                }
                // What was sent before the budget was spent is still taken.
                Err(error) if error.is_budget_spent() || self.ends_unread => {
                    sweep.report.requests += error.attempts.len() as u64;
                    if spent.is_none() || error.is_budget_spent() {
                        spent = Some(error);
                    }
                }
                Err(error) => {
                    sweep.report.requests += error.attempts.len() as u64;
                    return Err(error);
                }
            }
        }
    }

    async fn send(&self, fetch: Fetch) -> Result<Response, Error> {
        let Self {
            client,
            list,
            budget,
            ..
        } = *self;
        match fetch {
            Fetch::Page { offset, limit } => {
                let read = self.pages.page(client, list, offset, limit, budget);
                match read.await {
                    Ok(read) => Ok(Response::Page(read)),
                    Err(error) if offset > 0 && says_past_end(&error) => {
                        Ok(Response::PastEnd(error))
                    }
                    Err(error) => Err(error),
                }
            }
            Fetch::Row { id } => {
                let read = client.row(list, Natural::new("id", id)?, budget).await?;
                Ok(Response::Row {
                    row: read.value,
                    sent: read.sent,
                })
            }
        }
    }
}

/// Whether a request that failed leaves the rows that others read as they are.
fn spares_the_rows(error: &Error) -> bool {
    error.is_an_answer() || error.is_too_large() || fails_for_its_rows(error)
}

/// Whether the service refused an offset as it may past the end of a list.
pub fn says_past_end(error: &Error) -> bool {
    error
        .status()
        .is_some_and(|status| PAST_END.contains(&status))
}
