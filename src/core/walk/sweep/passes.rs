//! Passes over a list whose order changes, with other page boundaries each time.

use crate::walk::sweep::page_arrival::PageArrival;

// After this many refused proving requests, no more are sent.
const MOST_REFUSALS: u64 = 3;
// After this many passes that find nothing, the missing rows are given up.
const FRUITLESS_PASSES: u64 = 3;
// Without a total that tells what is missing, passes that find nothing end by this many sweeps.
const SWEEPS_WITHOUT_TOTAL: u64 = 4;
// A pass is the last one if it finds less than this part of the missing rows, and less than one row
// per request.
const LITTLE: u64 = 4;
// The most passes over a list whose order changes.
const MOST_PASSES: u64 = 8;

/// Another pass over the list.
#[derive(Debug)]
pub(super) struct Pass {
    offset: u64,
    size: u64,
    /// The number of missing rows before it.
    short: Option<u64>,
    requests: u64,
    found: u64,
}

impl Pass {
    /// The pass after `sweeps` sweeps. The size of its first page shifts all later page boundaries.
    pub fn new(sweeps: u64, page_size: u64, short: Option<u64>) -> Self {
        let first = match sweeps % 4 {
            1 => page_size / 2,
            2 => page_size / 4,
            3 => page_size / 4 * 3,
            _ => page_size / 8,
        };
        Self {
            offset: 0,
            size: first.max(1),
            short,
            requests: 0,
            found: 0,
        }
    }

    /// The offset and the size of its next page.
    pub fn page(&self) -> (u64, u64) {
        (self.offset, self.size)
    }

    /// Takes a page, of whose rows `fresh` were not known.
    pub fn take(&mut self, page_end: u64, fresh: u64) {
        self.found += fresh;
        self.requests += 1;
        self.offset = page_end;
        self.size = u64::MAX;
    }
}

/// What the walk tried after its sweep.
#[derive(Debug, Default)]
pub(super) struct Passes {
    /// The list's start was read again, and below, the ids between known ones were looked up.
    pub front_read: bool,
    pub gaps_read: bool,
    /// One more total was requested.
    pub recounted: bool,
    /// Rows that passes found.
    found: u64,
    /// Consecutive passes that found nothing.
    fruitless: u64,
    bring_little: bool,
    /// Proving requests that the service refused.
    refusals: u64,
}

impl Passes {
    pub fn note_refusal(&mut self) {
        self.refusals += 1;
    }

    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    pub fn are_refused(&self) -> bool {
        self.refusals >= MOST_REFUSALS
    }

    pub fn note_found(&mut self, rows: u64) {
        self.found += rows;
    }

    pub fn found(&self) -> u64 {
        self.found
    }

    /// Whether another pass is worth its requests after `sweeps` sweeps. `short` is how many rows
    /// are missing, if that is known.
    pub fn are_worth_another(&self, sweeps: u64, unstable: bool, short: Option<u64>) -> bool {
        let most = if unstable {
            MOST_PASSES
        } else {
            FRUITLESS_PASSES
        };
        let patience = match short {
            Some(0) => 0,
            Some(_) => FRUITLESS_PASSES,
            None => u64::from(sweeps < SWEEPS_WITHOUT_TOTAL),
        };
        sweeps <= most && self.fruitless < patience && !self.bring_little
    }

    /// Ends a pass after which `short` rows are missing, if that is known.
    pub fn end(&mut self, pass: &Pass, short: Option<u64>) {
        let fruitful = match short {
            Some(now) => pass.short > Some(now),
            None => pass.found > 0,
        };
        self.fruitless = if fruitful { 0 } else { self.fruitless + 1 };
        let part = pass
            .short
            .is_some_and(|before| pass.found * LITTLE < before);
        self.bring_little |= part && pass.found < pass.requests;
    }
}

/// Whether a page ends a pass over the list.
#[derive(Debug)]
pub(super) struct PassEnd {
    pub page_end: u64,
    pub empty: bool,
    pub full: bool,
    pub repeated: bool,
    pub past_known_rows: bool,
}

impl PassEnd {
    pub fn of(page: &PageArrival, repeated: bool, end: u64) -> Self {
        let received = page.received();
        Self {
            page_end: page.offset + received,
            empty: received == 0,
            full: received > 0 && received >= page.applied,
            repeated,
            past_known_rows: page.offset >= end,
        }
    }

    /// `holds_all` means that as many rows are known as the total counts, and none was deleted.
    pub fn is_last(&self, fresh: u64, total: Option<u64>, holds_all: bool) -> bool {
        let reached = total.is_some_and(|total| self.page_end >= total);
        let barren = fresh == 0 && self.past_known_rows && (reached || self.repeated);
        self.empty || holds_all || barren || (reached && !self.full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::sweep::testing::rows;

    #[test]
    fn each_pass_has_other_page_boundaries() {
        let sizes = [1, 2, 3, 4].map(|sweeps| Pass::new(sweeps, 99, None).page());
        assert_eq!(sizes, [(0, 49), (0, 24), (0, 72), (0, 12)]);
        assert_eq!(Pass::new(4, 2, None).page(), (0, 1));
        let mut pass = Pass::new(1, 99, None);
        pass.take(49, 3);
        assert_eq!(pass.page(), (49, u64::MAX));
    }

    #[test]
    fn passes_go_on_while_they_find_missing_rows() {
        let mut passes = Passes::default();
        let mut short = 100;
        for sweeps in 1..=MOST_PASSES {
            assert!(passes.are_worth_another(sweeps, true, Some(short)));
            let mut pass = Pass::new(sweeps, 99, Some(short));
            pass.take(99, short / 2);
            short -= short / 2;
            passes.end(&pass, Some(short));
        }
        assert!(!passes.are_worth_another(MOST_PASSES + 1, true, Some(short)));
        assert!(!passes.are_worth_another(1, true, Some(0)));
        assert!(!passes.are_worth_another(FRUITLESS_PASSES + 1, false, Some(short)));
    }

    #[test]
    fn passes_end_once_they_find_nothing_or_little() {
        for (short, found, most) in [
            (Some(100), 0, 1),
            (None, 0, 1),
            (Some(2), 0, 1),
            (None, 1, 9),
        ] {
            let mut passes = Passes::default();
            let mut ended = 0;
            while passes.are_worth_another(1, true, short) && ended < 9 {
                let mut pass = Pass::new(1, 99, short);
                pass.take(99, found);
                passes.end(&pass, short);
                ended += 1;
            }
            assert_eq!(ended, most, "{short:?}, {found}");
        }
    }

    #[test]
    fn a_pass_ends_where_the_list_does() {
        let end = |offset, count| PassEnd::of(&rows(offset, count, 150), false, 150);
        assert!(!end(0, 99).is_last(0, Some(150), false));
        assert!(end(99, 51).is_last(0, Some(150), false));
        assert!(end(0, 99).is_last(0, Some(150), true));
        assert!(end(99, 0).is_last(0, None, false));
        assert!(!end(150, 99).is_last(99, None, false));
    }
}
