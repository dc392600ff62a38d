//! Proving the end of a list without its total.
//!
//! A page with fewer rows than the limit it reports may be the last one, or may have been cut
//! short. So the offset right after it is requested, which must return nothing, and then its last
//! rows again. If those are still in the same place, no delete can have pulled unseen rows below
//! the offset that returned nothing.

use super::super::row_order::Shared;
use super::checkpoint::{Checkpoint, End};
use super::page_arrival::PageArrival;
use super::paging::OVERLAP;

// If rows keep moving between the requests, the end is left unproved after this many attempts.
const MOST_ATTEMPTS: u32 = 8;

/// What short pages and refused offsets say of the list's end.
#[derive(Debug, Default)]
pub(super) struct ListEnd {
    end: End,
    attempts: u32,
    /// A page came short before the total,
    short_pages: bool,
    /// and more rows followed.
    short_then_more: bool,
    /// A page had fewer rows than the limit that it reported,
    below_limit: bool,
    /// and new rows followed it.
    below_limit_then_more: bool,
    /// Some offset was refused, so nothing can come from there.
    refused: bool,
    /// An offset below the total that returned nothing, and the status that said so.
    refused_at: Option<(u64, u16)>,
}

impl ListEnd {
    /// Whether the end is open to proof: what follows the last page is to be requested.
    pub fn is_short(&self) -> bool {
        self.end == End::Short
    }

    /// Whether nothing followed, and the last rows are to be requested again.
    pub fn has_nothing_after(&self) -> bool {
        self.end == End::NothingAfter
    }

    /// Whether more rows may follow, so that nothing is being proved.
    pub fn is_open(&self) -> bool {
        self.end == End::Open
    }

    /// Takes a page that was just joined. `end` is where the rows end now, and `end_before` where
    /// they ended before it, if any. `probes` means that it was requested to show that nothing
    /// follows.
    pub fn note_page(
        &mut self,
        page: &PageArrival,
        shared: &Shared,
        end: u64,
        end_before: Option<u64>,
        probes: bool,
    ) {
        let total = page.total();
        if page.is_past_end() {
            self.end = match self.end {
                End::Short if probes => End::NothingAfter,
                // The rows whose place is to be confirmed are unavailable.
                End::NothingAfter => End::Open,
                end => end,
            };
            return;
        }
        let in_order = shared.behind == 0 && shared.inversions == 0 && !page.strayed;
        let short = in_order && page.is_shorter_than_it_says();
        self.end = match self.end {
            _ if !short => End::Open,
            _ if total == Some(end) && shared.links() => End::AtTotal,
            End::NothingAfter if shared.links() && Some(end) == end_before => End::Proved { total },
            // Rows inserted before them push the last rows past the end, perhaps a single one.
            End::Short | End::NothingAfter => End::Short,
            _ if total == Some(end) => End::Open,
            _ if shared.links() || end_before.is_none() => End::Short,
            _ => End::Open,
        };
        self.attempts += u32::from(self.end == End::Short);
    }

    /// The offset of the next page while the end of the list, at `end`, is being proved.
    pub fn next_offset(&self, end: u64) -> Option<u64> {
        if self.below_limit_then_more || self.attempts > MOST_ATTEMPTS {
            return None;
        }
        match self.end {
            End::Short => Some(end),
            End::NothingAfter => Some(end.saturating_sub(OVERLAP)),
            End::Open | End::AtTotal | End::Proved { .. } => None,
        }
    }

    /// Whether the end is proved without the total.
    pub fn is_proved(&self) -> bool {
        matches!(self.end, End::Proved { .. }) && !self.below_limit_then_more
    }

    /// Whether a total came with the page that proved the end; if so, it differs from it.
    pub fn has_other_total(&self) -> bool {
        matches!(self.end, End::Proved { total: Some(_) })
    }

    /// Whether a linked page ended at its total, and short pages mean the end.
    pub fn is_at_total(&self) -> bool {
        self.end == End::AtTotal && !self.below_limit_then_more
    }

    /// Notes a page that came short, although the total promises more.
    pub fn note_short_page(&mut self) {
        self.short_pages = true;
    }

    /// Notes new rows, or rows that may be.
    pub fn note_more(&mut self) {
        self.short_then_more |= self.short_pages;
    }

