//! Proving the end of a list without its total.
//!
//! A page with fewer rows than the limit it reports may be the last one, or may have been cut
//! short. So the offset right after it is requested, which must return nothing, and then its last
//! rows again. If those are still in the same place, no delete can have pulled unseen rows below
//! the offset that returned nothing.

use serde::{Deserialize, Serialize};

use super::super::row_order::{LINK, Shared};
use super::{OVERLAP, PageArrival, Sweep};

// If rows keep moving between the requests, the end is left unproved after this many attempts.
const MOST_ATTEMPTS: u32 = 8;

/// What is known of the end of the last page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    /// More rows may follow.
    #[default]
    Open,
    /// The page is shorter than the limit it reports, and its total differs or is missing.
    Short,
    /// The same, and the offset after it returned nothing.
    NothingBehind,
    /// The page is shorter than the limit it reports, linked, and ends at its total.
    AtTotal,
    /// The offset after it returned nothing, and its last rows are still in the same place.
    Proved { total: Option<u64> },
}

impl Sweep {
    /// Takes a page that was just joined; `end_before` is where the rows ended before it, if any.
    pub(super) fn note_end(
        &mut self,
        arrived: &PageArrival,
        shared: &Shared,
        end_before: Option<u64>,
    ) {
        if arrived.is_past_end() {
            self.list_end = match self.list_end {
                End::Short if self.looks_behind(arrived) => End::NothingBehind,
                // The rows whose place is to be confirmed are unavailable.
                End::NothingBehind => End::Open,
                end => end,
            };
            return;
        }
        let total = arrived.total();
        let in_order = shared.behind == 0 && shared.inversions == 0 && !arrived.strayed;
        let short = in_order && arrived.is_shorter_than_it_says();
        self.list_end = match self.list_end {
            _ if !short => End::Open,
            _ if total == Some(self.end) && shared.links() => End::AtTotal,
            End::NothingBehind if shared.links() && Some(self.end) == end_before => {
                End::Proved { total }
            }
            // Rows inserted before them push the last rows past the end, perhaps a single one.
            End::Short | End::NothingBehind => End::Short,
            _ if total == Some(self.end) => End::Open,
            _ if shared.links() || end_before.is_none() => End::Short,
            _ => End::Open,
        };
        self.end_attempts += u32::from(self.list_end == End::Short);
    }

    /// The offset of the next page while the end of the list is being proved.
    pub(super) fn next_to_prove_end(&self) -> Option<u64> {
        let linkable = self.longest_page > LINK && self.unnamed_rows == 0;
        let linkable = linkable && self.report.evidence.inversions == 0 && !self.promises_a_page();
        if !linkable || self.shorter_then_more || self.end_attempts > MOST_ATTEMPTS {
            return None;
        }
        match self.list_end {
            End::Short => Some(self.end),
            End::NothingBehind => Some(self.end.saturating_sub(OVERLAP)),
            End::Open | End::AtTotal | End::Proved { .. } => None,
        }
    }

    /// Whether this page was requested to show that nothing follows.
    pub(super) fn looks_behind(&self, arrived: &PageArrival) -> bool {
        self.list_end == End::Short && self.next_to_prove_end() == Some(arrived.offset)
    }

    /// Whether this page was requested to show that the last rows are still in the same place, and
    /// shows them, perhaps pushed back by rows inserted before them.
    pub(super) fn confirms_the_end(&self, arrived: &PageArrival) -> bool {
        let said = arrived.said_offset.map(u64::try_from);
        said.is_none_or(|said| said == Ok(arrived.offset))
            && self.list_end == End::NothingBehind
            && self.next_to_prove_end() == Some(arrived.offset)
            && self.row_order.compare(&arrived.rows, false).links()
    }

    /// Whether the last page ends the list, whatever the totals of other pages say.
    pub(super) fn ends_linked(&self) -> bool {
        self.end_is_proved() || (self.list_end == End::AtTotal && !self.shorter_then_more)
    }

    /// Whether the end is proved without the total.
    pub(super) fn end_is_proved(&self) -> bool {
        let proved = matches!(self.list_end, End::Proved { .. });
        proved && !self.shorter_then_more && !self.promises_a_page()
    }

    /// Whether the total promises a page or more after the last row. That is not a slightly stale
    /// total: either rows are omitted, or the service does not serve them.
    pub(super) fn promises_a_page(&self) -> bool {
        let page = self.longest_page.max(1);
        self.totals
            .last
            .is_some_and(|total| total >= self.end.saturating_add(page))
    }

    /// Whether the end is proved, but the total disagrees.
    pub(super) fn total_disagrees(&self) -> bool {
        let told = matches!(self.list_end, End::Proved { total: Some(_) });
        told && self.end_is_proved()
    }
}
