//! How many requests a walk may send that a plain loop over the list's pages would not.

use super::checkpoint::Checkpoint;

/// Requests that a walk may spend on proving, whatever the list's length.
pub const PROVING_REQUESTS: u64 = 16;
/// The same for each page that a plain loop over the list would read.
pub const PROVING_REQUESTS_A_PAGE: u64 = 8;

/// The responses so far, and how many of them a plain loop would have requested, too.
#[derive(Debug, Default)]
pub(super) struct ProvingBudget {
    /// Not counting retries.
    responses: u64,
    /// Pages with about as many new rows as a regular page of this list.
    plain_pages: u64,
    /// How far they reach.
    plain_to: u64,
}

impl ProvingBudget {
    pub fn note_response(&mut self) {
        self.responses += 1;
    }

    /// Notes a page of the sweep that ends at `to`. Offsets that are read again, from the start or
    /// going back, count once.
    pub fn note_page(&mut self, to: u64, unnamed: bool, regular: bool) {
        if self.plain_pages == 0 || unnamed || (regular && to > self.plain_to) {
            self.plain_pages += 1;
            self.plain_to = to;
        }
    }

    pub fn plain_pages(&self) -> u64 {
        self.plain_pages
    }

    /// A plain loop would have sent one request for each full page, and one for the last.
    pub fn spent(&self) -> u64 {
        self.responses.saturating_sub(self.plain_pages + 1)
    }

    pub fn left(&self) -> u64 {
        let most = PROVING_REQUESTS + PROVING_REQUESTS_A_PAGE * self.plain_pages;
        most.saturating_sub(self.spent())
    }

    pub fn save(&self, checkpoint: &mut Checkpoint) {
        checkpoint.answers = self.responses;
        checkpoint.plain_pages = self.plain_pages;
        checkpoint.plain_to = self.plain_to;
    }

    pub fn resumed(checkpoint: &Checkpoint) -> Self {
        Self {
            responses: checkpoint.answers,
            plain_pages: checkpoint.plain_pages,
            plain_to: checkpoint.plain_to,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_a_plain_loop_would_read_cost_nothing_and_earn_more() {
        let mut budget = ProvingBudget::default();
        assert_eq!((budget.spent(), budget.left()), (0, 16));
        for page in 1..=4 {
            budget.note_response();
            budget.note_page(page * 99, false, true);
        }
        assert_eq!((budget.spent(), budget.left()), (0, 16 + 4 * 8));
        // The same offsets again, and pages of few new rows.
        for (to, regular) in [(198, true), (500, false)] {
            budget.note_response();
            budget.note_page(to, false, regular);
        }
        assert_eq!((budget.spent(), budget.left()), (1, 16 + 4 * 8 - 1));
        budget.note_page(99, true, false);
        assert_eq!(budget.plain_pages(), 5);
    }
}
