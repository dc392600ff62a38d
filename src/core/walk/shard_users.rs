//! Reads the users named by a plan again: the pages where the plan found them, around rows that cannot
//! be read, then the surrounding pages if the list has moved since, then by id those still missing.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::api::{Limit, List, Natural};
use crate::budget::Budget;
use crate::client::{CallOptions, Client, Read};
use crate::decode::page::{Page, Row};
use crate::error::{Error, ErrorKind};
use crate::prefetch::{Outlet, Prefetch, Sink};
use crate::report::{Certificate, Counts, WalkReport};
use crate::timestamp::Timestamp;
use crate::walk::OLD_PAGES;
use crate::walk::smaller_pages::SmallerPages;
use crate::walk::{
    PROVING_REQUESTS, PROVING_REQUESTS_A_PAGE, SharedReport, Walk, WalkSettings, WalkedPage,
    says_past_end,
};

// This few missing users are fetched by id at once, instead of from other pages.
const FEW: usize = 4;

/// Users in the order in which a plan's walk found them.
#[derive(Debug, Clone)]
pub struct ShardUsers {
    /// The offset of the first one.
    pub offset: u64,
    pub ids: Vec<Natural>,
}

/// Reads the planned users; `settings.max_items` is ignored.
pub fn shard_users(client: Client, planned: ShardUsers, settings: WalkSettings) -> Walk {
    let report = SharedReport::new(WalkReport::not_read_yet());
    let shared = report.clone();
    let prefetch = Prefetch::new(move |outlet| async move {
        let client = client.with(CallOptions::count_anew);
        let mut search = Search {
            budget: client.budget(),
            missing: planned.ids.iter().map(|id| signed(*id)).collect(),
            planned: planned.ids.iter().map(|id| signed(*id)).collect(),
            refused: None,
            report: WalkReport::start(Timestamp::by(client.clock())),
            down_before: client.outage_time(),
            end: None,
            // The plan was read from this list, so a first page that fails has a row to blame.
            pages: Arc::new(SmallerPages::new(true)),
            client,
            settings,
            shared,
            outlet,
        };
        let read = search.read(&planned).await;
        search.close(read)
    });
    Walk { prefetch, report }
}

/// A range of offsets of the list.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: u64,
    to: u64,
}

/// There is no reader any more, so the work may end.
struct Unread;

/// Why reading ended early.
enum Ended {
    Unread,
    Failed(Error),
}

impl From<Unread> for Ended {
    fn from(_: Unread) -> Self {
        Self::Unread
    }
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

struct Search {
    client: Client,
    budget: Budget,
    settings: WalkSettings,
    planned: HashSet<i64>,
    /// Users that no response has shown yet.
    missing: HashSet<i64>,
    /// Why a fetch by id failed, which ended the search by id.
    refused: Option<String>,
    report: WalkReport,
    down_before: Duration,
    /// Where the list ends, according to the pages so far.
    end: Option<u64>,
    pages: Arc<SmallerPages>,
    shared: SharedReport,
    outlet: Outlet<WalkedPage>,
}

impl Search {
    async fn read(&mut self, planned: &ShardUsers) -> Result<(), Ended> {
        let page_size = u64::from(self.settings.page_size.get());
        let rows = planned.ids.len() as u64;
        let mut span = Span {
            from: planned.offset,
            to: planned.offset.saturating_add(rows),
        };
        self.read_span(span).await?;
        let plain = self.client.sent();
        let most = PROVING_REQUESTS + PROVING_REQUESTS_A_PAGE * rows.div_ceil(page_size);
        let mut step = page_size;
        // Half of the proving budget is spent on pages, each of which may show many users.
        while self.missing.len() > FEW && self.client.sent() - plain < most / 2 {
            let (before, after) = self.around(span, step);
            if before.is_none() && after.is_none() {
                break;
            }
            for side in [before, after].into_iter().flatten() {
                self.read_span(side).await?;
                span = Span {
                    from: span.from.min(side.from),
                    to: span.to.max(side.to),
                };
            }
            step = step.saturating_mul(2);
        }
        let left = most.saturating_sub(self.client.sent() - plain);
        self.fetch_missing(planned, left).await?;
        self.report.evidence.proving_requests = self.client.sent() - plain;
        Ok(())
    }

