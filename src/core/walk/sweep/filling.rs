//! A page that shares too few rows with earlier ones: the gap is filled by fetching pages
//! backwards.

use hashbrown::HashMap;

use super::super::row_order::{LINK, Shared, content};
use super::page_arrival::PageArrival;
use super::request::Fetch;
use super::{Stage, Sweep};
use crate::api::Limit;
use crate::decode::page::Row;

// After this many fills that neither link nor find new rows, the link is given up.
const FRUITLESS_FILLS: u32 = 10;
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
    pub fn fetch(&self, limit: Limit) -> Fetch {
        Fetch::Page {
            offset: self.offset.unwrap_or_default(),
            limit,
        }
    }

    /// The pages that are not joined yet.
    fn pages(&self) -> impl Iterator<Item = &PageArrival> {
        std::iter::once(&self.target).chain(&self.unlinked)
    }

    /// Moves to the fill that begins one step before `base`; false if the fills lead nowhere.
    fn go_back(&mut self, base: u64) -> bool {
        let offset = base.saturating_sub(self.step);
        // There is nothing before the first row.
        let all_read = self.offset == Some(0) && offset == 0;
        if all_read || self.fruitless >= FRUITLESS_FILLS {
            return false;
        }
        self.offset = Some(offset);
        true
    }

    /// Notes how far the joined pages reach now, and whether that took a regular page of new rows.
    fn note(&mut self, reached: u64, fruitful: bool) {
        self.reached = self.reached.max(reached);
        self.fruitless = if fruitful { 0 } else { self.fruitless + 1 };
    }
}

impl Sweep {
    /// Holds a page until it is linked.
    pub(super) fn hold(&mut self, target: PageArrival) {
        // The page before it was short, and here is what follows.
        if self.looks_behind(&target) && !self.delivery.knows_all_of(&target) {
            self.list_end.note_more_after_below_limit();
        }
        let fell = match (self.totals.last, target.total()) {
            (Some(before), Some(now)) => before.saturating_sub(now),
            _ => 0,
        };
        let overlap = self.paging.widen_overlap();
        self.go_back(Box::new(Fill {
            step: if self.paging.lies_apart(&target) {
                self.paging.link_step()
            } else {
                2 * overlap + fell
            },
            target,
            fruitless: 0,
            reached: self.paging.end(),
            offset: None,
            unlinked: Vec::new(),
        }));
    }

    /// Decides where the next fill begins, or gives up the link.
    fn go_back(&mut self, mut fill: Box<Fill>) {
        let base = if self.paging.lies_apart(&fill.target) {
            self.paging.end()
        } else {
            fill.target.offset
        };
        if fill.go_back(base) && self.proving.left() > 0 {
            self.stage = Stage::Filling(fill);
        } else {
            self.give_up_link(*fill);
        }
    }

    /// Takes a page that was fetched to link the waiting one.
    pub(super) fn fill(&mut self, mut page: PageArrival) {
        let Stage::Filling(mut fill) = std::mem::replace(&mut self.stage, Stage::Sweeping) else {
            return;
        };
        self.settle(&mut page, None);
        let mut shared = self.linking.compare(&page);
        if shared.is_respelled() && fill.pages().any(|before| differ(before, &page)) {
            self.linking.compare_by_id();
            shared = self.linking.compare(&page);
        }
        let linked = shared.links() && !page.is_past_end();
        let anew = page.offset == 0 && !shared.links() && !page.is_past_end();
        if anew && self.linking.may_begin_anew() {
            self.begin_anew(*fill, page);
            return;
        }
        let known_before = self.report.distinct;
        let list_ended = self.join_fill(&mut fill, page, shared);
        // Require more than a little, or a list that grows during filling would be followed
        // forever.
        let reach = self.paging.end().saturating_sub(fill.reached);
        let fresh = self.report.distinct - known_before;
        let fruitful = self.paging.is_regular(fresh.max(reach));
        fill.note(self.paging.end(), fruitful);
        self.settle(&mut fill.target, None);
        let shared = self.linking.compare(&fill.target);
        let apart = self.paging.lies_apart(&fill.target);
        // The list now ends before the waiting page: deliver its rows, although their offset no longer exists.
        let outlived = list_ended && (apart || fill.target.is_past_end());
        if outlived || self.adds_nothing(&fill.target) {
            self.deliver_all(fill.unlinked);
            self.deliver(fill.target);
            self.decide();
        } else if shared.links() || self.report.evidence.inversions > 0 {
            self.deliver_all(fill.unlinked);
            self.join(fill.target, shared);
            self.decide();
        } else {
            fill.step = if apart && linked {
                self.paging.link_step()
            } else {
                fill.step * 2
            };
            self.go_back(fill);
        }
    }

