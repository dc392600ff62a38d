//! The totals that a list's responses gave, and what they say together.

use serde::{Deserialize, Serialize};

/// What is known of a list's `total`, in the order in which its pages were taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub first: Option<u64>,
    pub last: Option<u64>,
    least: Option<u64>,
    most: Option<u64>,
    /// A response gave none, or one below zero.
    pub missing: bool,
    /// It became smaller: something was deleted, or it lies.
    pub fell: bool,
    /// A page had rows past its own total.
    pub too_small: bool,
    /// All that it fell by, whatever it grew by in between.
    fallen: u64,
    /// All that it grew by, whatever it fell by in between.
    grown: u64,
}

impl Totals {
    /// Takes that of a page whose rows end at `end`; `None` as the end where there were none.
    pub fn take(&mut self, total: Option<i64>, end: Option<u64>) {
        let Some(total) = total.and_then(|total| u64::try_from(total).ok()) else {
            self.missing = true;
            return;
        };
        if let Some(last) = self.last {
            self.fell |= total < last;
            self.fallen = self.fallen.saturating_add(last.saturating_sub(total));
            self.grown = self.grown.saturating_add(total.saturating_sub(last));
        }
        self.first = self.first.or(Some(total));
        self.last = Some(total);
        self.least = Some(self.least.map_or(total, |least| least.min(total)));
        self.most = Some(self.most.map_or(total, |most| most.max(total)));
        self.too_small |= end.is_some_and(|end| end > total);
    }

    /// By how much it grew, which rows that came while the list was read explain.
    pub fn grown(&self) -> u64 {
        self.grown
    }

    /// By how much it fell, which rows that are gone explain.
    pub fn fallen(&self) -> u64 {
        self.fallen
    }

    /// Whether all responses gave the same one.
    pub fn constant(&self) -> bool {
        !self.missing && self.least == self.most
    }

    /// The rows that the last one counts beyond those held.
    pub fn short(&self, held: u64) -> Option<u64> {
        self.last.map(|last| last.saturating_sub(held))
    }
}
