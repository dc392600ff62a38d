//! A page that shares too little with the ones before: what lies between is fetched, going back.

use super::super::chain::LINK;
use super::arrived::{Arrived, Question};
use super::{Stage, Sweep};

// Fills that neither link nor bring anything, after which the link is given up.
const FRUITLESS_FILLS: u32 = 10;

/// A page that waits for those that link it.
#[derive(Debug)]
pub(super) struct Fill {
    target: Arrived,
    /// How far before the page, or before the end of those joined, the next fill begins.
    step: u64,
    fruitless: u32,
    last_offset: Option<u64>,
}

impl Sweep {
    /// Keeps a page back until it is linked.
    pub(super) fn hold(&mut self, target: Arrived) {
        let fell = match (self.totals.last, target.total()) {
            (Some(before), Some(now)) => before.saturating_sub(now),
            _ => 0,
        };
        let wider = (self.overlap * 2).min(self.last_received / 4);
        self.overlap = self.overlap.max(wider);
        self.clean_links = 0;
        let gap = self.lies_apart(&target);
        self.stage = Stage::Filling(Box::new(Fill {
            step: if gap {
                self.overlap
            } else {
                2 * self.overlap + fell
            },
            target,
            fruitless: 0,
            last_offset: None,
        }));
    }

    /// Whether the pages joined so far end before a page could share rows with them.
    fn lies_apart(&self, target: &Arrived) -> bool {
        self.end < target.offset + LINK
    }

    pub(super) fn fill_question(&mut self) -> Option<Question> {
        let Stage::Filling(fill) = &self.stage else {
            return None;
        };
        let base = match self.lies_apart(&fill.target) {
            true => self.end,
            false => fill.target.offset,
        };
        let offset = base.saturating_sub(fill.step);
        let spent = fill.fruitless >= FRUITLESS_FILLS || self.proving_left() == 0;
        // Nothing lies before the first row.
        if spent || fill.last_offset == Some(0) && offset == 0 {
            self.give_up_link();
            return None;
        }
        if let Stage::Filling(fill) = &mut self.stage {
            fill.last_offset = Some(offset);
        }
        self.report.evidence.proving_requests += 1;
        Some(Question::Page {
            offset,
            limit: self.settings.page_size,
        })
    }

    /// Takes a page that was fetched to link the one that waits.
    pub(super) fn fill(&mut self, mut arrived: Arrived) {
        let Stage::Filling(mut fill) = std::mem::replace(&mut self.stage, Stage::Sweeping) else {
            return;
        };
        arrived.settle(&self.seen, None);
        let shared = self.compare(&arrived);
        let (end_before, distinct_before) = (self.end, self.report.distinct);
        let linked = shared.links() && !arrived.is_past_end();
        let last_of_list = linked && arrived.received() < arrived.applied;
        if linked {
            self.join(arrived, shared);
        } else {
            self.note_shared(&arrived, &shared);
            self.deliver(arrived);
        }
        let fresh = self.report.distinct - distinct_before;
        let fruitful = self.end > end_before || fresh > 0;
        if fruitful {
            fill.fruitless = 0;
        } else {
            fill.fruitless += 1;
        }
        // What a short page left out, a plain loop would have read too.
        if self.is_full(fresh) {
            self.report.evidence.proving_requests -= 1;
            self.plain_pages += 1;
        }
        let reached = self
            .totals
            .last
            .is_some_and(|total| total > fill.target.offset);
        if linked && reached && fill.target.refusal.is_some() {
            self.fail(fill.target);
            return;
        }
        fill.target.settle(&self.seen, None);
        let shared = self.compare(&fill.target);
        // The list ends before the page that waits, by now: its rows are kept, its place is gone.
        let outlived = last_of_list && self.lies_apart(&fill.target);
        if outlived || self.adds_nothing(&fill.target) {
            self.deliver(fill.target);
            self.decide();
            return;
        }
        if shared.links() || self.report.evidence.inversions > 0 {
            let full = self.join(fill.target, shared);
            self.count_page(full);
            self.decide();
            return;
        }
        fill.step = match self.lies_apart(&fill.target) && fruitful {
            true => self.overlap,
            false => fill.step * 2,
        };
        self.stage = Stage::Filling(fill);
    }

    /// The page is taken as it is; what lay between is not known.
    fn give_up_link(&mut self) {
        if let Stage::Filling(fill) = std::mem::replace(&mut self.stage, Stage::Sweeping) {
            if fill.target.refusal.is_some() {
                self.fail(fill.target);
                return;
            }
            self.report.evidence.missing_links += 1;
            self.links_given_up += 1;
            let shared = self.compare(&fill.target);
            let full = self.join(fill.target, shared);
            self.count_page(full);
            self.decide();
            self.join_arrived();
        }
    }

    /// Ends the walk with a refusal that is not to be explained by the list's end.
    pub(super) fn fail(&mut self, refused: Arrived) {
        self.failed = refused.refusal;
        self.stage = Stage::Over;
    }
}
