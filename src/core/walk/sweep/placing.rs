//! Whether a page lies at the requested offset, or was sent instead of an empty one.

use super::super::row_order::Shared;
use super::{PageArrival, Sweep};

impl Sweep {
    /// Decides whether a page lies at the requested offset, and compares it with earlier ones.
    pub(super) fn place(&self, page: &mut PageArrival) -> Shared {
        let continues = self.linking.continues_at(self.paging.end(), page)
            || (self.confirms_the_end(page) && self.linking.links_anyway(page));
        if continues {
            page.settle_in_place();
            return self.linking.compare(page);
        }
        // Known rows may be read again; a page that the service sends for offsets past the end
        // comes again unchanged.
        let again = self.linking.is_an_edge(page) || self.linking.repeats_previous_page(page);
        let idle = self.stall.is_idle() && again;
        self.settle(page, idle.then(|| self.paging.end()));
        let shared = self.linking.compare(page);
        let elsewhere = self.cannot_lie_there(page)
            || self.is_a_small_list_again(page)
            || self.was_far_ahead(page, &shared);
        if !elsewhere {
            return shared;
        }
        page.put_past_end();
        self.linking.compare(page)
    }

    /// Decides whether a page lies past the end; see [`PageArrival::settle`].
    pub(super) fn settle(&self, page: &mut PageArrival, end: Option<u64>) {
        page.settle(self.delivery.known(), end, self.linking.is_an_edge(page));
    }

    /// Whether a page of known rows lies so far back that the list would have to end after its
    /// total.
    fn cannot_lie_there(&self, page: &PageArrival) -> bool {
        let past_total = page.total().is_some_and(|total| page.end() > total);
        page.offset > 0
            && past_total
            && self.delivery.knows_all_of(page)
            && self.linking.is_an_edge(page)
    }

    /// Whether a one-page list without a total was sent again instead of an empty page.
    fn is_a_small_list_again(&self, page: &PageArrival) -> bool {
        let whole = page.received() > 0 && page.received() < page.applied;
        let behind = page.offset > 0 && page.offset >= self.paging.end();
        behind && whole && page.total().is_none() && self.linking.is_an_edge(page)
    }

    /// Whether the page's rows were a page or more further ahead, though nothing shows that as many
    /// were added since. Services that send their first page for offsets past the end do so after
    /// deletes, too.
    fn was_far_ahead(&self, page: &PageArrival, shared: &Shared) -> bool {
        let past_end = match page.total() {
            Some(total) => {
                let shrank = self.totals.last.is_some_and(|before| total < before);
                shrank && page.offset >= total
            }
            None => self.linking.is_an_edge(page),
        };
        let came = self.paging.longest_page() + self.totals.grown();
        page.offset > 0 && past_end && shared.behind >= came.max(1)
    }

    /// Whether this page was requested to show that the last rows are still in the same place,
    /// perhaps pushed back by rows inserted before them.
    fn confirms_the_end(&self, page: &PageArrival) -> bool {
        let said = page.said_offset.map(u64::try_from);
        said.is_none_or(|said| said == Ok(page.offset))
            && self.list_end.has_nothing_after()
            && self.next_to_prove_end() == Some(page.offset)
    }
}
