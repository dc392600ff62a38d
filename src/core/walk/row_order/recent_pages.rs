//! The texts of the pages that were joined last, so that their rows are hashed only if needed.

use std::collections::VecDeque;

use crate::decode::page::{PageRows, Row};

// Per list; some hundred messages. Many lists are read side by side.
const MOST_BYTES: usize = 128 * 1024;

/// A page's place among those that were joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageNumber(u64);

/// The last pages, up to `MOST_BYTES`.
#[derive(Debug, Default)]
pub struct RecentPages {
    pages: VecDeque<PageRows>,
    /// How many pages were dropped.
    dropped: u64,
    bytes: usize,
}

impl RecentPages {
    /// Whether pages have to be dropped to add the page of a row.
    pub fn drops_for(&self, row: &Row) -> bool {
        self.bytes + row.page().bytes() > MOST_BYTES
    }

    /// Adds the page of a row. `drop` gets each row with an id of the pages that make room for it:
    /// the page, the id and the row's text.
    pub fn add(&mut self, row: &Row, mut drop: impl FnMut(PageNumber, i64, &str)) {
        let page = row.page();
        self.bytes += page.bytes();
        self.pages.push_back(page);
        while self.bytes > MOST_BYTES
            && let Some(oldest) = self.pages.pop_front()
        {
            let number = PageNumber(self.dropped);
            self.dropped += 1;
            self.bytes -= oldest.bytes();
            for (id, text) in oldest.named() {
                drop(number, id, text);
            }
        }
    }

    /// The page that was added last; `None` if it was too large.
    pub fn newest(&self) -> Option<PageNumber> {
        let last = u64::try_from(self.pages.len()).ok()?.checked_sub(1)?;
        Some(PageNumber(self.dropped + last))
    }

    /// The text of the last row with this id in a page.
    pub fn text(&self, PageNumber(number): PageNumber, id: i64) -> &str {
        let index = number.checked_sub(self.dropped);
        let page = index.and_then(|index| self.pages.get(usize::try_from(index).ok()?));
        page.and_then(|page| page.text_of(id)).unwrap_or_default()
    }
}
