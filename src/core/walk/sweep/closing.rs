//! After the sweep: requests for whatever is still in doubt, within the proving budget.

use super::super::row_order::content_of_text;
use super::page_arrival::{PageArrival, WalkRequest};
use super::{PROVING_REQUESTS, PROVING_REQUESTS_A_PAGE, Stage, Sweep};
use crate::core::api::{Limit, List};

// After this many refused proving requests, no more are sent.
const MOST_UNANSWERED: u64 = 3;
// After this many passes that find nothing, the missing rows are given up.
const FRUITLESS_PASSES: u64 = 3;
// A pass is the last one if it finds less than this part of the missing rows, and less than one row
// per request.
const LITTLE: u64 = 4;
// The most passes over a list whose order changes.
const MOST_PASSES: u64 = 8;

/// Another pass over the list, with different page boundaries.
#[derive(Debug)]
pub(super) struct Again {
    offset: u64,
    size: u64,
    /// The number of missing rows before it.
    short: Option<u64>,
    requests: u64,
    found: u64,
}

impl Sweep {
    /// Requests that proving may still use.
    pub(super) fn proving_left(&self) -> u64 {
        let bound = PROVING_REQUESTS + PROVING_REQUESTS_A_PAGE * self.plain_pages;
        let spent = self.answers.saturating_sub(self.plain_pages + 1);
        bound.saturating_sub(spent)
    }

    /// Moves on to what is in doubt, or ends the walk.
    pub(super) fn close(&mut self) {
        self.stage = self.next_stage();
        self.count_proof();
        if self.is_over() {
            self.certify();
        }
    }

    pub(super) fn next_stage(&mut self) -> Stage {
        let held = self.report.distinct;
        let short = self.totals.short(held);
        if self.unanswered >= MOST_UNANSWERED {
            return Stage::Over;
        }
        if self.cut || self.unnamed_rows > 0 || self.proving_left() == 0 || self.is_snapshot() {
            return Stage::Over;
        }
        if self.is_counted() {
            return Stage::Over;
        }
        if !self.vanished.is_empty() {
            return Stage::Looking;
        }
        // Rows added in front meanwhile need not be read (the total's growth explains them), but a
        // row that moved there was never read.
        let unexplained = short.is_none_or(|short| short > self.totals.grown());
        if self.shifted && !self.front_read && unexplained {
            self.front_read = true;
            return Stage::Front { offset: 0 };
        }
        let passes_help = self.is_worth_another_pass(short);
        if self.is_worth_look_ups(short, passes_help) {
            return self.look_up_gaps();
        }
        if passes_help {
            self.report.sweeps += 1;
            return Stage::Again(Again {
                offset: 0,
                size: self.pass_start(),
                short,
                requests: 0,
                found: 0,
            });
        }
        let all_counted = matches!(self.list, List::Messages { .. })
            && !self.recounted
            && self.totals.last == Some(held)
            && !self.doubts().is_empty();
        if all_counted {
            self.recounted = true;
            return Stage::Recount;
        }
        Stage::Over
    }

    /// Whether the order is in doubt, rows may be missing, and the last passes found some.
    fn is_worth_another_pass(&self, short: Option<u64>) -> bool {
        let unstable = self.report.evidence.inversions > 0 || self.links_given_up > 0;
        let unexplained = self.at_end
            && !self.total_disagrees()
            && short.is_some_and(|short| short > self.totals.grown());
        let passes = if unstable {
            MOST_PASSES
        } else {
            FRUITLESS_PASSES
        };
        // Deleted rows still count as held: once the total fell, it does not tell how many are
        // missing.
        let patience = match short.filter(|_| !self.totals.fell) {
            Some(0) => 0,
            Some(_) => FRUITLESS_PASSES,
            None => u64::from(self.report.sweeps < 4),
        };
        let left = self.report.sweeps <= passes && self.fruitless_passes < patience;
        left && !self.passes_bring_little && (unstable || unexplained)
    }

    /// The size of a pass's first page, which shifts all later page boundaries.
    fn pass_start(&self) -> u64 {
        let whole = u64::from(self.settings.page_size.get());
        match self.report.sweeps % 4 {
            1 => whole / 2,
            2 => whole / 4,
            3 => whole / 4 * 3,
            _ => whole / 8,
        }
        .max(1)
    }

    pub(super) fn closing_question(&mut self) -> WalkRequest {
        let whole = self.settings.page_size;
        let page = |offset, size: u64| {
            let asked = i64::try_from(size)
                .ok()
                .and_then(|size| Limit::new("limit", size).ok());
            let limit = asked
                .filter(|limit| limit.get() < whole.get())
                .unwrap_or(whole);
            WalkRequest::Page { offset, limit }
        };
        match &self.stage {
            Stage::Looking => {
                let (id, content) = self.vanished.pop_front().unwrap_or_default();
                self.content_before = content;
                WalkRequest::Row { id }
            }
            Stage::Front { offset } => page(*offset, u64::MAX),
            Stage::Again(again) => page(again.offset, again.size),
            Stage::Gaps(gaps) => WalkRequest::Row { id: gaps.id() },
            Stage::Recount | Stage::Sweeping | Stage::Filling(_) | Stage::Over => {
                page(self.end.saturating_sub(self.shared_rows()), u64::MAX)
            }
        }
    }

    /// Takes the response for a row that was fetched by id.
    pub(super) fn look_up(&mut self, row: Option<&str>) {
        match row {
            None => self.report.evidence.rows_gone += 1,
            Some(json) => {
                self.report.evidence.rows_moved += 1;
                self.untraced_moves += u64::from(content_of_text(json) == self.content_before);
            }
        }
        self.close();
    }

    /// Takes a page that was requested after the sweep.
    pub(super) fn close_with(&mut self, mut arrived: PageArrival) {
        self.settle(&mut arrived, None);
        let shared = self.compare(&arrived);
        self.note_shared(&arrived, &shared);
        let (offset, received) = (arrived.offset, arrived.received());
        let full = received > 0 && received >= arrived.applied;
        let came_again = self.came_again(&arrived);
        let fresh = self.deliver(arrived);
        let held_all = self.totals.last == Some(self.report.distinct);
        match &mut self.stage {
            // A full page of new rows: read the next one too, until known rows appear.
            Stage::Front { offset: next } if full && fresh == received => {
                *next = offset + received;
                if self.proving_left() > 0 {
                    return;
                }
            }
            Stage::Again(again) => {
                again.found += fresh;
                again.requests += 1;
                again.offset = offset + received;
                again.size = u64::MAX;
                self.found_again += fresh;
                let reached = self.totals.last.is_some_and(|total| again.offset >= total);
                let barren = fresh == 0 && offset >= self.end && (reached || came_again);
                let over = received == 0
                    || (held_all && !self.totals.fell)
                    || barren
                    || (reached && !full);
                let (found, requests) = (again.found, again.requests);
                let (before, now) = (again.short, self.totals.short(self.report.distinct));
                if !over && self.proving_left() > 0 {
                    return;
                }
                let told = now.filter(|_| !self.totals.fell);
                let fruitful = match told {
                    Some(now) => before > Some(now),
                    None => found > 0,
                };
                self.fruitless_passes = match fruitful {
                    true => 0,
                    false => self.fruitless_passes + 1,
                };
                // It found few of the missing rows, and few per request.
                let part = before.is_some_and(|before| found * LITTLE < before);
                self.passes_bring_little |= part && found < requests;
            }
            _ => {}
        }
        self.close();
    }
}
