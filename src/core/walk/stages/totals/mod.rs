//! The totals in a list's responses, and what they prove.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::arrived::ArrivedPage;

/// What is known of a list's `total`, in the order in which its pages were taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub last: Option<u64>,
    /// The largest one so far.
    pub greatest: u64,
    /// The sum of all increases, which rows that were added while the list was read explain.
    pub grown: u64,
    /// A response had none, or a negative one.
    pub missing: bool,
    pub vary: bool,
    /// One was smaller than one that came before it was requested: rows were deleted, or it is wrong.
    pub fell: bool,
    /// A page had rows beyond its own total.
    pub too_small: bool,
    /// The total that was requested last.
    #[serde(skip)]
    latest: Option<Latest>,
    /// The last two responses that brought new rows.
    #[serde(skip)]
    fresh: [u64; 2],
    /// The first page, if it had as many rows as its total and each was another.
    #[serde(skip)]
    pub whole: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Latest {
    sent_after: u64,
    number: u64,
    total: u64,
}

impl Totals {
    /// Takes the total of a page.
    pub fn take(&mut self, page: &ArrivedPage) {
        if page.refusal.is_some() {
            return;
        }
        let Some(total) = page.total() else {
            self.missing = true;
            return;
        };
        let last = self.last.unwrap_or(total);
        self.vary |= total != last;
        self.grown = self.grown.saturating_add(total.saturating_sub(last));
        self.fell |= total < page.total_before;
        self.too_small |= !page.rows.is_empty() && page.end() > total;
        self.last = Some(total);
        self.greatest = self.greatest.max(total);
        let latest = Latest {
            sent_after: page.sent_after,
            number: page.number,
            total,
        };
        let later = |before: Latest| before.sent_after <= latest.sent_after;
        if self.latest.is_none_or(later) {
            self.latest = Some(latest);
        }
    }

    /// Notes a response that brought new rows.
    pub fn note_fresh(&mut self, number: u64) {
        let [last, before] = self.fresh;
        self.fresh = match number {
            _ if number > last => [number, last],
            _ if number < last => [last, before.max(number)],
            _ => self.fresh,
        };
    }

    /// Whether one response had the whole list: no other brought rows or another total.
    pub fn prove_snapshot(&self) -> bool {
        self.whole
            .is_some_and(|whole| self.fresh == [whole, 0] || self.fresh == [0, 0])
            && !self.missing
            && !self.vary
    }

    /// Whether the latest total counts all `held` rows: they had come before it was requested, or no
    /// total differed; and none fell. In a list to which rows are only added, the held ones are then all.
    pub fn count(&self, held: u64, found_by_id: u64) -> bool {
        if self.fell || self.too_small || self.missing || self.last != Some(held) {
            return false;
        }
        let [last, before] = self.fresh;
        let late = self.latest.is_some_and(|latest| {
            let fresh = if last == latest.number { before } else { last };
            fresh <= latest.sent_after && latest.total == held
        });
        // No total counted the rows that were found after all pages.
        late || (!self.vary && found_by_id == 0)
    }
}
