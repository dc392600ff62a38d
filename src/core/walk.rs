//! The offset walk over one list: it steps by what came back, drops repeats, and says what it proves.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use roaring::RoaringTreemap;

use super::budget::Budget;
use super::client::{Client, Read, Sent};
use super::error::{Error, ErrorKind};
use super::feed::{Feed, Outlet};
use super::interface::{Limit, List};
use super::page::{Page, Row};
use super::report::{Certificate, Counts, WalkReport};
use super::timestamp::Timestamp;

// Pages in a row that may bring nothing new before the walk takes the list to go in circles.
const BARREN_PAGES: u32 = 10;
// The same without a total to hope for, or past it.
const BARREN_PAGES_PAST_END: u32 = 1;

/// How a walk is to be made.
#[derive(Debug, Clone, Copy)]
pub struct WalkSettings {
    pub strict: bool,
    pub page_size: Limit,
    pub max_items: Option<u64>,
}

impl WalkSettings {
    /// All of a list in the largest pages, whatever is proved.
    pub const WHOLE: Self = Self {
        strict: false,
        page_size: Limit::LARGEST,
        max_items: None,
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
}

/// The report of a walk under way, shared between the walk and those who look at it.
#[derive(Debug, Clone)]
pub struct SharedReport(Arc<Mutex<WalkReport>>);

impl SharedReport {
    pub fn new(report: WalkReport) -> Self {
        Self(Arc::new(Mutex::new(report)))
    }

    pub fn get(&self) -> WalkReport {
        self.update(|report| report.clone())
    }

    pub fn set(&self, report: WalkReport) {
        self.update(|held| *held = report);
    }

