//! Where the joined pages end, and where the next one begins and how long it may be.

use super::super::row_order::LINK;
use super::checkpoint::Checkpoint;
use super::page_arrival::PageArrival;
use crate::api::Limit;

/// If pages have fewer rows, a missing link is not searched for.
pub(super) const LINKABLE: u64 = 8;
/// Rows that a page shares with the one before: two to link them, and one that may be deleted.
pub(super) const OVERLAP: u64 = 3;

// Pages with fewer rows than this can spare only two of them for the overlap.
const SMALL_PAGE: u64 = 30;
// After this many links in a row, a widened overlap becomes narrower again.
const CLEAN_LINKS: u32 = 8;

/// The reach of the pages joined so far.
#[derive(Debug, Default)]
pub(super) struct Paging {
    end: u64,
    /// Where the requested pages end if each comes full.
    planned_end: u64,
    last: Option<LastPage>,
    /// No rows came from the offsets between the end and this one.
    empty_to: Option<u64>,
    longest_page: u64,
    at_end: bool,
    overlap: Overlap,
}

/// The last page that was joined.
#[derive(Debug, Default)]
struct LastPage {
    offset: u64,
    received: u64,
    /// It had few rows because no more than these could be read.
    reduced_to: Option<u64>,
    /// It stands for a row that was not read.
    not_read: bool,
    full: bool,
    /// It ended where its own total said that the list does.
    to_total: bool,
}

/// How many rows long pages share: more after a link failed, fewer after many succeeded.
#[derive(Debug)]
struct Overlap {
    rows: u64,
    clean_links: u32,
}

impl Default for Overlap {
    fn default() -> Self {
        Self {
            rows: OVERLAP,
            clean_links: 0,
        }
    }
}

impl Paging {
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether no page was joined yet.
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Whether the last page ended the list, by its own total.
    pub fn at_end(&self) -> bool {
        self.at_end
    }

    pub fn longest_page(&self) -> u64 {
        self.longest_page
    }

