//! Whether a page lies at the requested offset, or was sent instead of an empty one.

use super::super::row_order::Shared;
use super::{PageArrival, Sweep};

impl Sweep {
    /// Whether a page of known rows lies so far back that the list would have to end after its
    /// total.
    pub(super) fn cannot_lie_there(&self, arrived: &PageArrival) -> bool {
        let end = arrived.offset + arrived.received();
        let past_total = arrived.total().is_some_and(|total| end > total);
        arrived.offset > 0 && past_total && self.holds_all(arrived) && self.is_an_edge(arrived)
    }

    /// Whether a one-page list without a total was sent again instead of an empty page.
    pub(super) fn is_a_small_list_again(&self, arrived: &PageArrival) -> bool {
        let whole = arrived.received() > 0 && arrived.received() < arrived.applied;
        let behind = arrived.offset > 0 && arrived.offset >= self.end;
        behind && whole && arrived.total().is_none() && self.is_an_edge(arrived)
    }

    /// Whether the page's rows were a page or more further ahead, though nothing shows that as many
    /// were added since. Services that send their first page for offsets past the end do so after
    /// deletes, too.
    pub(super) fn stood_far_ahead(&self, arrived: &PageArrival, shared: &Shared) -> bool {
        let past_end = match arrived.total() {
            Some(total) => {
                let shrank = self.totals.last.is_some_and(|before| total < before);
                shrank && arrived.offset >= total
            }
            None => self.is_an_edge(arrived),
        };
        let came = self.longest_page + self.totals.grown();
        arrived.offset > 0 && past_end && shared.behind >= came.max(1)
    }

    /// Decides whether a page lies past the end; see [`PageArrival::settle`].
    pub(super) fn settle(&self, arrived: &mut PageArrival, end: Option<u64>) {
        arrived.settle(&self.seen, end, self.is_an_edge(arrived));
    }

    /// Whether a page begins with the list's first row or ends with its last, like the pages that
    /// some services send for offsets past the end.
    pub(super) fn is_an_edge(&self, arrived: &PageArrival) -> bool {
        let first = arrived.rows.first().and_then(|row| row.id);
        first.is_none() || first == self.first_row || self.ends_with_the_last_row(arrived)
    }

    /// Whether a page ends with the last row that was read of the list.
    pub(super) fn ends_with_the_last_row(&self, arrived: &PageArrival) -> bool {
        let last = arrived.rows.last().and_then(|row| row.id);
        last.is_none() || last == self.row_order.before_end(1)
    }

    /// Whether a page begins with the row that was at its offset before.
    pub(super) fn continues_the_order(&self, arrived: &PageArrival) -> bool {
        let overlapped = self.end.saturating_sub(arrived.offset);
        let first = arrived.rows.first().and_then(|row| row.id);
        overlapped > 0 && first.is_some() && self.row_order.before_end(overlapped) == first
    }
}
