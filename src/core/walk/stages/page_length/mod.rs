//! How many rows the service's pages have, and whether it cuts some of them short.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::chain::LINK;

/// What the lengths of the pages so far say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PageLength {
    /// The most rows of a page.
    pub longest: u64,
    /// Pages with fewer rows than their limit, that were followed by others and had as many as the
    /// longest: how often. Twice the same length is the most that the service sends; once is chance.
    full: u64,
    /// A page had as many rows as requested.
    as_requested: bool,
    /// A page had fewer rows than others, and more followed.
    cut_short: bool,
}

impl PageLength {
    /// Notes a page of `rows` rows that was requested with this limit.
    pub fn note_page(&mut self, rows: u64, limit: u64) {
        if rows > self.longest {
            // What seemed to be the most that the service sends was cut short.
            self.cut_short |= self.full > 0;
            self.full = 0;
            self.longest = rows;
            self.as_requested = false;
        }
        self.as_requested |= rows == self.longest && rows == limit;
    }

    /// Notes that more followed a page of fewer rows than its limit.
    pub fn note_cut(&mut self, rows: u64) {
        if rows == self.longest {
            self.full += 1;
        } else {
            self.cut_short = true;
        }
    }

    /// The most rows that the service sends, as far as that was seen.
    pub fn largest(&self) -> Option<u64> {
        let seen = self.as_requested || self.full > 1;
        (seen && !self.cut_short).then_some(self.longest)
    }

    /// Whether pages are long enough to share as many rows as link them, and have others.
    pub fn can_link(&self) -> bool {
        self.longest > LINK as u64
    }

    /// Whether pages end before their limit although more follow.
    pub fn is_cut_short(&self) -> bool {
        self.cut_short || self.full == 1
    }

    /// Whether a total promises a page or more behind the last row: that is not a slightly stale total,
    /// but rows that the service hides or refuses.
    pub fn promises_a_page(&self, total: Option<u64>, end: u64) -> bool {
        total.is_some_and(|total| total >= end.saturating_add(self.longest))
    }
}
