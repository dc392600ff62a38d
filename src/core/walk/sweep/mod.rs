//! The state machine of a walk: what to request next and what to deliver. It neither waits nor
//! sends.

mod asking;
mod closing;
mod ending;
mod filling;
mod gaps;
mod joining;
mod page_arrival;
mod placing;
mod proof;
mod resume;
mod unreadable;

use std::collections::{BTreeSet, HashMap, VecDeque};

use roaring::RoaringTreemap;

use self::closing::Again;
use self::ending::End;
use self::filling::Fill;
use self::gaps::Gaps;
pub use self::page_arrival::{Answer, Ask, WalkRequest};
use self::page_arrival::{Order, PageArrival};
pub use self::resume::{Checkpoint, Resume};
use self::unreadable::Unreadables;
use super::row_order::RowOrder;
use super::totals::Totals;
use super::{WalkSettings, WalkedPage};
use crate::core::api::List;
use crate::core::decode::page::Row;
use crate::core::error::Error;
use crate::core::report::WalkReport;
use crate::core::timestamp::Timestamp;

/// Requests that a walk may spend on proving, whatever the list's length.
pub const PROVING_REQUESTS: u64 = 16;
/// The same for each page that a plain loop over the list would read.
pub const PROVING_REQUESTS_A_PAGE: u64 = 8;

// Rows that a page shares with the one before: two to link them, and one that may be deleted.
const OVERLAP: u64 = 3;
/// The walk's current stage.
#[derive(Debug)]
enum Stage {
    /// Page after page to the list's end.
    Sweeping,
    /// A page waits for the pages that link it to earlier ones.
    Filling(Box<Fill>),
    /// Rows that a later page no longer showed are fetched by id.
    Looking,
    /// The list's start is read again: rows were inserted before the walk's position.
    Front {
        offset: u64,
    },
    /// The list is read again with different page boundaries, because its order changes.
    Again(Again),
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
    seen: RoaringTreemap,
    row_order: RowOrder,
    totals: Totals,
    /// The offsets of pages that were requested and not joined yet, in the list's order.
    ahead: VecDeque<u64>,
    arrived: HashMap<u64, PageArrival>,
    /// The one request in flight when the walk is not sweeping.
    awaited: Option<u64>,
    asked: u64,
    taken: u64,
    /// Responses to this walk's requests, not counting retries.
    answers: u64,
    /// Pages with about as many new rows as a regular page of this list.
    plain_pages: u64,
    /// How far they reach.
    plain_to: u64,
    /// Where the joined pages end, and below, where the requested ones end if each comes full.
    end: u64,
    planned_end: u64,
    beginnings: u32,
    /// Where the last joined page began; `last_received` is how many rows it had.
    last_offset: Option<u64>,
    /// No rows came from the offsets between the end and this one.
    empty_to: Option<u64>,
    last_received: u64,
    last_reduced: bool,
    /// The row at offset 0.
    first_row: Option<i64>,
    longest_page: u64,
    last_full: bool,
    /// The last page ended where its own total said that the list does.
    last_to_total: bool,
    overlap: u64,
    clean_links: u32,
    at_end: bool,
    barren_pages: u32,
    short_pages: bool,
    /// A page came short, and more rows followed.
    short_then_more: bool,
    /// A page had fewer rows than the limit that it reported,
    shorter_pages: bool,
    /// and new rows followed it.
    shorter_then_more: bool,
    list_end: End,
    end_attempts: u32,
    refused: bool,
    scant_pages: u32,
    fresh_pages: u64,
    /// The first page had as many rows as its total.
    held_it_all: bool,
    /// A page came from an offset other than the requested one.
    strayed: bool,
    /// Rows were inserted before the walk's position.
    shifted: bool,
    front_read: bool,
    gaps_read: bool,
    recounted: bool,
    /// Rows that a later page did not show, with the hash of their text.
    vanished: VecDeque<(i64, u64)>,
    /// The text hash that the row being looked up had.
    content_before: u64,
    /// Rows that vanished and are not fetched by id, because there are too many.
    not_looked_up: u64,
    /// Ids that were or will be fetched.
    looked_up: BTreeSet<i64>,
    /// Rows that are unchanged by id but no longer in their place.
    untraced_moves: u64,
    /// Proving requests that the service refused.
    unanswered: u64,
    /// Pages that could not be linked, though they are long enough for it.
    links_given_up: u64,
    found_again: u64,
    /// Consecutive passes that found nothing.
    fruitless_passes: u64,
    passes_bring_little: bool,
    /// The last two responses with new rows, by the order in which they were taken.
    last_fresh: [u64; 2],
    latest: Option<Order>,
    unnamed_rows: u64,
    unreadable: Unreadables,
    /// The previous page's rows, by id.
    rows_before: Vec<u64>,
    /// The last page was empty, refused, or a repeat of the one before.
    last_idle: bool,
    given: u64,
    ready: VecDeque<WalkedPage>,
    /// An offset below the total that returned nothing, and the status that said so.
    refused_at: Option<(u64, u16)>,
    /// The refusal of an offset that is within the list.
    pub failed: Option<Error>,
    /// `max_items` ended the walk, as the caller asked.
    pub cut: bool,
}