    pub fn update<R>(&self, change: impl FnOnce(&mut WalkReport) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A walk under way, fetching ahead of its reader.
#[derive(Debug)]
pub struct Walk {
    pub feed: Feed<WalkedPage>,
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
        let feed = Feed::new(move |outlet| async move {
            let budget = budget.unwrap_or_else(|| client.budget());
            sweep_into(&client, list, settings, &budget, &shared, &outlet, |page| {
                page
            })
            .await
        });
        Self { feed, report }
    }
}

/// Walks a list into an outlet, each page wrapped; the report is kept current and final at the end.
pub async fn sweep_into<T>(
    client: &Client,
    list: List,
    settings: WalkSettings,
    budget: &Budget,
    report: &SharedReport,
    outlet: &Outlet<T>,
    wrap: impl Fn(WalkedPage) -> T + Send,
) -> Result<(), Error> {
    let now = || Timestamp::by(client.clock());
    let mut sweep = Sweep::new(list, settings, now());
    report.set(sweep.report.clone());
    while let Some((offset, limit)) = sweep.request() {
        let read = match client.page(list, offset, limit, budget).await {
            Ok(read) => read,
            Err(error) => {
                sweep.report.requests += error.attempts.len() as u64;
                sweep.report.doubt("a request failed".to_owned());
                sweep.report.end(now());
                report.set(sweep.report);
                return Err(error);
            }
        };
        let page = sweep.take(read);
        report.set(sweep.report.clone());
        if !page.rows.is_empty() && !outlet.put(wrap(page)).await {
            return Ok(());
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

/// A number that two pages with the same rows share.
fn content(rows: &[Row]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for row in rows {
        row.json().hash(&mut hasher);
    }
    hasher.finish()
}

/// The state of a walk between two answers; it neither waits nor sends.
#[derive(Debug)]
pub struct Sweep {
    list: List,
    settings: WalkSettings,
    offset: u64,
    seen: RoaringTreemap,
    short_pages: bool,
    full_snapshot: bool,
    content_before: Option<u64>,
    barren_pages: u32,
    unnamed_rows: u64,
    given: u64,
    ended: bool,
    /// `max_items` ended it, which is what the caller asked for.
    cut: bool,
    pub report: WalkReport,
}

impl Sweep {
    pub fn new(list: List, settings: WalkSettings, at: Timestamp) -> Self {
        let mut sweep = Self {
            list,
            settings,
            offset: 0,
            seen: RoaringTreemap::new(),
            short_pages: false,
            full_snapshot: false,
            content_before: None,
            barren_pages: 0,
            unnamed_rows: 0,
            given: 0,
            ended: false,
            cut: false,
            report: WalkReport::start(at),
        };
        if settings.max_items == Some(0) {
            sweep.cut();
        }
        sweep
    }

    /// What to ask for next: an offset and a limit; `None` when the walk is over.
    pub fn request(&self) -> Option<(u64, Limit)> {
        let size = self.settings.page_size;
        let wanted = self
            .settings
            .max_items
            .map(|most| most.saturating_sub(self.given))
            .and_then(|rest| Limit::new("limit", rest.try_into().ok()?).ok())
            .filter(|rest| rest.get() < size.get());
        (!self.ended).then_some((self.offset, wanted.unwrap_or(size)))
    }

    /// Takes the answer to the last request; gives it without the rows that came before.
    pub fn take(&mut self, read: Read<Page>) -> WalkedPage {
        let Read { value: page, sent } = read;
        self.report.requests += sent.attempts.len() as u64;
        let received = page.rows.len() as u64;
        self.report.pages += 1;
        self.report.rows += received;
        self.report.repaired_text += page.text.repaired;
        if self.report.pages == 1 {
            self.report.total_first = page.total;
        }
        self.report.total_last = page.total;
        let content = content(&page.rows);
        let came_again = self.content_before == Some(content);
        self.content_before = Some(content);
        let mut rows: Vec<Row> = Vec::with_capacity(page.rows.len());
        let mut fresh = 0_u64;
        let unnamed_before = self.unnamed_rows;
        for row in page.rows {
            match row.id {
                None => {
                    self.unnamed_rows += 1;
                    rows.push(row);
                }
                Some(id) if self.seen.insert(id.cast_unsigned()) => {
                    fresh += 1;
                    rows.push(row);
                }
                Some(_) => self.report.repeats += 1,
            }
        }
        self.report.distinct += fresh;
        let held_it_all = self.offset == 0
            && page.offset.unwrap_or(0) == 0
            && page.total == i64::try_from(received).ok()
            && fresh == received;
        let applied = page
            .limit
            .and_then(|limit| u64::try_from(limit).ok())
            .filter(|limit| *limit > 0)
            .unwrap_or_else(|| self.request().map_or(0, |(_, limit)| limit.get().into()));
        // Rows without an id may be new ones, unless the very same page has come again.
        let progress = fresh > 0 || (self.unnamed_rows > unnamed_before && !came_again);
        self.step(received, progress, applied, page.total);
        // A full page whose total ends just there may hide more behind a total that is too small:
        // it is the whole list once a further request brings nothing.
        let confirmed =
            self.full_snapshot && received == 0 && page.total == self.report.total_first;
        if confirmed || (held_it_all && received != applied) {
            self.report.certify(Certificate::Snapshot);
            self.ended = true;
        }
        self.full_snapshot = held_it_all;
        self.cut_to_max_items(&mut rows);
        WalkedPage {
            limit: page.limit,
            offset: page.offset,
            total: page.total,
            rows,
            sent,
            counts: self.report.counts(),
            user_id: match self.list {
                List::Users => None,
                List::Messages { user_id } => user_id.get().try_into().ok(),
            },
        }
    }

    fn step(&mut self, received: u64, progress: bool, applied: u64, total: Option<i64>) {
        self.offset = self.offset.saturating_add(received);
        self.barren_pages = if !progress { self.barren_pages + 1 } else { 0 };
        let total = total.and_then(|total| u64::try_from(total).ok());
        let reached = total.is_some_and(|total| self.offset >= total);
        let short = received < applied;
        let full = received == applied;
        // A short page ends the list only where pages have not come short before its end: a total
        // may be too small, so a full last page is followed by one more request.
        let past_end = reached && !full && !self.short_pages;
        let bound = if reached || total.is_none() {
            BARREN_PAGES_PAST_END
        } else {
            BARREN_PAGES
        };
        if received == 0 || past_end || self.barren_pages >= bound {
            self.ended = true;
            self.report.doubt(self.shortfall());
        }
        self.short_pages |= short && !reached;
    }

    /// Why a sweep of several pages proves nothing, and how many rows it is short by.
    fn shortfall(&self) -> String {
        let held = self.report.distinct;
        let mut reason = match self.report.total_last {
            None => format!("{held} rows are held, and the service gave no total"),
            Some(total) => {
                let held = i64::try_from(held).unwrap_or(i64::MAX);
                match total.saturating_sub(held) {
                    0 => format!(
                        "{held} rows are held, as many as the total; but over {} pages rows that \
                         came or went can make up for one another",
                        self.report.pages
                    ),
                    short @ 1.. => {
                        format!("{held} rows are held of a total of {total}: {short} short")
                    }
                    more => format!(
                        "{held} rows are held, {} more than the total",
                        more.unsigned_abs()
                    ),
                }
            }
        };
        if self.unnamed_rows > 0 {
            reason.push_str(&format!("; {} rows had no id", self.unnamed_rows));
        }
        if self.report.repeats > 0 {
            reason.push_str(&format!("; {} rows came twice", self.report.repeats));
        }
        reason
    }

    fn cut_to_max_items(&mut self, rows: &mut Vec<Row>) {
        let room = self
            .settings
            .max_items
            .map_or(u64::MAX, |most| most.saturating_sub(self.given));
        let keep = usize::try_from(room).unwrap_or(usize::MAX);
        let cut_here = rows.len() > keep;
        rows.truncate(keep);
        self.given += rows.len() as u64;
        let full = self
            .settings
            .max_items
            .is_some_and(|most| self.given >= most);
        if cut_here || (full && !self.ended) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.ended = true;
        self.cut = true;
        let most = self.settings.max_items.unwrap_or_default();
        self.report
            .doubt(format!("stopped after max_items={most} rows, as asked"));
    }
}

#[cfg(test)]
mod tests;