    pub fn last_full(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.full)
    }

    fn last_received(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.received)
    }

    /// Whether the last page had few rows because no more could be read.
    pub fn was_reduced(&self) -> bool {
        self.reduced_to().is_some()
    }

    /// Whether no row before the next page can be shared with it.
    pub fn follows_row_not_read(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.not_read)
    }

    fn reduced_to(&self) -> Option<u64> {
        self.last.as_ref().and_then(|last| last.reduced_to)
    }

    /// How many rows a page is expected to have.
    pub fn usual_page(&self) -> u64 {
        let most = self.reduced_to().unwrap_or(u64::MAX);
        self.longest_page.min(most)
    }

    /// How many rows the next page should share with the last one.
    pub fn shared_rows(&self) -> u64 {
        let reduced = self.was_reduced();
        match self.last_received() {
            0..=LINK => 0,
            // Next to a row that cannot be read, pages of one or two rows would share all their rows.
            received if reduced && received < LINKABLE => 0,
            _ => self.link_step(),
        }
    }

    /// How far before the end of the joined pages a page must begin to link with them.
    pub fn link_step(&self) -> u64 {
        if self.last_received() < SMALL_PAGE {
            LINK
        } else {
            self.overlap.rows
        }
    }

    /// The offset of the next page: a little before the end of the last one if it is to overlap.
    pub fn next_offset(&self, overlapping: bool) -> u64 {
        match &self.last {
            None => 0,
            Some(last) if overlapping => {
                let offset = self.end.saturating_sub(self.shared_rows());
                offset.max(last.offset + 1)
            }
            Some(_) => self.end,
        }
    }

    /// The offset of the page after those in flight, if the total promises rows there. It assumes
    /// pages as long as the last one.
    pub fn offset_ahead(&self, total: Option<u64>) -> Option<u64> {
        let promised = total.is_some_and(|total| self.planned_end < total);
        (promised && self.last_received() >= SMALL_PAGE)
            .then(|| self.planned_end.saturating_sub(self.shared_rows()))
    }

    /// Notes that a page was requested.
    pub fn plan(&mut self, offset: u64, limit: Limit) {
        let limit = u64::from(limit.get());
        let expected = self
            .last
            .as_ref()
            .map_or(limit, |last| last.received.min(limit));
        self.planned_end = offset + expected;
    }

    /// The size of the page after those in flight, if only `room` more rows are wanted; `None` if
    /// those in flight suffice.
    pub fn limit_for(&self, room: Option<u64>, in_flight: u64, size: Limit) -> Option<Limit> {
        let Some(room) = room else {
            return Some(size);
        };
        let shared = self.shared_rows();
        let rest = room.saturating_sub(in_flight * self.last_received().saturating_sub(shared));
        if rest == 0 && in_flight > 0 {
            return None;
        }
        let wanted = if self.is_empty() {
            rest
        } else {
            rest.saturating_add(shared)
        };
        Some(Limit::of(wanted).map_or(size, |wanted| wanted.min(size)))
    }

    /// Extends the reach by a page. `pushed_back` known rows follow its last one.
    pub fn join(&mut self, page: &PageArrival, pushed_back: u64) {
        let received = page.received();
        let total = page.total();
        if self.is_empty() || !page.is_past_end() {
            self.end = page.offset + received + pushed_back;
            self.longest_page = self.longest_page.max(received);
            self.empty_to = None;
            self.last = Some(LastPage {
                offset: page.offset,
                received,
                reduced_to: page.reduced.then_some(page.applied),
                not_read: !page.was_received(),
                full: received >= page.applied,
                to_total: total == Some(page.offset + received),
            });
        }
        self.at_end = if page.is_past_end() {
            // The page before it must have ended the list by its own total, since rows may be
            // deleted.
            let to_total = self.last.as_ref().is_some_and(|last| last.to_total);
            self.at_end || (to_total && total == Some(self.end) && !page.elsewhere)
        } else {
            page.ends_the_list()
        };
        if page.is_past_end() && page.offset <= self.empty_to() {
            // Twice as far each time: a whole block may be omitted.
            let gone_over = page.offset.saturating_sub(self.end);
            self.empty_to = Some(page.offset.saturating_add(1 + gone_over));
        }
    }

    /// The list was shown to end here, before the page that was fetched last.
    pub fn end_at(&mut self, end: u64) {
        self.end = end;
    }

    /// Counts a link to the page before.
    pub fn note_link(&mut self) {
        self.overlap.clean_links += 1;
        if self.overlap.clean_links >= CLEAN_LINKS {
            self.overlap.clean_links = 0;
            self.overlap.rows = (self.overlap.rows / 2).max(OVERLAP);
        }
    }

    /// Widens the overlap after a link failed; returns its new width.
    pub fn widen_overlap(&mut self) -> u64 {
        let wider = (self.overlap.rows * 2).min(self.last_received() / 4);
        self.overlap.rows = self.overlap.rows.max(wider);
        self.overlap.clean_links = 0;
        self.overlap.rows
    }

    /// Up to where it is known that no rows follow the end.
    fn empty_to(&self) -> u64 {
        self.empty_to.unwrap_or(self.end)
    }

    /// The first offset after the empty pages that followed the end, if there were any.
    pub fn after_empty_pages(&self) -> Option<u64> {
        self.empty_to
    }

    /// Whether a page at this offset would show nothing that was not read.
    pub fn is_stuck_at(&self, offset: u64) -> bool {
        self.last.as_ref().is_some_and(|last| offset <= last.offset)
            || self.empty_to.is_some_and(|empty_to| offset < empty_to)
    }

    /// Whether a page begins so far behind the end that it cannot share rows with earlier ones.
    pub fn lies_apart(&self, page: &PageArrival) -> bool {
        self.end < page.offset + LINK
    }

    /// Whether a total promises a page or more after the last row. That is not a slightly stale
    /// total: either rows are omitted, or the service does not serve them.
    pub fn lacks_a_page(&self, total: Option<u64>) -> bool {
        let page = self.longest_page.max(1);
        total.is_some_and(|total| total >= self.end.saturating_add(page))
    }

    /// Whether a page with this many new rows counts as one of the list's regular pages.
    pub fn is_regular(&self, fresh: u64) -> bool {
        fresh > 0 && fresh * 2 >= self.usual_page().saturating_sub(self.shared_rows())
    }

    pub fn save(&self, checkpoint: &mut Checkpoint) {
        if let Some(last) = &self.last {
            checkpoint.last_offset = last.offset;
            checkpoint.last_received = last.received;
            checkpoint.last_full = last.full;
            checkpoint.last_to_total = last.to_total;
        }
        checkpoint.end = self.end;
        checkpoint.longest_page = self.longest_page;
        checkpoint.overlap = self.overlap.rows;
    }

    pub fn resumed(checkpoint: &Checkpoint) -> Self {
        Self {
            end: checkpoint.end,
            planned_end: checkpoint.end,
            last: Some(LastPage {
                offset: checkpoint.last_offset,
                received: checkpoint.last_received,
                reduced_to: None,
                not_read: false,
                full: checkpoint.last_full,
                to_total: checkpoint.last_to_total,
            }),
            longest_page: checkpoint.longest_page,
            overlap: Overlap {
                rows: checkpoint.overlap,
                clean_links: 0,
            },
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::sweep::testing::{past_end, rows};

    fn after(pages: &[(u64, i64)], total: i64) -> Paging {
        let mut paging = Paging::default();
        for (offset, count) in pages {
            paging.join(&rows(*offset, *count, total), 0);
        }
        paging
    }

    #[test]
    fn pages_overlap_by_as_many_rows_as_they_can_spare() {
        assert_eq!(Paging::default().next_offset(true), 0);
        for (received, shared) in [(1, 0), (2, 0), (3, 2), (29, 2), (30, 3), (99, 3)] {
            let paging = after(&[(0, received)], 500);
            let end = received as u64;
            assert_eq!(paging.end(), end);
            assert_eq!(paging.next_offset(true), (end - shared).max(1));
            assert_eq!(paging.next_offset(false), end);
        }
    }

    #[test]
    fn a_failed_link_widens_the_overlap_and_eight_links_narrow_it() {
        let mut paging = after(&[(0, 99)], 500);
        assert_eq!((paging.widen_overlap(), paging.widen_overlap()), (6, 12));
        assert_eq!((paging.widen_overlap(), paging.widen_overlap()), (24, 24));
        for _ in 0..CLEAN_LINKS {
            assert_eq!(paging.shared_rows(), 24);
            paging.note_link();
        }
        assert_eq!(paging.shared_rows(), 12);
    }

    #[test]
    fn pages_are_requested_ahead_only_as_far_as_the_total_promises_rows() {
        let mut paging = after(&[(0, 99)], 250);
        paging.plan(paging.next_offset(true), Limit::LARGEST);
        assert_eq!(paging.offset_ahead(Some(250)), Some(192));
        assert_eq!(paging.offset_ahead(Some(195)), None);
        assert_eq!(paging.offset_ahead(None), None);
        assert_eq!(after(&[(0, 20)], 250).offset_ahead(Some(250)), None);
    }

    #[test]
    fn a_page_is_no_longer_than_the_rows_that_are_wanted() {
        let size = Limit::LARGEST;
        let first = Paging::default();
        assert_eq!(first.limit_for(None, 0, size), Some(size));
        assert_eq!(first.limit_for(Some(20), 0, size), Limit::of(20));
        let paging = after(&[(0, 99)], 500);
        assert_eq!(paging.limit_for(Some(20), 0, size), Limit::of(23));
        assert_eq!(paging.limit_for(Some(100), 1, size), Limit::of(7));
        assert_eq!(paging.limit_for(Some(96), 1, size), None);
    }

    #[test]
    fn the_end_is_where_a_page_ends_at_its_total() {
        assert!(!after(&[(0, 99)], 120).at_end());
        assert!(after(&[(0, 99), (96, 24)], 120).at_end());
        // A full page may have rows behind it until an empty one follows.
        let mut full = after(&[(0, 99)], 99);
        assert!(!full.at_end());
        full.join(&past_end(99, 99), 0);
        assert!(full.at_end());
        assert_eq!(full.end(), 99);
    }

    #[test]
    fn empty_pages_are_skipped_further_each_time() {
        let mut paging = after(&[(0, 99)], 500);
        for (offset, next) in [(99, 100), (100, 102), (102, 106)] {
            paging.join(&past_end(offset, 500), 0);
            assert_eq!(paging.after_empty_pages(), Some(next));
            assert!(paging.is_stuck_at(offset) && !paging.is_stuck_at(next));
        }
        assert!(paging.lacks_a_page(Some(198)) && !paging.lacks_a_page(Some(197)));
    }
}
