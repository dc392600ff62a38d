//! The totals in a list's responses, and what follows from them.

use serde::{Deserialize, Serialize};

/// What is known of a list's `total`, in the order in which its pages were taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub first: Option<u64>,
    pub last: Option<u64>,
    least: Option<u64>,
    most: Option<u64>,
    /// A response had none, or a negative one.
    pub missing: bool,
    /// It decreased: rows were deleted, or it is wrong.
    pub fell: bool,
    /// A page had rows beyond its own total.
    pub too_small: bool,
    /// The sum of all decreases, regardless of increases.
    fallen: u64,
    /// The sum of all increases, regardless of decreases.
    grown: u64,
}

impl Totals {
    /// Takes the total of a page whose rows end at `end`; `None` if the page had no rows.
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

    /// The sum of its increases, which rows added while the list was read explain.
    pub fn grown(&self) -> u64 {
        self.grown
    }

    /// The sum of its decreases, which deleted rows explain.
    pub fn fallen(&self) -> u64 {
        self.fallen
    }

    /// Whether all responses gave the same total.
    pub fn constant(&self) -> bool {
        !self.missing && self.least == self.most
    }

    /// How many more rows the last total counts than the `held` ones.
    pub fn short(&self, held: u64) -> Option<u64> {
        self.last.map(|last| last.saturating_sub(held))
    }
}
