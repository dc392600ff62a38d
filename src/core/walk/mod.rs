//! Reading one list by offset paging, completely, and saying what is proved about it.
//!
//! Offsets drift: a row that is inserted or deleted before the position of a walk pushes others across
//! page boundaries, so a plain loop repeats rows and loses some. A walk therefore requests pages that
//! overlap by three rows. A page *links* if it shows at least two unchanged rows of the pages before
//! it, in their order (pages of one row: one). If each page links, from one at offset 0 to one that ends the list, the list is
//! `linked`: every row that did not move meanwhile is held, whatever came and went. [`stages`] has the
//! argument, and the three stages:
//!
//! 1. *Sweep:* page after page, several in flight.
//! 2. *Go back* where a page does not link, for the pages before it.
//! 3. *Look up* held rows that disappeared, by their ids.
//!
//! If rows are missing then, the list is swept again, with other page boundaries.
//!
//! | file | what it does |
//! |---|---|
//! | [`stages`] | decides, for one list: what to request, to deliver, to prove |
//! | [`send`] | sends the requests of a walk, and hands its pages to the reader |
//! | [`failing_pages`] | reads around rows that fail the pages that they are part of |
//! | [`unread`] | whether a list that cannot be read ends the whole call |
//! | [`crawl`], [`in_turn`], [`all_messages`] | the message lists of all users |
//! | [`shard_users`] | the users of a shard |

#[cfg(any(test, fuzzing))]
pub mod agreement;
pub mod all_messages;
pub mod crawl;
pub mod failing_pages;
mod in_turn;
pub mod room;
mod send;
pub mod shard_users;
mod stages;
#[cfg(test)]
mod tests;
pub mod unread;

use std::fmt::Display;
use std::sync::{Arc, Mutex};

use super::client::{Client, Sent};
use super::error::{Error, ErrorKind};
use super::lock;
use super::prefetch::{Outlet, Prefetch};
use super::process;
use super::report::{Counts, WalkReport};
use crate::api::{Limit, List};
use crate::decode::page::Row;
use room::Held;
pub use send::{Start, says_past_end, walk_into};
pub use stages::{Checkpoint, PROVING_REQUESTS, PROVING_REQUESTS_A_PAGE, Resume};

/// Why a list is not certified if a response is older than its walk.
const OLD_PAGES: &str = "a cache answered with pages from before the walk began (header Age)";
// The most pages of one list requested concurrently.
const CONCURRENT_PAGES: usize = 8;

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
    /// Rows that no page brought, or whose page says nothing.
    fn of(rows: Vec<Row>, sent: Sent, counts: Counts) -> Self {
        Self {
            limit: None,
            offset: None,
            total: None,
            rows,
            user_id: None,
            counts,
            sent,
            checkpoint: None,
            held: None,
        }
    }

    /// How much JSON its rows keep in memory, in bytes.
    pub fn size(&self) -> usize {
        self.rows.first().map_or(0, Row::page_bytes)
    }
}

/// The report of a running walk, shared between the walk and its readers.
#[derive(Debug, Clone)]
pub struct SharedReport {
    shared: Arc<Mutex<WalkReport>>,
    process: u32,
}

impl Default for SharedReport {
    fn default() -> Self {
        Self {
            shared: Arc::new(Mutex::new(WalkReport::not_read_yet())),
            process: process::id(),
        }
    }
}

impl SharedReport {
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
        change(&mut lock(&self.shared))
    }
}

/// What `strict` raises for a list that is not certified.
fn incomplete(client: &Client, request: &impl Display, report: WalkReport) -> Error {
    let error = Error::new(ErrorKind::Incomplete(Box::new(report)));
    error.during(client.redactor().url(request), Vec::new())
}

/// A running walk, which prefetches for its reader.
#[derive(Debug)]
pub struct Walk {
    pub prefetch: Prefetch<WalkedPage>,
    pub report: SharedReport,
}

impl Walk {
    pub fn new(client: Client, list: List, settings: WalkSettings) -> Self {
        let report = SharedReport::default();
        let shared = report.clone();
        let prefetch = Prefetch::new(move |outlet: Outlet<WalkedPage>| async move {
            let budget = client.budget();
            let start = Start::Beginning;
            walk_into(&client, list, settings, start, &budget, &shared, &outlet).await
        });
        Self { prefetch, report }
    }
}
