//! The order of the rows: whether a page fits the ones before it, and whether it lies at the
//! requested offset or was sent instead of an empty one.

use super::super::row_order::{RowOrder, Shared, content};
use super::checkpoint::Checkpoint;
use super::page_arrival::PageArrival;
use crate::decode::page::Row;

// How many rows of the order's end a checkpoint holds.
const SAVED_ROWS: usize = 99;
// A list that makes the order begin again more often than this changes faster than it can be read.
const MOST_BEGINNINGS: u32 = 3;

/// The rows joined so far, in the list's order, and what contradicts it.
#[derive(Debug, Default)]
pub(super) struct Linking {
    order: RowOrder,
    /// The row at offset 0.
    first_row: Option<i64>,
    /// The previous page's rows, by id.
    previous_page: Vec<u64>,
    /// Nothing read was in place any more, so the order began again.
    beginnings: u32,
    /// A page came from an offset other than the requested one.
    strayed: bool,
    /// Rows were inserted before the walk's position.
    shifted: bool,
    /// Pages that could not be linked, though they are long enough for it.
    given_up: u64,
}

impl Linking {
    pub fn compare(&self, page: &PageArrival) -> Shared {
        self.order
            .compare(page.rows_in_place(), page.ends_the_list())
    }

    /// Whether a page links even if its rows were only sent instead of an empty page.
    pub fn links_anyway(&self, page: &PageArrival) -> bool {
        self.order.compare(&page.rows, false).links()
    }

    /// Adds a page's rows to the order.
    pub fn join(&mut self, page: &PageArrival) {
        self.order.join(page.rows_in_place());
    }

    /// From now on, rows with the same id count as unchanged.
    pub fn compare_by_id(&mut self) {
        self.order.compare_by_id();
    }

    pub fn compares_by_id(&self) -> bool {
        self.order.compares_by_id()
    }

    pub fn may_begin_anew(&self) -> bool {
        self.beginnings < MOST_BEGINNINGS
    }

    /// Forgets the order: nothing read so far is still in place.
    pub fn begin_anew(&mut self) {
        self.beginnings += 1;
        self.order = RowOrder::resumed(&[], self.order.compares_by_id());
    }

    /// The hash of a row's text, as it was last joined.
    pub fn content_of(&self, id: i64) -> Option<u64> {
        self.order.content_of(id)
    }

    pub fn note_first_row(&mut self, page: &PageArrival) {
        if page.offset == 0 {
            self.first_row = page.rows.first().and_then(|row| row.id);
        }
    }

    /// Counts a page that could not be linked.
    pub fn give_up(&mut self) {
        self.given_up += 1;
    }

    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    pub fn note_offset(&mut self, page: &PageArrival) {
        self.strayed |= page.strayed;
    }

    pub fn strayed(&self) -> bool {
        self.strayed
    }

    /// Notes a link; more shared rows than the pages overlap by were pushed back.
    pub fn note_link(&mut self, shared: &Shared, overlapped: u64) {
        self.shifted |= shared.unchanged > overlapped;
    }

    pub fn shifted(&self) -> bool {
        self.shifted
    }

    /// Whether a page begins with the list's first row or ends with its last, like the pages that
    /// some services send for offsets past the end.
    pub fn is_an_edge(&self, page: &PageArrival) -> bool {
        let first = page.rows.first().and_then(|row| row.id);
        first.is_none() || first == self.first_row || self.ends_with_the_last_row(page)
    }

    /// Whether a page ends with the last row that was read of the list.
    pub fn ends_with_the_last_row(&self, page: &PageArrival) -> bool {
        let last = page.rows.last().and_then(|row| row.id);
        last.is_none() || last == self.order.before_end(1)
    }

    /// Whether a page begins with the row that was at its offset before. `end` is where the joined
    /// pages end.
    pub fn continues_at(&self, end: u64, page: &PageArrival) -> bool {
        let overlapped = end.saturating_sub(page.offset);
        let first = page.rows.first().and_then(|row| row.id);
        overlapped > 0 && first.is_some() && self.order.before_end(overlapped) == first
    }

    /// Whether a page repeats the previous one, row for row; either may be shorter.
    pub fn repeats_previous_page(&self, page: &PageArrival) -> bool {
        let same = names(page)
            .zip(&self.previous_page)
            .all(|(now, before)| now == *before);
        let compared = !page.rows.is_empty() && !self.previous_page.is_empty();
        // Rows that were not read cannot be compared.
        same && compared && page.was_received()
    }

    /// Whether a page repeats the previous one; unless it is empty, it replaces it.
    pub fn replace_previous_page(&mut self, page: &PageArrival) -> bool {
        if page.rows.is_empty() {
            return false;
        }
        let repeats = self.repeats_previous_page(page);
        self.previous_page = names(page).collect();
        repeats
    }

    pub fn save(&self, checkpoint: &mut Checkpoint) {
        checkpoint.first_row = self.first_row;
        checkpoint.strayed = self.strayed;
        checkpoint.shifted = self.shifted;
        checkpoint.links_given_up = self.given_up;
        checkpoint.chain = self.order.end(SAVED_ROWS);
        checkpoint.by_id = self.order.compares_by_id();
    }

    pub fn resumed(checkpoint: &Checkpoint) -> Self {
        Self {
            order: RowOrder::resumed(&checkpoint.chain, checkpoint.by_id),
            first_row: checkpoint.first_row,
            strayed: checkpoint.strayed,
            shifted: checkpoint.shifted,
            given_up: checkpoint.links_given_up,
            ..Self::default()
        }
    }
}

