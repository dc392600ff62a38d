//! A pass over the list: where its joined pages end, what the last one showed, and where the next
//! one begins.

use super::arrived::ArrivedPage;
use super::chain::{Chain, content};
use super::page_length::PageLength;
use crate::api::LARGEST_LIMIT;

/// Rows that long pages share: two to link them, and one that may be edited or deleted.
pub(super) const OVERLAP: u64 = 3;
// Shorter pages share two, to read more than they repeat.
const SHORT_PAGE: u64 = 30;
const SHORT_OVERLAP: u64 = 2;

// After this many links in a row, pages share fewer rows again.
const LINKS_TO_NARROW: u64 = 8;

/// One reading of the list, from its start or from where an earlier walk ended.
#[derive(Debug, Default)]
pub(super) struct Pass {
    pub chain: Chain,
    /// Links lead back to a page at the start of the pass.
    pub chained: bool,
    /// A page that links back to the start is the end of the list,
    pub proved: bool,
    /// which is where its total says.
    pub at_total: bool,
    /// The last page ended the list, whether it links or not.
    pub ended: bool,
    /// Pages that arrived and are not joined, by offset.
    pub pool: Vec<ArrivedPage>,
    /// The page that was joined last.
    pub last: Option<LastPage>,
    pub start: u64,
    /// Nothing is requested from here on.
    pub until: Option<u64>,
    /// Where the joined pages end. No link depends on it, but the list's end does.
    pub end: u64,
    /// Where the requested pages end if each is as long as the last one.
    pub planned: u64,
    /// The last page, if it had fewer rows than its limit and did not prove the end: the rank of its
    /// last row, and how many it had.
    pub cut_at: Option<(u64, u64)>,
    /// A page behind the end showed nothing, so no more are requested ahead.
    pub saw_nothing: bool,
    /// Responses in a row that showed nothing behind the end; 2 or more once the offset right behind it
    /// was requested.
    pub barren: u64,
    /// The last of them showed the last rows again, with nothing behind them.
    pub confirmed: bool,
    /// Short pages in a row at the end of a list that grows there.
    pub dribbles: u64,
    pub links_in_a_row: u64,
    /// How many rows more than usual pages share: more after each missing link, fewer after links.
    wider: u64,
    /// Pages that did not link at first, since one last extended the chain.
    pub missing_links: u32,
    /// New rows that it brought,
    pub found: u64,
    /// and that its last page did.
    pub found_last: u64,
    /// By how many rows inserts before the walk's position pushed back others.
    pub shifted: u64,
    /// How often the list began anew.
    pub beginnings: u32,
    /// The service refused this offset behind the end.
    pub refused_at: Option<u64>,
}

/// What is remembered of the page that was joined last.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastPage {
    pub received: u64,
    /// As requested.
    pub limit: u64,
    pub total: Option<u64>,
    /// It extended the chain.
    pub grew: bool,
    /// A hash of its rows without ids.
    unnamed: u64,
}

impl LastPage {
    pub fn of(page: &ArrivedPage, grew: bool) -> Self {
        Self {
            received: page.received(),
            limit: page.limit,
            total: page.total(),
            grew,
            unnamed: unnamed(page),
        }
    }

    /// Whether a page has the same rows; only those without ids are compared.
    pub fn repeats(&self, page: &ArrivedPage) -> bool {
        self.unnamed != 0 && self.unnamed == unnamed(page)
    }
}

/// A hash of the rows without ids; 0 if there are none.
fn unnamed(page: &ArrivedPage) -> u64 {
    let received = !page.is_left_out();
    let unnamed = page.rows.iter().filter(|row| received && row.id.is_none());
    unnamed.fold(0, |hash, row| hash.rotate_left(1) ^ content(row))
}

impl Pass {
    pub fn resumed(chain: Chain, end: u64, chained: bool, short: bool) -> Self {
        let last = LastPage {
            received: LARGEST_LIMIT.into(),
            limit: LARGEST_LIMIT.into(),
            total: None,
            grew: false,
            unnamed: 0,
        };
        Self {
            cut_at: short.then_some((chain.last_rank(), 0)),
            chain,
            chained,
            last: Some(last),
            end,
            planned: end,
            found: end,
            ..Self::default()
        }
    }

    /// A pass over the rows between two offsets.
    pub fn of_span((start, until): (u64, u64)) -> Self {
        Self {
            start,
            until: Some(until),
            end: start,
            planned: start,
            ..Self::default()
        }
    }

    /// How many rows the next page should share with the last one, if pages are long enough to link. Of
    /// a page of few new rows, not all are requested again.
    pub fn overlap(&self, length: &PageLength) -> u64 {
        let Some(last) = self.last.filter(|_| length.can_link()) else {
            return 0;
        };
        let overlap = match last.received {
            ..SHORT_PAGE => SHORT_OVERLAP,
            received => OVERLAP + self.wider.min(received / 8),
        };
        let most = if last.grew {
            last.received.saturating_sub(1)
        } else {
            self.end - self.start
        };
        overlap.min(most)
    }

    /// The offset after answers that showed nothing behind the end: right behind it, and on like a
    /// plain loop with pages of `longest` rows, or of as many as can be read.
    pub fn offset_behind(&self, longest: u64) -> u64 {
        let steps = self.barren.saturating_sub(1);
        let step = self.readable(longest);
        self.end.saturating_add(steps.saturating_mul(step))
    }

    /// How many of the longest page's rows can be read at once here.
    pub fn readable(&self, longest: u64) -> u64 {
        self.last.map_or(longest, |last| last.limit.min(longest))
    }

    /// Notes a page that showed nothing where rows may follow.
    pub fn note_nothing(&mut self, page: &ArrivedPage) {
        // An offset behind the end need not be requested again.
        let least = if page.offset >= self.end { 2 } else { 1 };
        self.barren = (self.barren + 1).max(least);
        self.refused_at = page.refusal.as_ref().map(|_| page.offset);
    }

    /// Notes a page that does not link.
    pub fn note_missing_link(&mut self) {
        self.missing_links += 1;
        self.links_in_a_row = 0;
        self.wider = (2 * self.wider + OVERLAP).min(LARGEST_LIMIT.into());
    }

    /// Notes a page that links.
    pub fn note_link(&mut self) {
        self.links_in_a_row += 1;
        if self.links_in_a_row.is_multiple_of(LINKS_TO_NARROW) {
            self.wider /= 2;
        }
    }

    /// Puts a page among those that arrived.
    pub fn add(&mut self, page: ArrivedPage) {
        let index = self
            .pool
            .partition_point(|before| before.offset <= page.offset);
        self.pool.insert(index, page);
    }

    pub fn pooled(&self, number: u64) -> Option<&ArrivedPage> {
        self.pool.iter().find(|page| page.number == number)
    }

    pub fn take_from_pool(&mut self, number: u64) -> Option<ArrivedPage> {
        let index = self.pool.iter().position(|page| page.number == number)?;
        Some(self.pool.remove(index))
    }

    /// The first page that does not wait for others.
    pub fn first_new(&self) -> Option<&ArrivedPage> {
        self.pool.iter().find(|page| !page.waits)
    }
}
