//! The state machine of a walk: what to request next and what to deliver. It neither waits nor
//! sends.
//!
//! A [`Sweep`] passes each response to its parts, and decides by what they know. Each part keeps
//! one kind of fact, and none knows another:
//!
//! | part | what it keeps |
//! |---|---|
//! | [`in_flight`] | the requests in flight, and pages whose turn has not come |
//! | [`paging`] | where the joined pages end, and where the next begins and how long it is |
//! | [`linking`] | the order of the rows, and which pages fit it |
//! | [`list_end`] | what short pages and refused offsets say of the list's end |
//! | [`stall`] | whether the walk still gets anywhere |
//! | [`delivery`] | which rows were delivered, and the pages that wait for the reader |
//! | [`look_ups`] | the rows to fetch by their ids |
//! | [`passes`] | what was tried after the sweep |
//! | [`counting`] | when rows and totals came |
//! | [`proving_budget`] | how many requests may be spent on proof |
//!
//! A page goes through [`placing`] (does it lie at its offset, or past the end?) and [`joining`],
//! which links and delivers it. If it does not link, [`filling`] requests the pages before it. When
//! the list's end is reached, [`closing`] requests what is still in doubt, and [`proof`] says what
//! is proved. [`checkpoint`] saves the parts that a later walk resumes from.

mod checkpoint;
mod closing;
mod counting;
mod delivery;
mod filling;
mod in_flight;
mod joining;
mod linking;
mod list_end;
mod look_ups;
mod page_arrival;
mod paging;
mod passes;
mod placing;
mod proof;
mod proving_budget;
mod request;
mod stall;
#[cfg(test)]
mod testing;
mod unreadable;

pub use self::checkpoint::{Checkpoint, Resume};
use self::counting::Counting;
use self::delivery::Delivery;
use self::filling::Fill;
use self::in_flight::InFlight;
use self::linking::Linking;
use self::list_end::ListEnd;
use self::look_ups::{Gaps, LookUps};
use self::page_arrival::PageArrival;
use self::paging::Paging;
use self::passes::{Pass, Passes};
use self::proving_budget::ProvingBudget;
pub use self::proving_budget::{PROVING_REQUESTS, PROVING_REQUESTS_A_PAGE};
pub use self::request::{Fetch, Request, Response};
use self::stall::Stall;
use super::totals::Totals;
use super::{WalkSettings, WalkedPage};
use crate::api::List;
use crate::error::Error;
use crate::report::WalkReport;
use crate::timestamp::Timestamp;

/// The walk's current stage.
#[derive(Debug)]
enum Stage {
    /// Page after page to the list's end.
    Sweeping,
    /// A page waits for the pages that link it to earlier ones.
    Filling(Box<Fill>),
    /// Rows that a later page no longer showed are fetched by id.
    LookingUp,
    /// The list's start is read again: rows were inserted before the walk's position.
    Front {
        offset: u64,
    },
    /// The list is read again with different page boundaries, because its order changes.
    Pass(Pass),
    /// Unknown ids between known ones are looked up.
    Gaps(Gaps),
    /// One more response, whose total counts all known rows.
    Recount,
    Over,
}

/// The state of a walk between two responses.
#[derive(Debug)]
pub struct Sweep {
    list: List,
    settings: WalkSettings,
    stage: Stage,
    pub report: WalkReport,
    in_flight: InFlight,
    paging: Paging,
    linking: Linking,
    totals: Totals,
    list_end: ListEnd,
    stall: Stall,
    delivery: Delivery,
    look_ups: LookUps,
    passes: Passes,
    counting: Counting,
    proving: ProvingBudget,
    /// A cache answered with pages from before the walk.
    has_old_pages: bool,
    /// The refusal of an offset that is within the list.
    pub failed: Option<Error>,
    /// `max_items` ended the walk, as the caller wanted.
    pub cut: bool,
}

impl Sweep {
    pub fn new(list: List, settings: WalkSettings, at: Timestamp) -> Self {
        let mut sweep = Self {
            list,
            settings,
            stage: Stage::Sweeping,
            report: WalkReport::start(at),
            in_flight: InFlight::default(),
            paging: Paging::default(),
            linking: Linking::default(),
            totals: Totals::default(),
            list_end: ListEnd::default(),
            stall: Stall::default(),
            delivery: Delivery::new(list, settings.max_items),
            look_ups: LookUps::default(),
            passes: Passes::default(),
            counting: Counting::default(),
            proving: ProvingBudget::default(),
            has_old_pages: false,
            failed: None,
            cut: false,
        };
        sweep.end_at_max_items();
        sweep
    }

