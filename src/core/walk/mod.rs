//! The offset walk over one list: it steps by what came back, gives each row once, links its pages,
//! and says what it proves.

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

// Pages of one list that are asked for side by side at most.
const LANES: usize = 8;
// What services answer to an offset past the end, if not a page: interface 7 says nothing of it.
const PAST_END: [u16; 4] = [400, 404, 416, 422];

/// How a walk is to be made.
#[derive(Debug, Clone, Copy)]
pub struct WalkSettings {
    pub strict: bool,
    pub page_size: Limit,
    pub max_items: Option<u64>,
    /// Pages asked for side by side at most; a short list is read one page after the other.
    pub lanes: usize,
    /// Whether pages say where a later walk may go on.
    pub checkpoints: bool,
}

impl WalkSettings {
    /// All of a list in the largest pages, whatever is proved.
    pub const WHOLE: Self = Self {
        strict: false,
        page_size: Limit::LARGEST,
        max_items: None,
        lanes: LANES,
        checkpoints: false,
    };
}

/// One page of a walk, without the rows that came before.
#[derive(Debug)]
pub struct WalkedPage {
    pub limit: Option<i64>,
    pub offset: Option<i64>,
    pub total: Option<i64>,
    pub rows: Vec<Row>,
    /// Whose messages these are; `None` for users.
    pub user_id: Option<i64>,
    /// What the walk has counted, this page included.
    pub counts: Counts,
    pub sent: Sent,
    /// Where a later walk may go on after this page, if more follow.
    pub checkpoint: Option<Box<Checkpoint>>,
}

/// The report of a walk under way, shared between the walk and those who look at it.
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

    /// What a walk of a forked child's parent has counted is not known where a thread that the child
    /// has not was just at it.
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

/// A walk under way, fetching ahead of its reader.
#[derive(Debug)]
pub struct Walk {
    pub prefetch: Prefetch<WalkedPage>,
    pub report: SharedReport,
}

impl Walk {
    pub fn new(client: Client, list: List, settings: WalkSettings) -> Self {
        Self::within(None, client, list, settings)
    }

    /// A walk that is part of a larger call, and shares its budget.
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

/// Walks a list into an outlet, each page wrapped; the report is kept current and final at the end.
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

/// The same, from where a walk before this one had come.
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
            // What is under way goes on while the reader is behind.
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
            // What is held stands without proof.
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

/// Whether an offset was refused as one past the end of a list may be.
pub fn says_past_end(error: &Error) -> bool {
    error
        .status()
        .is_some_and(|status| PAST_END.contains(&status))
}

/// Sends what a sweep asks for.
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