    /// The ranges of `step` rows before and after a span of the list.
    fn around(&self, span: Span, step: u64) -> (Option<Span>, Option<Span>) {
        let before = (span.from > 0).then(|| Span {
            from: span.from.saturating_sub(step),
            to: span.from,
        });
        let to = span.to.saturating_add(step);
        let to = self.end.map_or(to, |end| to.min(end));
        let after = (to > span.to).then_some(Span { from: span.to, to });
        (before, after)
    }

    /// Reads a range of the list, its pages concurrently; each continues where its response ended.
    async fn read_span(&mut self, span: Span) -> Result<(), Ended> {
        let page_size = u64::from(self.settings.page_size.get());
        let concurrent_pages = self
            .settings
            .concurrent_pages
            .min(self.client.options().max_concurrency);
        let mut spans = Vec::new();
        let mut to = span.to;
        while to > span.from {
            let from = to.saturating_sub(page_size).max(span.from);
            spans.push(Span { from, to });
            to = from;
        }
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < concurrent_pages.max(1)
                && let Some(part) = spans.pop()
            {
                under_way.spawn(page(
                    self.client.clone(),
                    Arc::clone(&self.pages),
                    self.budget.clone(),
                    part,
                ));
            }
            let Some(answered) = under_way.join_next().await else {
                return Ok(());
            };
            let (part, read) = answered.unwrap_or_else(|_| Err(Error::new(ErrorKind::Aborted)))?;
            let received = match read {
                Some(read) => self.take(read).await?,
                None => 0,
            };
            let from = part.from.saturating_add(received);
            if received == 0 {
                self.end = Some(self.end.map_or(part.from, |end| end.min(part.from)));
            } else if from < part.to {
                spans.push(Span { from, to: part.to });
            }
        }
    }

    /// Delivers the missing users on a page; returns how many rows the page had.
    async fn take(&mut self, read: Read<Page>) -> Result<u64, Unread> {
        let Read { value: page, sent } = read;
        if page.stored_at.is_some() && page.stored_at < self.report.started_at {
            self.refused = Some(OLD_PAGES.to_owned());
        }
        let received = page.rows.len() as u64;
        if self.report.pages == 0 {
            self.report.total_first = page.total;
        }
        self.report.total_last = page.total;
        let ours = page
            .rows
            .into_iter()
            .filter(|row| row.id.is_some_and(|id| self.planned.contains(&id)));
        let (fresh, again): (Vec<Row>, Vec<Row>) =
            ours.partition(|row| row.id.is_some_and(|id| self.missing.remove(&id)));
        self.count(Counts {
            pages: 1,
            rows: (fresh.len() + again.len()) as u64,
            distinct: fresh.len() as u64,
            repeats: again.len() as u64,
            odd_values: fresh.iter().map(|row| row.odd_values).sum(),
            unreadable_rows: unreadable(&fresh),
            ..Counts::default()
        });
        let page = WalkedPage {
            limit: page.limit,
            offset: page.offset,
            total: page.total,
            rows: fresh,
            user_id: None,
            counts: self.report.counts(),
            sent,
            checkpoint: None,
            held: None,
        };
        self.give(page).await?;
        Ok(received)
    }