impl Sweep {
    pub fn new(list: List, settings: WalkSettings, at: Timestamp) -> Self {
        let mut sweep = Self {
            list,
            settings,
            stage: Stage::Sweeping,
            report: WalkReport::start(at),
            seen: RoaringTreemap::new(),
            row_order: RowOrder::default(),
            totals: Totals::default(),
            ahead: VecDeque::new(),
            arrived: HashMap::new(),
            awaited: None,
            asked: 0,
            taken: 0,
            answers: 0,
            plain_pages: 0,
            plain_to: 0,
            end: 0,
            planned_end: 0,
            beginnings: 0,
            last_offset: None,
            empty_to: None,
            last_received: 0,
            last_reduced: false,
            first_row: None,
            longest_page: 0,
            last_full: false,
            last_to_total: false,
            overlap: OVERLAP,
            clean_links: 0,
            at_end: false,
            barren_pages: 0,
            short_pages: false,
            short_then_more: false,
            shorter_pages: false,
            shorter_then_more: false,
            list_end: End::Open,
            end_attempts: 0,
            refused: false,
            scant_pages: 0,
            fresh_pages: 0,
            held_it_all: false,
            strayed: false,
            shifted: false,
            front_read: false,
            gaps_read: false,
            recounted: false,
            vanished: VecDeque::new(),
            content_before: 0,
            not_looked_up: 0,
            looked_up: BTreeSet::new(),
            untraced_moves: 0,
            unanswered: 0,
            links_given_up: 0,
            found_again: 0,
            fruitless_passes: 0,
            passes_bring_little: false,
            last_fresh: [0; 2],
            latest: None,
            unnamed_rows: 0,
            unreadable: Unreadables::default(),
            rows_before: Vec::new(),
            last_idle: false,
            given: 0,
            ready: VecDeque::new(),
            refused_at: None,
            failed: None,
            cut: false,
        };
        if settings.max_items == Some(0) {
            sweep.cut();
        }
        sweep
    }

    /// The next request; `None` if the walk waits for a response or is over.
    pub fn ask(&mut self) -> Option<Ask> {
        if self.awaited.is_some() {
            return None;
        }
        let request = match &self.stage {
            Stage::Over => return None,
            Stage::Sweeping => return self.ask_ahead(),
            Stage::Filling(fill) => fill.request(self.settings.page_size),
            Stage::Looking
            | Stage::Front { .. }
            | Stage::Again(_)
            | Stage::Gaps(_)
            | Stage::Recount => self.closing_question(),
        };
        let ask = self.number(request);
        self.awaited = Some(ask.number);
        Some(ask)
    }

    /// Whether a request is only for proof, so that the rows remain valid without its response.
    pub fn is_for_proof(&self, ask: &Ask) -> bool {
        let sweeping = matches!(self.stage, Stage::Sweeping | Stage::Filling(_));
        !sweeping && self.awaited == Some(ask.number)
    }

    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// The next page to deliver, without rows that earlier pages had.
    pub fn give(&mut self) -> Option<WalkedPage> {
        self.ready.pop_front()
    }

    /// Takes the response to a request.
    pub fn take(&mut self, ask: Ask, answer: Answer) {
        self.taken += 1;
        self.report.requests += answer.requests();
        let awaited = self.awaited == Some(ask.number);
        if awaited {
            self.awaited = None;
        }
        self.answers += 1;
        let arrived = match answer {
            Answer::Row { row, sent } => {
                if matches!(self.stage, Stage::Gaps(_)) {
                    self.take_gap(row, sent);
                    return;
                }
                self.look_up(row.as_deref());
                return;
            }
            Answer::Unanswered(_) => {
                self.unanswered += 1;
                self.close();
                return;
            }
            Answer::Page(read) => PageArrival::page(&ask, self.taken, read),
            Answer::PastEnd(refusal) => PageArrival::past_end(&ask, self.taken, refusal),
        };
        let Some(arrived) = arrived else {
            return;
        };
        self.report.pages += u64::from(arrived.refusal.is_none());
        self.report.rows += arrived.rows.len() as u64;
        self.report.repaired_text += arrived.repaired_text;
        if !awaited {
            self.arrived.insert(ask.number, arrived);
        } else if matches!(self.stage, Stage::Filling(_)) {
            self.fill(arrived);
        } else {
            self.close_with(arrived);
        }
        self.join_arrived();
        self.count_proof();
    }

    /// The user whose messages these are; `None` for users.
    fn user_id(&self) -> Option<i64> {
        match self.list {
            List::Users => None,
            List::Messages { user_id } => user_id.get().try_into().ok(),
        }
    }

    fn cut_to_max_items(&mut self, rows: &mut Vec<Row>) {
        let Some(most) = self.settings.max_items else {
            return;
        };
        let room = usize::try_from(most.saturating_sub(self.given)).unwrap_or(usize::MAX);
        rows.truncate(room);
        self.given += rows.len() as u64;
        if self.given >= most {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.stage = Stage::Over;
        self.cut = true;
        let most = self.settings.max_items.unwrap_or_default();
        self.report
            .doubt(format!("stopped after max_items={most} rows, as asked"));
    }
}
