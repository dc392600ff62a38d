//! Whether a walk still gets anywhere, or goes in circles.

// After this many consecutive pages without new rows, the walk assumes that the list is going in
// circles.
const BARREN_PAGES: u32 = 10;
// The same past the total,
const BARREN_PAGES_PAST_TOTAL: u32 = 1;
// and without a total: of two such pages, the second begins after all known rows.
const BARREN_PAGES_WITHOUT_TOTAL: u32 = 2;
// A page with fewer new rows than this part of the longest page is scant.
const SCANT: u64 = 8;

/// What a joined page brought.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gain {
    /// Rows that were not known,
    pub fresh: u64,
    /// and whether any row has no id, so that it cannot be known.
    pub unnamed: bool,
    pub past_end: bool,
    /// It repeats the page before it.
    pub repeated: bool,
    /// It shows that the list goes on: among rows that were read, or further on.
    pub goes_on: bool,
    /// It ends before the rows that were read.
    pub rereads: bool,
    /// How much further the walk came.
    pub advance: u64,
    /// The rows of a regular page.
    pub usual: u64,
}

impl Gain {
    pub fn is_new(&self) -> bool {
        (self.fresh > 0 && !self.past_end) || (self.unnamed && !self.repeated)
    }

    fn is_scant(&self) -> bool {
        let advances = self.advance * SCANT >= self.usual || self.rereads;
        let follows = self.unnamed || (self.goes_on && advances);
        !follows && self.fresh * SCANT < self.usual
    }
}

/// Consecutive pages that brought nothing, or little.
#[derive(Debug, Default)]
pub(super) struct Stall {
    barren: u32,
    scant: u32,
    last_idle: bool,
}

impl Stall {
    pub fn note(&mut self, gain: &Gain) {
        self.last_idle = gain.past_end || gain.repeated;
        self.barren = if gain.is_new() || gain.goes_on {
            0
        } else {
            self.barren + 1
        };
        self.scant = if gain.is_scant() { self.scant + 1 } else { 0 };
    }

    /// Whether the last page brought nothing.
    pub fn is_barren(&self) -> bool {
        self.barren > 0
    }

    /// Whether more than one page brought nothing, and the last was empty, refused or a repeat.
    pub fn is_idle(&self) -> bool {
        self.barren > 1 && self.last_idle
    }

    /// Whether reading on is futile: too many pages brought little.
    pub fn is_over(&self, has_total: bool, reached_total: bool) -> bool {
        let most = if !has_total && self.last_idle {
            BARREN_PAGES_WITHOUT_TOTAL
        } else if reached_total {
            BARREN_PAGES_PAST_TOTAL
        } else {
            BARREN_PAGES
        };
        self.barren >= most || self.scant >= BARREN_PAGES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_without_new_rows_end_a_walk_sooner_past_the_total() {
        let empty = Gain {
            past_end: true,
            usual: 99,
            ..Gain::default()
        };
        for (has_total, reached, most) in [(true, false, 10), (true, true, 1), (false, false, 2)] {
            let mut stall = Stall::default();
            for page in 1..=most {
                assert!(!stall.is_over(has_total, reached), "page {page} of {most}");
                stall.note(&empty);
            }
            assert!(stall.is_over(has_total, reached));
        }
    }

    #[test]
    fn new_rows_and_progress_among_known_rows_are_no_stall() {
        let new = Gain {
            fresh: 99,
            usual: 99,
            ..Gain::default()
        };
        let known = Gain {
            goes_on: true,
            rereads: true,
            usual: 99,
            ..Gain::default()
        };
        for gain in [new, known] {
            let mut stall = Stall::default();
            (0..100).for_each(|_| stall.note(&gain));
            assert!(!stall.is_barren() && !stall.is_over(true, true));
        }
    }

    #[test]
    fn a_list_that_gives_a_row_or_two_per_page_is_given_up() {
        let mut stall = Stall::default();
        let scant = Gain {
            fresh: 2,
            usual: 99,
            ..Gain::default()
        };
        (0..BARREN_PAGES).for_each(|_| stall.note(&scant));
        assert!(!stall.is_barren() && stall.is_over(true, false));
    }
}