    /// Notes a page of the sweep, and whether it had new rows.
    pub fn note_below_limit(&mut self, below_limit: bool, fresh: bool) {
        self.below_limit_then_more |= self.below_limit && fresh;
        self.below_limit |= below_limit;
    }

    /// A page below its limit was not the last one.
    pub fn note_more_after_below_limit(&mut self) {
        self.below_limit_then_more = true;
    }

    pub fn had_short_pages(&self) -> bool {
        self.short_pages
    }

    pub fn had_more_after_short_page(&self) -> bool {
        self.short_then_more
    }

    pub fn had_more_below_limit(&self) -> bool {
        self.below_limit_then_more
    }

    /// Notes that an offset was refused.
    pub fn note_refusal(&mut self) {
        self.refused = true;
    }

    pub fn was_refused(&self) -> bool {
        self.refused
    }

    /// An offset was refused that should have had rows.
    pub fn note_refusal_below_total(&mut self, offset: u64, status: u16) {
        self.refused_at = Some((offset, status));
    }

    pub fn refused_below_total(&self) -> Option<(u64, u16)> {
        self.refused_at
    }

    pub fn save(&self, checkpoint: &mut Checkpoint) {
        checkpoint.list_end = self.end;
        checkpoint.short_pages = self.short_pages;
        checkpoint.short_then_more = self.short_then_more;
        checkpoint.below_limit = self.below_limit;
        checkpoint.below_limit_then_more = self.below_limit_then_more;
        checkpoint.refused_at = self.refused_at;
    }

    pub fn resumed(checkpoint: &Checkpoint) -> Self {
        Self {
            end: checkpoint.list_end,
            short_pages: checkpoint.short_pages,
            short_then_more: checkpoint.short_then_more,
            below_limit: checkpoint.below_limit,
            below_limit_then_more: checkpoint.below_limit_then_more,
            refused_at: checkpoint.refused_at,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::sweep::testing::{past_end, rows};

    fn linked() -> Shared {
        Shared {
            unchanged: 3,
            ..Shared::default()
        }
    }

    /// A list whose last page came short at offset 150, where its total does not end it.
    fn short() -> ListEnd {
        let mut end = ListEnd::default();
        end.note_page(&rows(96, 54, 400), &linked(), 150, Some(99), false);
        assert_eq!((end.end, end.next_offset(150)), (End::Short, Some(150)));
        end
    }

    /// The same list once the offset behind that page was empty.
    fn short_then_empty() -> ListEnd {
        let mut end = short();
        let nothing = Shared::default();
        end.note_page(&past_end(150, 400), &nothing, 150, Some(150), true);
        end
    }

    #[test]
    fn an_empty_offset_and_the_last_rows_in_place_prove_the_end() {
        let mut end = short_then_empty();
        assert_eq!(end.next_offset(150), Some(147));
        end.note_page(&rows(147, 3, 400), &linked(), 150, Some(150), false);
        assert!(end.is_proved() && end.has_other_total());
        assert_eq!(end.next_offset(150), None);
    }

    #[test]
    fn rows_that_moved_between_the_two_requests_start_the_proof_again() {
        let mut end = short_then_empty();
        end.note_page(&rows(147, 4, 400), &linked(), 151, Some(150), false);
        assert_eq!((end.end, end.next_offset(151)), (End::Short, Some(151)));
    }

    #[test]
    fn a_linked_page_that_ends_at_its_total_needs_no_proof() {
        let mut end = ListEnd::default();
        end.note_page(&rows(96, 54, 150), &linked(), 150, Some(99), false);
        assert!(end.is_at_total());
        assert_eq!(end.next_offset(150), None);
    }

    #[test]
    fn where_short_pages_have_rows_behind_them_nothing_is_proved() {
        let mut end = short();
        end.note_below_limit(true, true);
        assert!(!end.had_more_below_limit());
        end.note_below_limit(false, true);
        assert!(end.had_more_below_limit());
        assert_eq!(end.next_offset(150), None);
    }

    #[test]
    fn an_end_that_keeps_moving_is_left_unproved() {
        let mut end = ListEnd::default();
        for _ in 0..=MOST_ATTEMPTS {
            end.note_page(&rows(96, 54, 400), &linked(), 150, Some(99), false);
        }
        assert_eq!(end.next_offset(150), None);
    }
}
