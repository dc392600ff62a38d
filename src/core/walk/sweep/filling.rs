//! A page that shares too few rows with earlier ones: the gap is filled by fetching pages
//! backwards.

use super::super::row_order::{LINK, RowOrder, Shared};
use super::ending::End;
use super::page_arrival::{PageArrival, WalkRequest};
use super::{Stage, Sweep};
use crate::core::api::Limit;

// After this many fills that neither link nor find new rows, the link is given up.
const FRUITLESS_FILLS: u32 = 10;

// A list that makes the walk restart more often than this changes faster than it can be read.
const MOST_BEGINNINGS: u32 = 3;
// Statuses that mean that there is nothing at an offset.
const NOTHING_THERE: [u16; 2] = [404, 416];

/// A page that waits for the pages that link it.
#[derive(Debug)]
pub(super) struct Fill {
    target: PageArrival,
    /// How far before the page, or before the end of the joined ones, the next fill begins.
    step: u64,
    fruitless: u32,
    /// How far the joined pages have reached.
    reached: u64,
    /// The offset of the fill in flight.
    offset: Option<u64>,
    /// Fills that do not link yet: their rows are delivered after those that precede them.
    unlinked: Vec<PageArrival>,
}

impl Fill {
    pub fn request(&self, limit: Limit) -> WalkRequest {
        WalkRequest::Page {
            offset: self.offset.unwrap_or_default(),
            limit,
        }
    }
}

impl Sweep {
    /// Holds a page until it is linked.
    pub(super) fn hold(&mut self, target: PageArrival) {
        // The page before it was short, and here is what follows.
        self.shorter_then_more |= self.looks_behind(&target) && !self.holds_all(&target);
        let fell = match (self.totals.last, target.total()) {
            (Some(before), Some(now)) => before.saturating_sub(now),
            _ => 0,
        };
        let wider = (self.overlap * 2).min(self.last_received / 4);
        self.overlap = self.overlap.max(wider);
        self.clean_links = 0;
        let gap = self.lies_apart(&target);
        self.go_back(Box::new(Fill {
            step: if gap {
                self.link_step()
            } else {
                2 * self.overlap + fell
            },
            target,
            fruitless: 0,
            reached: self.end,
            offset: None,
            unlinked: Vec::new(),
        }));
    }

    /// Whether the joined pages end before a page could share rows with them.
    fn lies_apart(&self, target: &PageArrival) -> bool {
        self.end < target.offset + LINK
    }

    /// Decides where the next fill begins, or gives up the link.
    fn go_back(&mut self, mut fill: Box<Fill>) {
        let base = match self.lies_apart(&fill.target) {
            true => self.end,
            false => fill.target.offset,
        };
        let offset = base.saturating_sub(fill.step);
        // There is nothing before the first row.
        let all_read = fill.offset == Some(0) && offset == 0;
        if all_read || fill.fruitless >= FRUITLESS_FILLS || self.proving_left() == 0 {
            self.give_up_link(*fill);
        } else {
            fill.offset = Some(offset);
            self.stage = Stage::Filling(fill);
        }
    }

    /// Takes a page that was fetched to link the waiting one.
    pub(super) fn fill(&mut self, mut arrived: PageArrival) {
        let Stage::Filling(mut fill) = std::mem::replace(&mut self.stage, Stage::Sweeping) else {
            return;
        };
        self.settle(&mut arrived, None);
        let shared = self.compare(&arrived);
        let distinct_before = self.report.distinct;
        let nothing_shared = !shared.links() && !arrived.is_past_end();
        if arrived.offset == 0 && nothing_shared && self.beginnings < MOST_BEGINNINGS {
            self.begin_anew(*fill, arrived);
            return;
        }
        let linked = shared.links() && !arrived.is_past_end();
        let short = arrived.received() < arrived.applied;
        let mut last_of_list = linked
            && (arrived.ends_the_list()
                || (short && arrived.total().is_none() && !self.shorter_then_more));
        if linked {
            let shown_to = arrived.offset + arrived.received();
            self.join(arrived, shared);
            let ended = self.list_end != End::Open && !self.promises_a_page();
            last_of_list |= ended && !self.shorter_then_more;
            // The list ended before the waiting page: rows from there on may be gone.
            if fill.target.is_past_end() {
                self.end = shown_to;
            }
        } else {
            self.note_shared(&arrived, &shared);
            fill.unlinked.push(arrived);
        }
        // Require more than a little, or a list that grows during filling would be followed
        // forever.
        let reach = self.end.saturating_sub(fill.reached);
        let fresh = self.report.distinct - distinct_before;
        let fruitful = self.is_full(fresh.max(reach));
        fill.reached = fill.reached.max(self.end);
        fill.fruitless = if fruitful { 0 } else { fill.fruitless + 1 };
        self.settle(&mut fill.target, None);
        let shared = self.compare(&fill.target);
        // The list now ends before the waiting page: keep its rows; their place is gone.
        let outlived = last_of_list && (self.lies_apart(&fill.target) || fill.target.is_past_end());
        if outlived || self.adds_nothing(&fill.target) {
            self.deliver_all(fill.unlinked);
            self.deliver(fill.target);
            self.decide();
            return;
        }
        if shared.links() || self.report.evidence.inversions > 0 {
            self.deliver_all(fill.unlinked);
            self.join(fill.target, shared);
            self.decide();
            return;
        }
        fill.step = match self.lies_apart(&fill.target) && linked {
            true => self.link_step(),
            false => fill.step * 2,
        };
        self.go_back(fill);
    }

    /// Nothing read so far is still in place: restart the chain with the page at the list's start.
    fn begin_anew(&mut self, fill: Fill, start: PageArrival) {
        self.beginnings += 1;
        self.row_order = RowOrder::default();
        self.join(start, Shared::default());
        self.deliver_all(fill.unlinked);
        self.deliver(fill.target);
        self.decide();
    }

    fn deliver_all(&mut self, mut pages: Vec<PageArrival>) {
        pages.sort_by_key(|page| page.offset);
        for page in pages {
            self.deliver(page);
        }
    }

    /// Takes the page as it is; what lies in the gap is unknown.
    fn give_up_link(&mut self, fill: Fill) {
        self.stage = Stage::Sweeping;
        self.deliver_all(fill.unlinked);
        let offset = fill.target.offset;
        let promised = self.totals.last.is_some_and(|total| total > offset);
        if let Some(refusal) = fill
            .target
            .refusal
            .as_ref()
            .and_then(|error| error.status())
            && promised
            && self.last_full
        {
            // 404 and 416 mark an end, however wrong the total; a bad request does not.
            if !NOTHING_THERE.contains(&refusal) {
                self.fail(fill.target);
                return;
            }
            self.refused_at = Some((offset, refusal));
        }
        self.report.evidence.missing_links += 1;
        self.links_given_up += 1;
        let shared = self.compare(&fill.target);
        self.join(fill.target, shared);
        self.decide();
    }

    /// Ends the walk with a refusal that the end of the list does not explain.
    fn fail(&mut self, refused: PageArrival) {
        self.failed = refused.refusal;
        self.stage = Stage::Over;
    }
}