    /// A walk that resumes where an earlier one ended.
    pub fn resumed(list: List, settings: WalkSettings, resume: Resume, at: Timestamp) -> Self {
        let Resume { checkpoint, held } = resume;
        let mut sweep = Self::new(list, settings, at);
        sweep.report = checkpoint.report(at, held.len());
        sweep.paging = Paging::resumed(&checkpoint);
        sweep.linking = Linking::resumed(&checkpoint);
        sweep.totals = checkpoint.totals;
        sweep.list_end = ListEnd::resumed(&checkpoint);
        sweep.delivery.resume(&checkpoint, held);
        sweep.look_ups = LookUps::resumed(&checkpoint);
        sweep.counting = Counting::resumed(&checkpoint);
        sweep.has_old_pages = checkpoint.has_old_pages;
        sweep.proving = ProvingBudget::resumed(&checkpoint);
        sweep.end_at_max_items();
        sweep
    }

    fn checkpoint(&self) -> Checkpoint {
        let mut checkpoint = Checkpoint {
            totals: self.totals,
            has_old_pages: self.has_old_pages,
            ..Checkpoint::default()
        };
        checkpoint.save_report(&self.report);
        self.paging.save(&mut checkpoint);
        self.linking.save(&mut checkpoint);
        self.list_end.save(&mut checkpoint);
        self.delivery.save(&mut checkpoint);
        self.look_ups.save(&mut checkpoint);
        self.counting.save(&mut checkpoint);
        self.proving.save(&mut checkpoint);
        checkpoint
    }

    /// The next request; `None` if the walk waits for a response or is over.
    pub fn next_request(&mut self) -> Option<Request> {
        if self.in_flight.awaits_single() {
            return None;
        }
        match &self.stage {
            Stage::Over => None,
            Stage::Sweeping => self.request_ahead(),
            _ => {
                let fetch = self.next_fetch();
                Some(self.in_flight.send_single(fetch))
            }
        }
    }

    /// Whether a request is only for proof, so that the rows remain valid without its response.
    pub fn is_for_proof(&self, request: &Request) -> bool {
        let sweeping = matches!(self.stage, Stage::Sweeping | Stage::Filling(_));
        !sweeping && self.in_flight.is_single(request)
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
        let single = self.in_flight.take(&request);
        let taken = self.in_flight.taken();
        self.report.requests += response.requests();
        self.proving.note_response();
        let page = match response {
            Response::Row { row, sent } => return self.take_row(row, sent),
            Response::Refused(_) => {
                self.passes.note_refusal();
                return self.close();
            }
            Response::Page(read) => {
                let stored_at = read.value.stored_at;
                self.has_old_pages |= stored_at.is_some() && stored_at < self.report.started_at;
                PageArrival::page(&request, taken, read)
            }
            Response::PastEnd(refusal) => PageArrival::past_end(&request, taken, refusal),
        };
        let Some(page) = page else {
            return;
        };
        self.report.pages += u64::from(page.refusal.is_none());
        if page.was_received() {
            self.report.rows += page.rows.len() as u64;
        }
        self.report.repaired_text += page.repaired_text;
        if !single {
            self.in_flight.store(request.number, page);
        } else if matches!(self.stage, Stage::Filling(_)) {
            self.fill(page);
        } else {
            self.take_proof(page);
        }
        self.join_arrived();
        self.count_proof();
    }

    /// Whether it ended before the list did, as the caller wanted, without leaving rows out.
    pub fn is_as_wanted(&self) -> bool {
        self.cut && !self.delivery.unreadable().any()
    }

    /// Ends the walk once it delivered as many rows as the caller wants.
    fn end_at_max_items(&mut self) {
        if self.delivery.room() == Some(0) {
            self.stage = Stage::Over;
            self.cut = true;
            let most = self.settings.max_items.unwrap_or_default();
            let unreadable = self.delivery.unreadable();
            let unreadable = unreadable.any().then(|| unreadable.in_words());
            let stopped = format!("stopped after max_items={most} rows");
            let doubts = [Some(stopped), unreadable].into_iter().flatten();
            self.report.doubt(doubts.collect::<Vec<_>>().join("; "));
        }
    }
}
