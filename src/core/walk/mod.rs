//! The offset walk over one list: it advances by the rows received, returns each row once, links
//! its pages, and says what that proves.

pub mod all_messages;
pub mod crawl;
mod row_order;
pub mod shard_users;
mod sweep;
mod too_large;
mod totals;
pub mod unread;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{FuturesUnordered, StreamExt};

use super::budget::Budget;
use super::client::{Client, Sent};
use super::error::{Error, ErrorKind};
use super::prefetch::{Outlet, Prefetch};
use super::report::{Certificate, Counts, WalkReport};
use super::timestamp::Timestamp;
use crate::core::api::{Limit, List, Natural};
use crate::core::decode::page::Row;
pub use sweep::{
    Answer, Ask, Checkpoint, PROVING_REQUESTS, PROVING_REQUESTS_A_PAGE, Resume, Sweep, WalkRequest,
};
use too_large::TooLarge;

// The most pages of one list requested concurrently.
const LANES: usize = 8;
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
    pub lanes: usize,
    /// Whether pages carry a checkpoint that a later walk can resume from.
    pub checkpoints: bool,
}

impl WalkSettings {
    /// A whole list in the largest pages, whatever is proved.
    pub const WHOLE: Self = Self {
        strict: false,
        page_size: Limit::LARGEST,
        max_items: None,
        lanes: LANES,
        checkpoints: false,
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
            process: std::process::id(),
        }
    }

    /// The report as it is now. In a forked child, the counts of a parent's walk are unknown if
    /// another thread was updating them at the fork.
    pub fn get(&self) -> WalkReport {
        if self.process != std::process::id() {
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
        Self::within(None, client, list, settings)
    }

    /// A walk that is part of a larger call and shares its budget.
    pub fn within(
        budget: Option<Budget>,
        client: Client,
        list: List,
        settings: WalkSettings,
    ) -> Self {
        let report = SharedReport::new(WalkReport::not_read_yet());
        let shared = report.clone();
        let prefetch = Prefetch::new(move |outlet| async move {
            let budget = budget.unwrap_or_else(|| client.budget());
            sweep_into(&client, list, settings, &budget, &shared, &outlet, |page| {
                page
            })
            .await
        });
        Self { prefetch, report }
    }
}

/// Walks a list into an outlet, wrapping each page; keeps the report current, and final at the end.
pub async fn sweep_into<T: Send>(
    client: &Client,
    list: List,
    settings: WalkSettings,
    budget: &Budget,
    report: &SharedReport,
    outlet: &Outlet<T>,
    wrap: impl Fn(WalkedPage) -> T + Send,
) -> Result<(), Error> {
    resume_into(client, list, settings, None, budget, report, outlet, wrap).await
}

/// Like `sweep_into`, but resumes where an earlier walk ended.
#[allow(clippy::too_many_arguments)]
pub async fn resume_into<T: Send>(
    client: &Client,
    list: List,
    settings: WalkSettings,
    from: Option<Resume>,
    budget: &Budget,
    report: &SharedReport,
    outlet: &Outlet<T>,
    wrap: impl Fn(WalkedPage) -> T + Send,
) -> Result<(), Error> {
    let now = || Timestamp::by(client.clock());
    let down_before = client.outage_time();
    let settings = WalkSettings {
        lanes: settings.lanes.min(client.options().max_concurrency),
        ..settings
    };
    let mut sweep = match from {
        None => Sweep::new(list, settings, now()),
        Some(resume) => Sweep::resumed(list, settings, resume, now()),
    };
    let too_large = TooLarge::default();
    let mut under_way = FuturesUnordered::new();
    let mut answered = VecDeque::new();
    loop {
        sweep.report.outage_seconds = client.outage_seconds_since(down_before);
        report.set(sweep.report.clone());
        while let Some(page) = sweep.give() {
            if page.rows.is_empty() {
                continue;
            }
            let mut put = pin!(outlet.put(wrap(page)));
            // Requests in flight continue while the reader is behind.
            let read = loop {
                tokio::select! {
                    read = &mut put => break read,
                    Some(answer) = under_way.next(), if !under_way.is_empty() => {
                        answered.push_back(answer);
                    }
                }
            };
            if !read {
                return Ok(());
            }
        }
        if sweep.is_over() {
            break;
        }
        while let Some(ask) = sweep.ask() {
            let answer = answer(client, list, ask, budget, &too_large);
            under_way.push(async move { (ask, answer.await) });
        }
        let (ask, answer) = match answered.pop_front() {
            Some(answer) => answer,
            None => match under_way.next().await {
                Some(answer) => answer,
                None => break,
            },
        };
        match answer {
            Ok(answer) => sweep.take(ask, answer),
            // The rows read remain valid without the proof.
            Err(error) if error.is_an_answer() && sweep.is_for_proof(&ask) => {
                sweep.take(ask, Answer::Unanswered(error));
            }
            Err(error) => {
                sweep.report.requests += error.attempts.len() as u64;
                sweep.failed = Some(error);
            }
        }
        if let Some(error) = sweep.failed.take() {
            sweep.note_short();
            sweep.report.doubt("a request failed".to_owned());
            sweep.report.outage_seconds = client.outage_seconds_since(down_before);
            sweep.report.end(now());
            report.set(sweep.report);
            return Err(error);
        }
    }
    sweep.report.end(now());
    report.set(sweep.report.clone());
    let uncertified = sweep.report.certificate == Certificate::Uncertified;
    if settings.strict && uncertified && !sweep.cut {
        let incomplete = Error::new(ErrorKind::Incomplete(Box::new(sweep.report)));
        return Err(incomplete.during(list.to_string(), Vec::new()));
    }
    Ok(())
}

/// Whether the service refused an offset as it may past the end of a list.
pub fn says_past_end(error: &Error) -> bool {
    error
        .status()
        .is_some_and(|status| PAST_END.contains(&status))
}

/// Sends the request that a sweep needs next.
async fn answer(
    client: &Client,
    list: List,
    ask: Ask,
    budget: &Budget,
    too_large: &TooLarge,
) -> Result<Answer, Error> {
    match ask.request {
        WalkRequest::Page { offset, limit } => {
            match too_large.page(client, list, offset, limit, budget).await {
                Ok(read) => Ok(Answer::Page(read)),
                Err(error) if offset > 0 && says_past_end(&error) => Ok(Answer::PastEnd(error)),
                Err(error) => Err(error),
            }
        }
        WalkRequest::Row { id } => {
            let read = client.row(list, Natural::new("id", id)?, budget).await?;
            Ok(Answer::Row {
                row: read.value,
                sent: read.sent,
            })
        }
    }
}

#[cfg(test)]
mod tests;
