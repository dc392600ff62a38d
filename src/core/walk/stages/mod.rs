//! The state machine of a walk: what to request next, what to deliver, what is proved. It neither
//! waits nor sends.
//!
//! ```text
//! Sweep ──── a page does not link ───> Back ──── a page before it links ───> Sweep
//!   │                                    └────── or no page does ──────────> Sweep, unlinked
//!   │ the end of the list
//!   └──> LookUp (rows that disappeared, by id) ──> Over
//!   ├──> Sweep again, if rows are missing (see `wants_another_pass`)
//!   └──> Over
//! ```
//!
//! | file | what it decides |
//! |---|---|
//! | [`sweep`] | which page is requested next |
//! | [`link`] | which pages link, and how far they reach |
//! | [`list_end`] | where the list ends |
//! | [`back`] | how far to go back for the pages before one that does not link |
//! | [`look_up`] | which rows to fetch by id, and what the answers mean |
//! | [`certify`] | what is proved, and why not more |
//!
//! Every page that arrives goes into a pool. While any page of the pool links with the chain, it is
//! joined, in whatever order they came; only when nothing links and nothing is in flight does the walk
//! decide. So pages fetched ahead, out of order or to go back need no rules of their own.
//!
//! # Why a linked list is complete
//!
//! Assume that rows which do not move keep their relative order, that a row seen twice with the same
//! content did not move in between, and that a page is a contiguous piece of the list at one instant.
//! Call a row *steady* if it is alive and does not move during the walk.
//!
//! While all pages link, every steady row before the end of a joined page is held:
//!
//! - A page at offset 0 shows every steady row before its end.
//! - Let page P be joined, and let page Q show a row x that P showed, unchanged. A steady row before
//!   the end of Q is in Q, or it comes before x; then it came before x when P was answered, so it is
//!   held. It does not matter at which offsets they were requested, or which was answered first.
//! - If a joined page ends the list at its own instant, every steady row is held.

mod arrived;
mod back;
mod certify;
mod chain;
mod checkpoint;
mod delivery;
mod link;
mod list_end;
mod look_up;
mod page_length;
mod pass;
mod sweep;
mod totals;

use serde::{Deserialize, Serialize};

use self::arrived::ArrivedPage;
pub use self::arrived::{Fetch, Request, Response};
use self::back::Back;
pub use self::checkpoint::{Checkpoint, Resume};
use self::delivery::Delivery;
use self::look_up::{LookUp, Vanished};
use self::page_length::PageLength;
use self::pass::Pass;
use self::totals::Totals;
use super::{WalkSettings, WalkedPage};
use crate::api::{Limit, List};
use crate::error::Error;
use crate::report::WalkReport;
use crate::timestamp::Timestamp;

/// Requests that a walk may send beyond those of a plain loop over the pages, whatever the list's
/// length,
pub const PROVING_REQUESTS: u64 = 16;
/// and for each page that a plain loop would read.
pub const PROVING_REQUESTS_A_PAGE: u64 = 8;

/// What the walk is doing.
#[derive(Debug)]
enum Stage {
    /// Page after page to the list's end, several in flight.
    Sweep,
    /// A page does not link: those before it are fetched, one at a time.
    Back(Back),
    /// Rows are fetched by id, one at a time.
    LookUp(LookUp),
    Over,
}

/// What contradicts the assumptions, in addition to the report's evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Doubts {
    /// Each response spells its rows differently, so they are compared by their ids alone.
    by_id: bool,
    /// A page came from another offset than requested.
    strayed: bool,
    /// A cache answered with pages from before the walk.
    old_pages: bool,
    /// The service refused an offset below its total.
    refused_at: Option<u64>,
    /// A message that was fetched by its id belongs to another user.
    any_users: bool,
    /// Requests for proof that failed.
    failed_proofs: u64,
}

/// A walk over one list between two responses.
#[derive(Debug)]
pub struct ListWalk {
    list: List,
    settings: WalkSettings,
    stage: Stage,
    pass: Pass,
    pub report: WalkReport,
    delivery: Delivery,
    totals: Totals,
    doubts: Doubts,
    vanished: Vanished,
    in_flight: u64,
    /// The number of responses taken.
    taken: u64,
    /// How many pages of this list the new rows of the first pass would fill.
    plain_pages: f64,
    /// The furthest offset that is counted in `plain_pages`.
    reach: u64,
    length: PageLength,
    /// Passes in a row that found no rows.
    fruitless: u64,
    /// Unknown ids between known ones were looked up.
    gaps_read: bool,
    /// A pass linked the list from its start to its end,
    linked_once: bool,
    /// which was where its total said.
    at_total: bool,
    /// An offset within the list was refused: the walk failed.
    pub failed: Option<Error>,
    /// `max_items` ended the walk, as the caller wanted.
    pub cut: bool,
}

impl ListWalk {
    pub fn new(list: List, settings: WalkSettings, at: Timestamp) -> Self {
        let mut walk = Self {
            list,
            settings,
            stage: Stage::Sweep,
            pass: Pass::default(),
            report: WalkReport::start(at),
            delivery: Delivery::new(list, settings.max_items),
            totals: Totals::default(),
            doubts: Doubts::default(),
            vanished: Vanished::default(),
            in_flight: 0,
            taken: 0,
            plain_pages: 0.0,
            reach: 0,
            length: PageLength::default(),
            fruitless: 0,
            gaps_read: false,
            linked_once: false,
            at_total: false,
            failed: None,
            cut: false,
        };
        walk.end_at_max_items();
        walk
    }