    /// Joins a fill if it links, and stores it otherwise; whether it shows the list's end.
    fn join_fill(&mut self, fill: &mut Fill, page: PageArrival, shared: Shared) -> bool {
        if !shared.links() || page.is_past_end() {
            self.note_shared(&page, &shared);
            fill.unlinked.push(page);
            return false;
        }
        let short = page.received() < page.applied && page.total().is_none();
        let last = page.ends_the_list() || (short && !self.list_end.had_more_below_limit());
        let shown_to = page.end();
        self.join(page, shared);
        let ended = !self.list_end.is_open() && !self.promises_a_page();
        // The list ended before the waiting page: rows from there on may be gone.
        if fill.target.is_past_end() {
            self.paging.end_at(shown_to);
        }
        last || (ended && !self.list_end.had_more_below_limit())
    }

    /// Nothing read so far is still in place: begin the order with the page at the list's start.
    fn begin_anew(&mut self, fill: Fill, start: PageArrival) {
        self.linking.begin_anew();
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
        let target = fill.target;
        let promised = self.totals.last.is_some_and(|total| total > target.offset);
        let status = target.refusal.as_ref().and_then(|error| error.status());
        if let Some(status) = status.filter(|_| promised && self.paging.last_full()) {
            // 404 and 416 mark an end, however wrong the total; a bad request does not.
            if !NOTHING_THERE.contains(&status) {
                self.failed = target.refusal;
                self.stage = Stage::Over;
                return;
            }
            self.list_end
                .note_refusal_below_total(target.offset, status);
        }
        self.report.evidence.missing_links += 1;
        self.linking.give_up();
        let shared = self.linking.compare(&target);
        self.join(target, shared);
        self.decide();
    }
}

/// Whether two pages, neither of which fits what was read before, share rows, and too few of them are
/// spelled alike to link. After an edit of all that was read, later pages agree.
fn differ(one: &PageArrival, other: &PageArrival) -> bool {
    let named = |row: &Row| Some((row.id?, content(row)));
    let known: HashMap<i64, u64> = one.rows.iter().filter_map(named).collect();
    let shared: Vec<bool> = other
        .rows
        .iter()
        .filter_map(named)
        .filter_map(|(id, content)| Some(*known.get(&id)? == content))
        .collect();
    let alike = shared.iter().filter(|same| **same).count() as u64;
    alike < LINK && shared.len() as u64 >= alike + LINK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::sweep::testing::rows;

    fn fill(step: u64) -> Fill {
        Fill {
            target: rows(300, 99, 1_000),
            step,
            fruitless: 0,
            reached: 198,
            offset: None,
            unlinked: Vec::new(),
        }
    }

    #[test]
    fn fills_go_back_until_the_first_row() {
        let mut fill = fill(100);
        assert!(fill.go_back(150));
        assert_eq!(fill.offset, Some(50));
        assert!(fill.go_back(50));
        assert_eq!(fill.offset, Some(0));
        assert!(!fill.go_back(0));
    }

    #[test]
    fn fills_that_bring_nothing_end() {
        let mut fill = fill(1);
        (1..FRUITLESS_FILLS).for_each(|_| fill.note(198, false));
        assert!(fill.go_back(150));
        fill.note(250, true);
        (0..FRUITLESS_FILLS).for_each(|_| fill.note(250, false));
        assert!(!fill.go_back(150));
    }
}
