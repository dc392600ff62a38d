//! Where the list ends: at a page with fewer rows than the limit that was applied, if that links and no
//! such page had rows behind it.
//!
//! 1. If it ends at its own total, that is the end.
//! 2. If its total is smaller, a cached one, it is the end, too, unless it is the first page; nothing is
//!    requested behind it.
//! 3. If there is no total, or it promises a little more, two responses must show that nothing follows:
//!    the last rows again, and the offset behind them.
//!
//! A full page that ends at its total is not the end: the total may be cached, and the next page, of
//! the rows that both share, costs one request.

use super::ListWalk;
use super::arrived::ArrivedPage;
use super::chain::Joined;
use super::pass::OVERLAP;

// The most pages in a row that show few new rows, at the end of a list that grows there with each
// request, or none.
const MOST_FUTILE: u64 = 8;

impl ListWalk {
    /// Decides whether a page that was just joined is the end of the list. The pages before it, unless it
    /// is the `first`, end at `end_before`; it `appended` as many rows.
    pub(super) fn note_end(
        &mut self,
        page: &ArrivedPage,
        joined: Joined,
        end_before: u64,
        first: bool,
        appended: u64,
    ) {
        let pass = &mut self.pass;
        let (length, largest, total) = (&self.length, self.length.largest(), page.total());
        let short = page.is_short(largest) && !page.rows.is_empty();
        let past_total = total.is_none_or(|total| total <= pass.end);
        let dribbles = short && appended <= OVERLAP && past_total;
        pass.dribbles = if dribbles { pass.dribbles + 1 } else { 0 };
        let limit_is_known = page.applied(largest).is_some();
        let sure = short && limit_is_known && joined.behind == 0 && !length.is_cut_short();
        let nothing_new = appended == 0 && !first;
        let again = pass.confirmed && page.offset >= end_before;
        pass.confirmed = pass.chained && nothing_new && sure;
        let ends = match total {
            Some(total) if total == pass.end => {
                page.is_short(largest) && (nothing_new || !length.is_cut_short())
            }
            Some(total) if total < pass.end => sure && !first,
            total => again && pass.confirmed && !length.promises_a_page(total, pass.end),
        };
        pass.ended = ends;
        if ends && pass.chained {
            pass.proved = true;
            pass.at_total = total == Some(pass.end);
        }
        let open = short && !(ends && pass.chained);
        pass.cut_at = open.then_some((joined.rank, page.received()));
    }

    /// Takes a page that shows nothing behind the end.
    pub(super) fn look_behind(&mut self, page: &ArrivedPage) {
        if page.offset != self.next_offset() {
            return;
        }
        // A stale total may promise a few rows more; if it promises a page, the service hides rows.
        let total = page.total().or(self.totals.last);
        let promised = self.length.promises_a_page(total, self.pass.end);
        // Some services send their first or their last page instead of an empty one.
        let largest = self.length.largest();
        let short = page.is_short(largest) && page.applied(largest).is_some();
        let nothing = page.rows.is_empty() || page.states_another_offset() || short;
        if page.refusal.is_some() && total.is_some_and(|total| total > page.offset) {
            self.doubts.refused_at = Some(page.offset);
        }
        let pass = &mut self.pass;
        let before = pass.last.and_then(|last| last.total);
        if before.is_some_and(|before| total.is_some_and(|total| total < before)) {
            // Rows were deleted, so unread ones may have moved below this offset.
            pass.confirmed = false;
            pass.barren = 0;
        }
        pass.proved |= pass.confirmed && pass.barren == 1 && nothing && !promised;
        pass.note_nothing(page);
    }

    /// Whether nothing is left to request, whatever that proves.
    pub(super) fn is_swept(&self) -> bool {
        let pass = &self.pass;
        if pass.proved || self.left() == 0 || self.doubts.failed_proofs > 0 {
            return true;
        }
        let Some(last) = &pass.last else {
            return pass.barren > 0;
        };
        // Rows that moved unread are often found at the start.
        let complete = match self.missing() {
            Some(missing) if !self.total_tells_nothing() => missing == 0,
            _ => pass.found_last == 0,
        };
        let complete = self.report.sweeps > 1 && self.linked_once && complete;
        let complete = complete || (self.report.sweeps > 1 && self.are_all_counted());
        let offset = self.next_offset();
        let refused = pass.refused_at.is_some_and(|refused| offset >= refused);
        let past_total = last.total.is_some_and(|total| total <= pass.end);
        let barren = pass.barren >= if past_total { 1 } else { 2 };
        let nothing_left = barren && self.totals.last.is_none_or(|total| offset >= total);
        complete
            || refused
            || pass.ended
            || nothing_left
            || pass.dribbles >= MOST_FUTILE
            || pass.barren >= MOST_FUTILE
            || pass.until.is_some_and(|until| pass.end >= until)
    }
}