    /// A walk over the rows between two offsets of a list.
    pub fn of_span(list: List, settings: WalkSettings, span: (u64, u64), at: Timestamp) -> Self {
        let mut walk = Self::new(list, settings, at);
        walk.pass = Pass::of_span(span);
        walk
    }

    /// The next request; `None` if the walk waits for a response or is over.
    pub fn next_request(&mut self) -> Option<Request> {
        let alone = !matches!(self.stage, Stage::Sweep);
        if alone && self.in_flight > 0 {
            return None;
        }
        let fetch = match &self.stage {
            Stage::Over => return None,
            Stage::Sweep => self.request_page()?,
            Stage::Back(back) => Fetch::Page {
                offset: back.offset,
                limit: self.settings.page_size,
            },
            Stage::LookUp(LookUp::Vanished { id, .. } | LookUp::Gap { id, .. }) => {
                Fetch::Row { id: *id }
            }
        };
        self.in_flight += 1;
        Some(Request {
            fetch,
            sent_after: self.taken,
            total_before: self.totals.greatest,
        })
    }

    /// Whether the rows remain valid without the response to the walk's current requests.
    pub fn is_for_proof(&self) -> bool {
        matches!(self.stage, Stage::LookUp(_)) || self.report.sweeps > 1
    }

    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// The next page to deliver, without rows that earlier pages had.
    pub fn next_page(&mut self) -> Option<WalkedPage> {
        self.delivery.next_page()
    }

    /// Takes the response to a request.
    pub fn take(&mut self, request: Request, response: Response) {
        self.in_flight -= 1;
        self.taken += 1;
        self.report.requests += response.requests();
        match (request.fetch, response) {
            (_, Response::Row { row, sent }) => self.take_row(row, sent),
            (_, Response::Refused(_)) => self.take_failed_proof(),
            (Fetch::Page { offset, limit }, Response::Page(read)) => {
                self.doubts.old_pages |=
                    read.value.stored_at.is_some() && read.value.stored_at < self.report.started_at;
                self.report.repaired_text += read.value.text.repaired;
                let page = ArrivedPage::of(&request, offset, limit, self.taken, read);
                self.report.pages += 1;
                self.take_page(page);
            }
            (Fetch::Page { offset, limit }, Response::PastEnd(refusal)) => {
                let mut page = ArrivedPage::empty(&request, offset, limit, self.taken);
                page.refusal = Some(refusal);
                self.take_page(page);
            }
            (Fetch::Row { .. }, _) => {}
        }
        self.report.evidence.proving_requests = self.spent();
    }

    /// Ends after a request for proof that failed: what it would have proved is in doubt.
    fn take_failed_proof(&mut self) {
        self.doubts.failed_proofs += 1;
        if let Stage::LookUp(_) = self.stage {
            self.close();
        } else {
            self.settle();
        }
    }

    /// The requests of a plain loop: one for each full page that there is, and one for the last.
    fn plain_requests(&self) -> u64 {
        self.plain_pages.floor() as u64 + 1
    }

    /// How many requests were sent beyond those.
    fn spent(&self) -> u64 {
        self.taken.saturating_sub(self.plain_requests())
    }

    /// How many requests for proof a walk may send, whatever for.
    fn most_for_proof(&self) -> u64 {
        PROVING_REQUESTS + PROVING_REQUESTS_A_PAGE * self.plain_requests()
    }

    /// How many more the walk may send. It ends once none is left.
    fn left(&self) -> u64 {
        self.most_for_proof().saturating_sub(self.spent())
    }

    /// Whether requests for proof may be sent: none if nothing can be proved any more. The first pass
    /// keeps half of them, to read on to the end like a plain loop.
    fn may_prove(&self) -> bool {
        let reading = matches!(self.stage, Stage::Sweep | Stage::Back(_));
        let kept = if reading && self.report.sweeps == 1 {
            self.most_for_proof() / 2
        } else {
            0
        };
        !self.doubts.strayed && self.left() > kept
    }

    /// How many more rows the last total counts than are held or left out, and than the list grew by
    /// meanwhile.
    fn missing(&self) -> Option<u64> {
        let held = self.report.distinct + self.delivery.unreadable.left_out();
        let missing = self.totals.last?.saturating_sub(held);
        Some(missing.saturating_sub(self.totals.grown))
    }

    /// Whether it ended before the list did, as the caller wanted, without leaving rows out.
    pub fn ended_as_requested(&self) -> bool {
        self.cut && self.delivery.unreadable.count == 0
    }

    /// Ends the walk once it delivered as many rows as the caller wants.
    fn end_at_max_items(&mut self) {
        if self.delivery.room() == Some(0) {
            self.stage = Stage::Over;
            self.cut = true;
            let most = self.settings.max_items.unwrap_or_default();
            let mut reason = format!("stopped after max_items={most} rows");
            if self.delivery.unreadable.count > 0 {
                reason = format!("{reason}; {}", self.delivery.unreadable.in_words());
            }
            self.report.doubt(reason);
        }
    }

    /// How many rows the next page may have, if `max_items` leaves room for only a few: `shared` of its
    /// rows are known, and pages in flight bring `ahead` others.
    fn limit_for_room(&self, limit: Limit, shared: u64, ahead: u64) -> Option<Limit> {
        let Some(room) = self.delivery.room() else {
            return Some(limit);
        };
        let rest = room.saturating_sub(ahead);
        (rest > 0)
            .then(|| Limit::of(rest.saturating_add(shared)).map_or(limit, |rest| rest.min(limit)))
    }
}
