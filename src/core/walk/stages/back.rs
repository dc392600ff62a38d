//! Going back: a page does not link, so pages before it are fetched, each from twice as far back.

use hashbrown::HashMap;

use super::arrived::ArrivedPage;
use super::chain::{Chain, LINK, Shared, content};
use super::pass::OVERLAP;
use super::{ListWalk, Stage};
use crate::decode::page::Row;

// Missing links in a row without a new row between them, until the walk goes on without links.
const MOST_MISSING_LINKS: u32 = 10;
// The same where rows seem to be hidden: nothing links over those.
const MOST_WHERE_ROWS_ARE_HIDDEN: u32 = 3;
// Statuses that mean that there is nothing at an offset, whatever the total says.
const NOTHING_THERE: [u16; 2] = [404, 416];

/// A page that does not link, and how far back the walk looks for its link.
#[derive(Debug)]
pub(super) struct Back {
    /// The number of the page.
    target: u64,
    /// How far before the page, or before the end of the joined ones, the next page begins,
    step: u64,
    /// and where.
    pub offset: u64,
    /// A page that was fetched linked.
    pub linked: bool,
}

impl ListWalk {
    /// Begins to look for the link of the page with this number.
    pub(super) fn begin_back(&mut self, target: u64) {
        self.pass.note_missing_link();
        self.stage = Stage::Back(Back {
            target,
            step: 0,
            offset: 0,
            linked: false,
        });
    }

    /// Decides after each page: a step further back, or back to the sweep.
    pub(super) fn decide_back(&mut self) {
        let Stage::Back(back) = &self.stage else {
            return;
        };
        let linked = back.linked || self.pass.proved;
        let target = back.target;
        if !linked && let Some((step, offset)) = self.step_back(back) {
            if let Stage::Back(back) = &mut self.stage {
                (back.step, back.offset) = (step, offset);
            }
            return;
        }
        self.stage = Stage::Sweep;
        if !linked {
            self.give_up_link(target);
        }
    }

    /// The next step and the offset of its page; `None` if going back is not worth it.
    fn step_back(&self, back: &Back) -> Option<(u64, u64)> {
        let target = self.pass.pooled(back.target)?;
        let end = self.pass.end;
        // Rows that are promised and not shown, or that follow such, may be hidden.
        let hidden = if target.rows.is_empty() {
            let total = target.total().or(self.totals.last);
            total.is_some_and(|total| total > target.offset)
        } else {
            target.offset > end
        };
        let most = if hidden {
            MOST_WHERE_ROWS_ARE_HIDDEN
        } else {
            MOST_MISSING_LINKS
        };
        let all_read = back.step > 0 && back.offset <= self.pass.start;
        let worth = self.pass.missing_links <= most
            && self.may_prove()
            && self.length.can_link()
            && self.report.evidence.inversions == 0
            && self.doubts.failed_proofs == 0
            && !all_read;
        if !worth {
            return None;
        }
        // One request reads a whole page however short the step is: the first leaves no gap.
        let length = self.pass.readable(self.length.longest);
        let step = match back.step {
            0 => length.saturating_sub(OVERLAP).max(LINK as u64),
            step => step.saturating_mul(2),
        };
        let offset = target.offset.min(end).saturating_sub(step);
        Some((step, offset.max(self.pass.start)))
    }

    /// Goes on from the page although nothing links it.
    fn give_up_link(&mut self, target: u64) {
        let Some(mut page) = self.pass.take_from_pool(target) else {
            return;
        };
        self.report.evidence.missing_links += 1;
        if page.rows.is_empty() {
            let promised = self.totals.last.is_some_and(|total| total > page.offset);
            let status = page.refusal.as_ref().and_then(|error| error.status());
            if let Some(status) = status.filter(|_| promised) {
                self.doubts.refused_at = Some(page.offset);
                // 404 and 416 mark an end, however wrong the total; a bad request does not.
                if !NOTHING_THERE.contains(&status) {
                    self.failed = page.refusal.take();
                    self.stage = Stage::Over;
                    return;
                }
            }
            self.pass.note_nothing(&page);
            self.deliver(page);
        } else {
            self.pass.chain = Chain::new(self.doubts.by_id);
            if let Some((_, rows)) = self.pass.cut_at.take() {
                self.length.note_cut(rows);
            }
            self.join(page, Shared::default(), false);
        }
        self.join_pool();
    }

    /// Compares rows by their ids alone if pages that were read just now share rows with the one that
    /// does not link, and each spells them differently, as rows with signed addresses do.
    pub(super) fn detect_respelling(&mut self) {
        let Stage::Back(back) = &self.stage else {
            return;
        };
        let Some(target) = self.pass.pooled(back.target).filter(|_| !self.doubts.by_id) else {
            return;
        };
        let new = |page: &&ArrivedPage| !page.waits && page.number != back.target;
        let respelled = self
            .pass
            .pool
            .iter()
            .filter(new)
            .any(|page| differ(target, page));
        if respelled {
            self.doubts.by_id = true;
            self.pass.chain.by_id = true;
        }
    }
}

/// Whether two pages share rows, and all of them are spelled differently.
fn differ(one: &ArrivedPage, other: &ArrivedPage) -> bool {
    let named = |row: &Row| Some((row.id?, content(row)));
    let known: HashMap<i64, u64> = one.rows.iter().filter_map(named).collect();
    let shared = other.rows.iter().filter_map(named);
    let same: Vec<bool> = shared
        .filter_map(|(id, content)| Some(*known.get(&id)? == content))
        .collect();
    same.len() >= LINK && !same.contains(&true)
}
