//! What the counts prove: a page that held the whole list, and totals later than all known rows.

use super::checkpoint::Checkpoint;
use super::page_arrival::Timing;

/// When new rows came, and when the latest total did.
#[derive(Debug, Default)]
pub(super) struct Counting {
    /// The first page had as many rows as its total.
    held_it_all: bool,
    fresh_pages: u64,
    /// The last two responses with new rows, by the order in which they were taken.
    last_fresh: [u64; 2],
    latest: Option<Timing>,
}

impl Counting {
    /// Notes a page of the list.
    pub fn note_page(&mut self, timing: Timing, fresh: u64) {
        if fresh > 0 {
            self.fresh_pages += 1;
            self.note_fresh(timing.taken);
        }
        let later = |latest: Timing| latest.taken_before <= timing.taken_before;
        if timing.total.is_some() && self.latest.is_none_or(later) {
            self.latest = Some(timing);
        }
    }

    /// Notes a response with new rows.
    pub fn note_fresh(&mut self, taken: u64) {
        let [last, _] = self.last_fresh;
        self.last_fresh = [taken, last];
    }

    /// The first page has as many rows as its total, and all are distinct.
    pub fn note_whole_list(&mut self) {
        self.held_it_all = true;
    }

    /// Whether all rows came in one response, which had the whole list.
    pub fn is_in_one_response(&self) -> bool {
        self.held_it_all && self.fresh_pages <= 1
    }

    /// Whether the latest total is from an instant after all `known` rows had come, and is their
    /// number.
    pub fn is_late(&self, known: u64) -> bool {
        let [last, before] = self.last_fresh;
        self.latest.is_some_and(|latest| {
            let fresh = if last == latest.taken { before } else { last };
            let total = latest.total.and_then(|total| u64::try_from(total).ok());
            fresh <= latest.taken_before && total == Some(known)
        })
    }

    pub fn save(&self, checkpoint: &mut Checkpoint) {
        checkpoint.fresh_pages = self.fresh_pages;
        checkpoint.held_it_all = self.held_it_all;
    }

    pub fn resumed(checkpoint: &Checkpoint) -> Self {
        Self {
            held_it_all: checkpoint.held_it_all,
            fresh_pages: checkpoint.fresh_pages,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(taken_before: u64, taken: u64, total: i64) -> Timing {
        Timing {
            taken,
            taken_before,
            total: Some(total),
        }
    }

    #[test]
    fn a_total_counts_if_it_was_requested_after_the_rows_had_come() {
        let mut counting = Counting::default();
        counting.note_page(timing(0, 1, 150), 99);
        assert!(!counting.is_late(99));
        counting.note_page(timing(1, 2, 150), 51);
        // Its own rows and its total are from one instant.
        assert!(counting.is_late(150) && !counting.is_late(149));
    }

    #[test]
    fn a_total_does_not_count_if_it_was_requested_before_rows_came() {
        let mut counting = Counting::default();
        counting.note_page(timing(0, 1, 200), 99);
        counting.note_page(timing(1, 2, 200), 50);
        counting.note_page(timing(1, 3, 200), 51);
        assert!(!counting.is_late(200));
        counting.note_page(timing(3, 4, 200), 0);
        assert!(counting.is_late(200));
    }

    #[test]
    fn one_response_holds_a_list_only_if_no_other_brought_rows() {
        let mut counting = Counting::default();
        counting.note_page(timing(0, 1, 2), 2);
        assert!(!counting.is_in_one_response());
        counting.note_whole_list();
        assert!(counting.is_in_one_response());
        counting.note_page(timing(1, 2, 3), 1);
        assert!(!counting.is_in_one_response());
    }
}
