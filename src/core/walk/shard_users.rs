//! Reads the users named by a plan again: the part of the list where the plan found them, with a few
//! rows on both sides, and the pages next to it while those show some of them, too; those still missing
//! are fetched by id.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::api::{List, Natural};
use crate::budget::Budget;
use crate::client::{CallOptions, Client};
use crate::error::Error;
use crate::lock;
use crate::prefetch::{Outlet, Prefetch, Sink};
use crate::report::{Certificate, Counts, WalkReport};
use crate::timestamp::Timestamp;
use crate::walk::{
    OLD_PAGES, PROVING_REQUESTS, PROVING_REQUESTS_A_PAGE, SharedReport, Start, Walk, WalkSettings,
    WalkedPage, incomplete, walk_into,
};

// This few missing users are fetched by id at once, instead of from other pages.
const FEW: u64 = 4;
// Rows read before and after the part: a few may have come or gone since the plan was made.
const MARGIN: u64 = 3;

/// Users in the order in which a plan's walk found them.
#[derive(Debug, Clone)]
pub struct ShardUsers {
    /// The offset of the first one.
    pub offset: u64,
    pub ids: Vec<Natural>,
}

/// Reads the planned users; `settings.max_items` is ignored.
pub fn shard_users(client: Client, planned: ShardUsers, settings: WalkSettings) -> Walk {
    let report = SharedReport::default();
    let shared = report.clone();
    let prefetch = Prefetch::new(move |outlet| async move {
        let client = client.with(CallOptions::count_anew);
        let ids: HashSet<i64> = planned.ids.iter().map(|id| id.signed()).collect();
        let search = Search {
            budget: client.budget(),
            down_before: client.outage_time(),
            state: Mutex::new(State {
                missing: ids.clone(),
                refused: None,
                report: WalkReport::start(Timestamp::by(client.clock())),
            }),
            planned: ids,
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

struct Search {
    client: Client,
    budget: Budget,
    settings: WalkSettings,
    planned: HashSet<i64>,
    down_before: Duration,
    state: Mutex<State>,
    shared: SharedReport,
    outlet: Outlet<WalkedPage>,
}

struct State {
    /// Users that no response has shown yet.
    missing: HashSet<i64>,
    /// Why a user could not be fetched by id, or the pages prove nothing.
    refused: Option<String>,
    report: WalkReport,
}

/// Passes on the planned users of each page, once.
impl Sink<WalkedPage> for Search {
    async fn put(&self, page: WalkedPage) -> bool {
        let page = self.take(page);
        page.rows.is_empty() || self.outlet.put(page).await
    }
}

impl Search {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Keeps the planned users of a page that were not read before, and counts them.
    fn take(&self, mut page: WalkedPage) -> WalkedPage {
        let mut rows = 0;
        let mut state = self.state();
        page.rows.retain(|row| {
            let planned = row.id.is_some_and(|id| self.planned.contains(&id));
            rows += u64::from(planned);
            planned && row.id.is_some_and(|id| state.missing.remove(&id))
        });
        let distinct = page.rows.len() as u64;
        state.report.total_first = state.report.total_first.or(page.total);
        state.report.total_last = page.total.or(state.report.total_last);
        let unreadable = page.rows.iter().filter(|row| row.unreadable.is_some());
        let more = Counts {
            pages: u64::from(page.offset.is_some() || page.limit.is_some()),
            rows,
            distinct,
            repeats: rows - distinct,
            odd_values: page.rows.iter().map(|row| row.odd_values).sum(),
            unreadable_rows: unreadable.count() as u64,
            ..Counts::default()
        };
        state.report.add(more, Counts::default());
        page.counts = state.report.counts();
        self.publish(&mut state);
        page
    }

    fn missing(&self) -> u64 {
        self.state().missing.len() as u64
    }

    fn publish(&self, state: &mut State) {
        state.report.repaired_text = self.client.repaired_text();
        state.report.requests = self.client.sent();
        self.shared.set(state.report.clone());
    }

    async fn read(&self, planned: &ShardUsers) -> Result<(), Error> {
        let page = u64::from(self.settings.page_size.get());
        let rows = planned.ids.len() as u64;
        let from = planned.offset.saturating_sub(MARGIN);
        let to = planned.offset.saturating_add(rows).saturating_add(MARGIN);
        self.sweep(from, to).await?;
        let plain = self.client.sent();
        let most = PROVING_REQUESTS + PROVING_REQUESTS_A_PAGE * rows.div_ceil(page);
        // Half of the proving budget is spent on pages, each of which may show many users.
        let pages_left = || self.client.sent() - plain < most / 2 && self.missing() > FEW;
        let (mut before, mut after) = (from, to);
        let mut found = (true, true);
        while pages_left() && (found.0 || found.1) {
            if found.1 {
                found.1 = self.sweep(after, after + page).await? > 0;
                after += page;
            }
            if found.0 && pages_left() {
                let start = before.saturating_sub(page);
                found.0 = before > start && self.sweep(start, before).await? > 0;
                before = start;
            }
        }
        let left = most.saturating_sub(self.client.sent() - plain);
        self.fetch_missing(planned, left).await?;
        self.state().report.evidence.proving_requests = self.client.sent() - plain;
        Ok(())
    }

    /// Reads a part of the list; returns how many of the missing users it showed.
    async fn sweep(&self, from: u64, to: u64) -> Result<u64, Error> {
        let missing = self.missing();
        let report = SharedReport::default();
        let settings = WalkSettings {
            strict: false,
            max_items: None,
            // The plan was read from this list, so a first page that fails has a row to blame.
            checkpoints: true,
            ..self.settings
        };
        let start = Start::Span(from, to);
        let (client, budget) = (&self.client, &self.budget);
        walk_into(client, List::Users, settings, start, budget, &report, self).await?;
        let part = report.get();
        let mut state = self.state();
        if part.reason.as_deref() == Some(OLD_PAGES) {
            state.refused = part.reason;
        }
        Ok(missing - state.missing.len() as u64)
    }

    /// Fetches by id the users that no page showed, by at most `most` requests.
    async fn fetch_missing(&self, planned: &ShardUsers, most: u64) -> Result<(), Error> {
        let until = self.client.sent().saturating_add(most);
        for user_id in &planned.ids {
            let id = user_id.signed();
            if !self.state().missing.contains(&id) {
                continue;
            }
            if self.client.sent() >= until {
                break;
            }
            match self.client.get(List::Users, *user_id, &self.budget).await {
                Ok(read) if read.value.id.is_some_and(|sent| sent != id) => {
                    let refused = format!("the service sent another user for id {id}");
                    self.state().refused = Some(refused);
                    break;
                }
                Ok(read) => {
                    self.state().report.evidence.rows_moved += 1;
                    let page = WalkedPage::of(vec![read.value], read.sent, Counts::default());
                    if !self.put(page).await {
                        break;
                    }
                }
                Err(error)
                    if error.status() == Some(404)
                        && self.client.is_missing(&error, &self.budget).await? =>
                {
                    let mut state = self.state();
                    state.missing.remove(&id);
                    state.report.evidence.rows_gone += 1;
                }
                // The rows read remain valid without the proof. One row may be at fault, not all.
                Err(error) if error.is_an_answer() || error.is_too_large() => {
                    if self.state().refused.replace(error.to_string()).is_some() {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Determines what is proved.
    fn close(&self, read: Result<(), Error>) -> Result<(), Error> {
        let mut state = self.state();
        let short = state.missing.len() as u64;
        self.publish(&mut state);
        let why = match state.refused.take() {
            Some(error) => format!("one could not be fetched by id: {error}"),
            None => {
                "fetching each by id would have exceeded the requests allowed for proof".to_owned()
            }
        };
        let report = &mut state.report;
        report.outage_seconds = self.client.outage_seconds_since(self.down_before);
        report.evidence.rows_short = Some(short);
        match (&read, short, report.unreadable_rows) {
            (Err(_), ..) => report.doubt("a request failed".to_owned()),
            (_, 0, 0) => report.certify(Certificate::Linked),
            (_, 0, rows) => report.doubt(format!("{rows} of the users cannot be read")),
            _ => report.doubt(format!(
                "{short} of the plan's {} users were missing from the pages where they were expected, \
                 and {why}",
                self.planned.len()
            )),
        }
        report.end(Timestamp::by(self.client.clock()));
        let report = report.clone();
        self.shared.set(report.clone());
        read?;
        if self.settings.strict && report.certificate == Certificate::Uncertified {
            return Err(incomplete(&self.client, &List::Users, report));
        }
        Ok(())
    }
}
