//! The state of a walk between its answers: what to ask next, what to give; it neither waits nor
//! sends.

mod arrived;
mod closing;
mod filling;
mod proof;
mod resume;

use std::collections::{HashMap, VecDeque};

use roaring::RoaringTreemap;

pub use self::arrived::{Answer, Ask, Question};
use self::arrived::{Arrived, Order};
use self::closing::Again;
use self::filling::Fill;
pub use self::resume::{Checkpoint, Resume};
use super::chain::{Chain, LINK, Shared, content};
use super::totals::Totals;
use super::{WalkSettings, WalkedPage};
use crate::core::interface::{Limit, List};
use crate::core::page::Row;
use crate::core::report::WalkReport;
use crate::core::timestamp::Timestamp;

/// Requests that a walk may spend on proving, whatever the list's length.
pub const PROVING_REQUESTS: u64 = 16;
/// And for each page that a plain loop over the list would read.
pub const PROVING_REQUESTS_A_PAGE: u64 = 8;

// Rows that a page shares with the one before: two to link them, and one that may be deleted.
const OVERLAP: u64 = 3;
// Of pages with fewer rows than this, two are all that can be spared.
const SMALL_PAGE: u64 = 30;
// Links in a row after which a widened overlap becomes narrower again.
const CLEAN_LINKS: u32 = 8;
// Pages in a row that may bring nothing new before the walk takes the list to go in circles.
const BARREN_PAGES: u32 = 10;
// The same without a total to hope for, or past it.
const BARREN_PAGES_PAST_END: u32 = 1;
// A walk asks for one more page at a time for every so many that it has read.
const PAGES_A_LANE: u64 = 4;
// A page with fewer new rows than this part of the longest one is scant.
const SCANT: u64 = 8;

/// What the walk is at.
#[derive(Debug)]
enum Stage {
    /// Page after page to the list's end.
    Sweeping,
    /// A page waits for those that link it to the ones before.
    Filling(Box<Fill>),
    /// Rows that a later page no longer showed are asked for by id.
    Looking,
    /// The list's start is read again: rows came in ahead of where the walk was.
    Front {
        offset: u64,
    },
    /// The list is read once more, its pages cut elsewhere: its order changes.
    Again(Again),
    /// One response more, whose total counts all that is held.
    Recount,
    Over,
}