    /// Fetches by id the users that no page showed, by at most `most` requests.
    async fn fetch_missing(&mut self, planned: &ShardUsers, most: u64) -> Result<(), Ended> {
        let until = self.client.sent().saturating_add(most);
        for user_id in &planned.ids {
            if !self.missing.contains(&signed(*user_id)) {
                continue;
            }
            if self.client.sent() >= until {
                break;
            }
            match self.client.user_within(*user_id, &self.budget).await {
                Ok(read) if read.value.id.is_some_and(|id| id != signed(*user_id)) => {
                    self.refused = Some(format!(
                        "the service sent another user for id {}",
                        user_id.get()
                    ));
                    break;
                }
                Ok(read) => {
                    self.missing.remove(&signed(*user_id));
                    self.report.evidence.rows_moved += 1;
                    self.count(Counts {
                        rows: 1,
                        distinct: 1,
                        odd_values: read.value.odd_values,
                        unreadable_rows: u64::from(read.value.unreadable.is_some()),
                        ..Counts::default()
                    });
                    let page = WalkedPage {
                        limit: None,
                        offset: None,
                        total: None,
                        rows: vec![read.value],
                        user_id: None,
                        counts: self.report.counts(),
                        sent: read.sent,
                        checkpoint: None,
                        held: None,
                    };
                    self.give(page).await?;
                }
                Err(error)
                    if error.status() == Some(404)
                        && self.client.is_missing(&error, &self.budget).await? =>
                {
                    self.missing.remove(&signed(*user_id));
                    self.report.evidence.rows_gone += 1;
                }
                // The rows read remain valid without the proof. One row may be at fault, not all.
                Err(error) if error.is_an_answer() || error.is_too_large() => {
                    if self.refused.replace(error.to_string()).is_some() {
                        break;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn count(&mut self, more: Counts) {
        self.report.add(more, Counts::default());
        self.report.repaired_text = self.client.repaired_text();
        self.report.requests = self.client.sent();
        self.shared.set(self.report.clone());
    }

    async fn give(&self, page: WalkedPage) -> Result<(), Unread> {
        if page.rows.is_empty() || self.outlet.put(page).await {
            return Ok(());
        }
        Err(Unread)
    }

    /// Determines what is proved.
    fn close(mut self, read: Result<(), Ended>) -> Result<(), Error> {
        let failed = match read {
            Ok(()) => None,
            Err(Ended::Unread) => return Ok(()),
            Err(Ended::Failed(error)) => Some(error),
        };
        let short = self.missing.len() as u64;
        self.report.requests = self.client.sent();
        self.report.outage_seconds = self.client.outage_seconds_since(self.down_before);
        self.report.evidence.rows_short = Some(short);
        if failed.is_some() {
            self.report.doubt("a request failed".to_owned());
        } else if short == 0 && self.report.unreadable_rows == 0 {
            self.report.certify(Certificate::Linked);
        } else if short == 0 {
            self.report.doubt(format!(
                "{} of the users cannot be read",
                self.report.unreadable_rows
            ));
        } else {
            let why = match &self.refused {
                Some(error) => format!("one could not be fetched by id: {error}"),
                None => "fetching each by id would have exceeded the requests allowed for proof"
                    .to_owned(),
            };
            self.report.doubt(format!(
                "{short} of the plan's {} users were missing from the pages where they \
                 were expected, and {why}",
                self.planned.len()
            ));
        }
        self.report.end(Timestamp::by(self.client.clock()));
        self.shared.set(self.report.clone());
        if let Some(error) = failed {
            return Err(error);
        }
        if self.settings.strict && (short > 0 || self.report.unreadable_rows > 0) {
            let incomplete = Error::new(ErrorKind::Incomplete(Box::new(self.report)));
            let url = self.client.redactor().url(&List::Users);
            return Err(incomplete.during(url, Vec::new()));
        }
        Ok(())
    }
}

/// One page of a span; `None` if the list ended before it.
async fn page(
    client: Client,
    pages: Arc<SmallerPages>,
    budget: Budget,
    span: Span,
) -> Result<(Span, Option<Read<Page>>), Error> {
    let rows = i64::try_from(span.to - span.from).unwrap_or(i64::MAX);
    let limit = Limit::new("limit", rows)?;
    let read = pages.page(&client, List::Users, span.from, limit, &budget);
    match read.await {
        Ok(read) => Ok((span, Some(read))),
        Err(error) if span.from > 0 && says_past_end(&error) => Ok((span, None)),
        Err(error) => Err(error),
    }
}

fn signed(id: Natural) -> i64 {
    id.get().try_into().unwrap_or(i64::MAX)
}

fn unreadable(rows: &[Row]) -> u64 {
    let unreadable = rows.iter().filter(|row| row.unreadable.is_some());
    unreadable.count() as u64
}