/// The ids of a page's rows, or the content hash of rows without one.
fn names(page: &PageArrival) -> impl Iterator<Item = u64> {
    let name = |row: &Row| row.id.map_or_else(|| content(row), i64::cast_unsigned);
    page.rows.iter().map(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::sweep::testing::{arrival, page};

    fn joined(ids: &[i64]) -> Linking {
        let mut linking = Linking::default();
        let first = page(0, ids, 100);
        linking.join(&first);
        linking.note_first_row(&first);
        linking.replace_previous_page(&first);
        linking
    }

    #[test]
    fn two_shared_rows_link_a_page_and_one_does_not() {
        let linking = joined(&[1, 2, 3, 4, 5]);
        assert!(linking.compare(&page(3, &[4, 5, 6], 100)).links());
        assert!(!linking.compare(&page(4, &[5, 6, 7], 100)).links());
        let reversed = linking.compare(&page(3, &[5, 4, 6], 100));
        assert_eq!(reversed.inversions, 1);
    }

    #[test]
    fn a_walk_resumed_without_hashes_knows_the_rows_before_it_by_their_ids() {
        let mut checkpoint = Checkpoint::default();
        joined(&[1, 2, 3, 4, 5]).save(&mut checkpoint);
        checkpoint.without_hashes();
        let mut linking = Linking::resumed(&checkpoint);
        assert!(!linking.compares_by_id());
        assert_eq!(linking.content_of(5), None);
        let next = page(3, &[4, 5, 6, 7], 100);
        assert_eq!(linking.compare(&next).unchanged, 2);
        // The rows that it reads itself have their hashes.
        linking.join(&next);
        assert!(linking.content_of(7).is_some());
    }

    #[test]
    fn a_row_has_the_same_content_once_its_page_is_not_recent_any_more() {
        let mut linking = Linking::default();
        let long = "a".repeat(40_000);
        let pages: Vec<PageArrival> = (0..6_u64)
            .map(|number| {
                let rows = [number * 2 + 1, number * 2 + 2];
                let users = rows.map(|id| serde_json::json!({"id": id, "name": long}));
                let body = serde_json::json!({"total": 12, "users": users});
                arrival(number * 2, &body)
            })
            .collect();
        for page in &pages {
            linking.join(page);
            for row in pages.iter().flat_map(|page| &page.rows) {
                let id = row.id.unwrap();
                let joined = id <= i64::try_from(page.end()).unwrap();
                let expected = joined.then(|| content(row));
                assert_eq!(linking.content_of(id), expected, "{id}");
            }
            assert_eq!(linking.compare(page).unchanged, 2);
        }
    }

    #[test]
    fn rows_of_a_long_list_are_found_wherever_they_are() {
        let mut linking = Linking::default();
        let pages: Vec<PageArrival> = (0..8)
            .map(|number| {
                let ids: Vec<i64> = (number * 96 + 1..number * 96 + 100).collect();
                page(ids[0].cast_unsigned() - 1, &ids, 771)
            })
            .collect();
        for page in &pages {
            linking.join(page);
        }
        for page in &pages {
            let shared = linking.compare(page);
            assert_eq!((shared.unchanged, shared.inversions), (99, 0));
            assert!(shared.vanished.is_empty(), "{:?}", shared.vanished);
        }
        let gap = linking.compare(&page(300, &[301, 302, 304, 305], 771));
        assert_eq!(gap.vanished, [303]);
        assert_eq!(gap.behind, 771 - 305);
        let last = linking.compare(&page(768, &[769, 771], 771));
        assert_eq!((last.vanished, last.behind), (vec![770], 0));
        let reversed = linking.compare(&page(600, &[700, 300, 20], 771));
        assert_eq!(reversed.inversions, 2);
    }

    #[test]
    fn a_row_that_a_linked_page_should_show_has_vanished() {
        let shared = joined(&[1, 2, 3, 4, 5]).compare(&page(1, &[2, 4, 5, 6], 100));
        assert_eq!(shared.vanished, [3]);
    }

    #[test]
    fn the_edges_of_a_list_are_its_first_and_its_last_row() {
        let linking = joined(&[1, 2, 3, 4, 5]);
        for (ids, edge) in [(vec![1, 2], true), (vec![4, 5], true), (vec![2, 3], false)] {
            assert_eq!(linking.is_an_edge(&page(7, &ids, 100)), edge, "{ids:?}");
        }
        assert!(linking.continues_at(5, &page(3, &[4, 5], 100)));
        assert!(!linking.continues_at(5, &page(3, &[5], 100)));
    }

    #[test]
    fn a_repeated_page_is_recognised_though_it_is_shorter() {
        let mut linking = joined(&[1, 2, 3]);
        assert!(linking.repeats_previous_page(&page(3, &[1, 2], 100)));
        assert!(!linking.replace_previous_page(&page(3, &[], 100)));
        assert!(!linking.replace_previous_page(&page(3, &[4, 5], 100)));
        assert!(linking.replace_previous_page(&page(3, &[4, 5], 100)));
    }

    #[test]
    fn an_order_that_begins_anew_links_nothing_before_it() {
        let mut linking = joined(&[1, 2, 3]);
        for _ in 0..MOST_BEGINNINGS {
            assert!(linking.may_begin_anew());
            linking.begin_anew();
        }
        assert!(!linking.may_begin_anew());
        assert!(!linking.compare(&page(1, &[2, 3], 100)).links());
    }
}