/// The state of a walk between its answers.
#[derive(Debug)]
pub struct Sweep {
    list: List,
    settings: WalkSettings,
    stage: Stage,
    pub report: WalkReport,
    seen: RoaringTreemap,
    chain: Chain,
    totals: Totals,
    /// The pages of the sweep that were asked for and not joined yet, in the list's order.
    ahead: VecDeque<u64>,
    arrived: HashMap<u64, Arrived>,
    /// The one request that the walk waits for when it is not sweeping.
    awaited: Option<u64>,
    asked: u64,
    taken: u64,
    /// Pages that a plain loop would have read too.
    plain_pages: u64,
    /// Where the joined pages end, and the pages asked ahead if each comes full.
    end: u64,
    planned_end: u64,
    /// Where the last joined page began, and how many rows it had.
    last_offset: Option<u64>,
    last_received: u64,
    longest_page: u64,
    last_full: bool,
    overlap: u64,
    clean_links: u32,
    at_end: bool,
    barren_pages: u32,
    short_pages: bool,
    /// A page came short, and more rows followed.
    short_then_more: bool,
    refused: bool,
    scant_pages: u32,
    fresh_pages: u64,
    /// The first page had as many rows as its total.
    held_it_all: bool,
    /// A page came from another offset than asked for.
    strayed: bool,
    /// Rows came in ahead of where the walk was.
    shifted: bool,
    front_read: bool,
    recounted: bool,
    vanished: VecDeque<i64>,
    looked_up: u64,
    /// Rows that are unchanged by id and yet out of their place.
    untraced_moves: u64,
    /// Pages that could not be linked, though pages are long enough for it.
    links_given_up: u64,
    found_again: u64,
    /// Passes in a row that found nothing.
    fruitless_passes: u64,
    /// The two answers that last brought rows, by the order in which they were taken.
    last_fresh: [u64; 2],
    latest: Option<Order>,
    unnamed_rows: u64,
    content_before: Option<u64>,
    given: u64,
    ready: VecDeque<WalkedPage>,
    /// `max_items` ended it, which is what the caller asked for.
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
            chain: Chain::default(),
            totals: Totals::default(),
            ahead: VecDeque::new(),
            arrived: HashMap::new(),
            awaited: None,
            asked: 0,
            taken: 0,
            plain_pages: 0,
            end: 0,
            planned_end: 0,
            last_offset: None,
            last_received: 0,
            longest_page: 0,
            last_full: false,
            overlap: OVERLAP,
            clean_links: 0,
            at_end: false,
            barren_pages: 0,
            short_pages: false,
            short_then_more: false,
            refused: false,
            scant_pages: 0,
            fresh_pages: 0,
            held_it_all: false,
            strayed: false,
            shifted: false,
            front_read: false,
            recounted: false,
            vanished: VecDeque::new(),
            looked_up: 0,
            untraced_moves: 0,
            links_given_up: 0,
            found_again: 0,
            fruitless_passes: 0,
            last_fresh: [0; 2],
            latest: None,
            unnamed_rows: 0,
            content_before: None,
            given: 0,
            ready: VecDeque::new(),
            cut: false,
        };
        if settings.max_items == Some(0) {
            sweep.cut();
        }
        sweep
    }

    /// What to send now; `None` when the walk waits for an answer, or is over.
    pub fn ask(&mut self) -> Option<Ask> {
        if self.awaited.is_some() {
            return None;
        }
        let question = loop {
            match &self.stage {
                Stage::Over => return None,
                Stage::Sweeping => return self.ask_ahead(),
                Stage::Filling(_) => {
                    // None: the link was given up, and the walk is at something else.
                    if let Some(question) = self.fill_question() {
                        break question;
                    }
                }
                Stage::Looking | Stage::Front { .. } | Stage::Again(_) | Stage::Recount => {
                    break self.closing_question();
                }
            }
        };
        let ask = self.number(question);
        self.awaited = Some(ask.number);
        Some(ask)
    }

    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// The next page that is due to the reader, without the rows that came before.
    pub fn give(&mut self) -> Option<WalkedPage> {
        self.ready.pop_front()
    }

    /// Takes the answer to what was asked.
    pub fn take(&mut self, ask: Ask, answer: Answer) {
        self.taken += 1;
        self.report.requests += answer.sent().attempts.len() as u64;
        let awaited = self.awaited == Some(ask.number);
        if awaited {
            self.awaited = None;
        }
        let arrived = match answer {
            Answer::Row { row, .. } => {
                if let Question::Row { id } = ask.question {
                    self.look_up(id, row.as_deref());
                }
                return;
            }
            Answer::Page(read) => Arrived::page(&ask, self.taken, read),
            Answer::PastEnd(sent) => Arrived::past_end(&ask, self.taken, sent),
        };
        let arrived = match arrived {
            Some(arrived) => arrived,
            None => return,
        };
        self.report.pages += 1;
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
    }

    fn number(&mut self, question: Question) -> Ask {
        self.asked += 1;
        Ask {
            number: self.asked,
            question,
            taken_before: self.taken,
        }
    }

    /// The next page of the sweep, if one more may be under way.
    fn ask_ahead(&mut self) -> Option<Ask> {
        let under_way = self.ahead.len() as u64;
        let lanes = u64::try_from(self.settings.lanes).unwrap_or(1);
        let most = (self.plain_pages / PAGES_A_LANE).clamp(1, lanes.max(1));
        if under_way >= most {
            return None;
        }
        let offset = if under_way == 0 {
            self.next_offset()
        } else {
            // Only where the total promises rows, and pages come as long as the last one.
            let promised = self
                .totals
                .last
                .is_some_and(|total| self.planned_end < total);
            let whole = self.unnamed_rows == 0 && self.barren_pages == 0;
            if !promised || !whole || self.last_received < SMALL_PAGE {
                return None;
            }
            self.planned_end.saturating_sub(self.shared_rows())
        };
        let limit = self.limit_for(under_way)?;
        let ask = self.number(Question::Page { offset, limit });
        let expected = match self.last_offset {
            None => u64::from(limit.get()),
            Some(_) => self.last_received.min(limit.get().into()),
        };
        self.planned_end = offset + expected;
        self.ahead.push_back(ask.number);
        Some(ask)
    }

    /// Where the next page begins: a little before the end of the last one.
    fn next_offset(&self) -> u64 {
        let Some(last) = self.last_offset else {
            return 0;
        };
        if self.may_be_hidden_behind(last) {
            return last + 1;
        }
        if self.unnamed_rows > 0 || self.barren_pages > 0 {
            return self.end;
        }
        self.end.saturating_sub(self.shared_rows()).max(last + 1)
    }

    /// Whether a page that came empty may have more behind it: rows that are left out of pages which
    /// are short anyway.
    fn may_be_hidden_behind(&self, offset: u64) -> bool {
        let promised = self.totals.last.is_some_and(|total| offset + 1 < total);
        self.short_then_more && promised && !self.refused && self.end <= offset
    }

    /// How many rows the next page shares with the last one.
    fn shared_rows(&self) -> u64 {
        match self.last_received {
            0..=LINK => 0,
            received if received < SMALL_PAGE => LINK,
            _ => self.overlap,
        }
    }

    /// The page size to ask for, no more than `max_items` needs; `None` when it needs no more.
    fn limit_for(&self, under_way: u64) -> Option<Limit> {
        let size = self.settings.page_size;
        let Some(most) = self.settings.max_items else {
            return Some(size);
        };
        let coming = under_way * (self.last_received - self.shared_rows());
        let rest = most.saturating_sub(self.given + coming);
        if rest == 0 && under_way > 0 {
            return None;
        }
        let shared = self.last_offset.map_or(0, |_| self.shared_rows());
        let wanted = i64::try_from(rest.saturating_add(shared)).unwrap_or(i64::MAX);
        let wanted = Limit::new("limit", wanted).ok();
        Some(
            wanted
                .filter(|limit| limit.get() < size.get())
                .unwrap_or(size),
        )
    }

    /// Joins the pages that have arrived and whose turn it is.
    fn join_arrived(&mut self) {
        while matches!(self.stage, Stage::Sweeping)
            && let Some(number) = self.ahead.front()
            && let Some(arrived) = self.arrived.remove(number)
        {
            self.ahead.pop_front();
            self.sweep(arrived);
        }
        if self.is_over() {
            self.arrived.clear();
            self.ahead.clear();
        }
    }

    fn sweep(&mut self, mut arrived: Arrived) {
        arrived.settle(&self.seen, (self.barren_pages > 1).then_some(self.end));
        let shared = self.compare(&arrived);
        let first = self.last_offset.is_none();
        // Nothing is left to link: the page lies where the list has ended.
        let past_end = arrived.is_past_end() && (self.at_end || arrived.offset >= self.end);
        let hopeless = self.report.evidence.inversions > 0
            || self.unnamed_rows > 0
            || arrived.rows.iter().any(|row| row.id.is_none())
            || (arrived.offset >= self.end && self.barren_pages > 0)
            || self.longest_page <= LINK;
        let joins = first || past_end || shared.links() || self.adds_nothing(&arrived);
        if !joins && !hopeless {
            self.hold(arrived);
            return;
        }
        self.report.evidence.missing_links += u64::from(!joins);
        let full = self.join(arrived, shared);
        self.count_page(full);
        self.decide();
    }

    /// Whether a page lies within what was read, row by row.
    fn adds_nothing(&self, arrived: &Arrived) -> bool {
        let held = |row: &Row| {
            row.id
                .is_some_and(|id| self.seen.contains(id.cast_unsigned()))
        };
        arrived.offset + arrived.received() <= self.end && arrived.rows.iter().all(held)
    }

    fn compare(&self, arrived: &Arrived) -> Shared {
        self.chain
            .compare(arrived.rows_in_place(), arrived.ends_the_list())
    }

    /// Takes a page into the chain, and gives its new rows; says whether it was a full one.
    fn join(&mut self, arrived: Arrived, shared: Shared) -> bool {
        let first = self.last_offset.is_none();
        let received = arrived.received();
        let answered = arrived.answered;
        self.note_shared(&arrived, &shared);
        if !first && shared.links() {
            self.report.evidence.links += 1;
            let overlapped = self.end.saturating_sub(arrived.offset);
            self.shifted |= shared.unchanged > overlapped;
            self.clean_links += 1;
            if self.clean_links >= CLEAN_LINKS {
                self.clean_links = 0;
                self.overlap = (self.overlap / 2).max(OVERLAP);
            }
        }
        if !arrived.is_past_end() || self.last_offset.is_none() {
            self.end = arrived.offset + received;
            self.last_received = received;
            self.longest_page = self.longest_page.max(received);
            self.last_full = received >= arrived.applied;
        }
        let total = arrived.total();
        let reached = total.is_some_and(|total| self.end >= total);
        self.at_end = match arrived.is_past_end() {
            false => arrived.ends_the_list(),
            true => self.at_end || total == Some(self.end),
        };
        self.short_pages |= received < arrived.applied && !reached && !arrived.is_past_end();
        self.last_offset = Some(arrived.offset);
        let came_again = self.came_again(&arrived);
        let rows_in_place = !arrived.is_past_end();
        let whole = arrived.is_whole();
        let rows = arrived.rows.clone();
        let fresh = self.deliver(arrived);
        if first {
            self.held_it_all = whole && fresh == received;
        }
        // A list that one response holds needs no chain.
        let snapshot = first && self.held_it_all && self.at_end;
        if rows_in_place && !snapshot {
            self.chain.join(&rows);
        }
        let unnamed = rows.iter().any(|row| row.id.is_none());
        if fresh > 0 || (unnamed && !came_again) {
            self.short_then_more |= self.short_pages;
            self.barren_pages = 0;
        } else {
            self.barren_pages += 1;
        }
        // A refused offset says that nothing can come from there.
        self.refused |= !answered;
        first || unnamed || self.is_full(fresh)
    }

    /// Whether a page that brought so many rows is one of those that the list consists of.
    fn is_full(&self, fresh: u64) -> bool {
        fresh > 0 && fresh * SCANT >= self.longest_page
    }

    /// Counts a page by what it brought; a plain loop would have read one that is scant, too, unless
    /// another came just before.
    fn count_page(&mut self, full: bool) {
        if full {
            self.plain_pages += 1;
            self.scant_pages = 0;
        } else {
            self.scant_pages += 1;
            self.report.evidence.proving_requests += u64::from(self.scant_pages > 1);
        }
    }

    /// What a page says of the list's order and size, wherever it is joined.
    fn note_shared(&mut self, arrived: &Arrived, shared: &Shared) {
        let evidence = &mut self.report.evidence;
        evidence.inversions += shared.inversions;
        evidence.rows_moved += shared.moved;
        self.strayed |= arrived.strayed;
        self.vanished.extend(&shared.vanished);
        if arrived.answered {
            let end = (!arrived.is_past_end()).then(|| arrived.offset + arrived.received());
            self.totals.take(arrived.said_total, end);
            if self.last_offset.is_none() {
                self.report.total_first = arrived.said_total;
            }
            self.report.total_last = arrived.said_total;
        }
    }

    /// The same rows without ids as in the page before are no new ones.
    fn came_again(&mut self, arrived: &Arrived) -> bool {
        if arrived.rows.iter().all(|row| row.id.is_some()) {
            return false;
        }
        let whole = arrived.rows.iter().map(content).fold(0, |all: u64, row| {
            all.rotate_left(5).wrapping_mul(31).wrapping_add(row)
        });
        self.content_before.replace(whole) == Some(whole)
    }

    /// Queues a page for the reader without the rows that came before; says how many are new.
    fn deliver(&mut self, arrived: Arrived) -> u64 {
        let mut rows: Vec<Row> = Vec::with_capacity(arrived.rows.len());
        let mut fresh = 0_u64;
        for row in arrived.rows {
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
        if fresh > 0 {
            self.fresh_pages += 1;
            let [last, _] = self.last_fresh;
            self.last_fresh = [arrived.order.taken, last];
        }
        if self
            .latest
            .is_none_or(|latest| latest.taken_before <= arrived.order.taken_before)
            && arrived.said_total.is_some()
        {
            self.latest = Some(arrived.order);
        }
        self.cut_to_max_items(&mut rows);
        self.ready.push_back(WalkedPage {
            limit: arrived.said_limit,
            offset: arrived.said_offset,
            total: arrived.said_total,
            rows,
            user_id: match self.list {
                List::Users => None,
                List::Messages { user_id } => user_id.get().try_into().ok(),
            },
            counts: self.report.counts(),
            sent: arrived.sent,
            checkpoint: None,
        });
        fresh
    }

    /// Whether the sweep goes on after the page that was just joined.
    fn decide(&mut self) {
        if self.cut || !self.ahead.is_empty() {
            return;
        }
        let reached = self.totals.last.is_some_and(|total| self.end >= total);
        let confirmed = self.at_end && (!self.short_pages || self.barren_pages > 0);
        let past_end = reached && !self.last_full && !self.short_pages;
        let bound = if reached || self.totals.last.is_none() {
            BARREN_PAGES_PAST_END
        } else {
            BARREN_PAGES
        };
        let stuck = self
            .last_offset
            .is_some_and(|last| self.next_offset() <= last);
        let circles = self.barren_pages >= bound || self.scant_pages >= BARREN_PAGES;
        if confirmed || past_end || stuck || circles || self.proving_left() == 0 {
            self.close();
        } else if self.settings.checkpoints {
            let checkpoint = self.checkpoint();
            if let Some(page) = self.ready.back_mut() {
                page.checkpoint = Some(Box::new(checkpoint));
            }
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
