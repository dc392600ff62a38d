//! Reads a list's growing end: one request for new rows and `total`, compared with the known list.
//!
//! The known rows were the whole list once, and messages are only added. So if the last known rows
//! are still at the growing end, and known plus new rows number `total`, they are the list. Any
//! mismatch is left to a sweep.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use super::end_rows::EndRows;
use super::list_shape::ListShape;
use crate::api::Limit;
use crate::decode::page::{Page, Row};
use crate::list_state::{ENDS, Grows, ListState};
use crate::page_digest::{Digest, DigestKey};

/// The least number of known rows requested again, if the page has room.
const KNOWN: u64 = 10;
/// The least room for new rows.
const ROOM: u64 = 10;
/// Rows that two pages share.
const OVERLAP: usize = 3;
/// A list that grew by more pages is swept instead.
pub const MOST_PAGES: u64 = 256;
/// The number of ids at an end that must be known to read the list there.
const ANCHORS: usize = 2;

/// Lists of at most this many rows are read whole by one request, which leaves room to grow.
pub fn one_page(page_rows: u64) -> u64 {
    page_rows.saturating_sub(ROOM - 1)
}

/// How many known rows are requested again.
fn known_rows(list: &ListState, page_rows: u64) -> u64 {
    let most = page_rows.saturating_sub(ROOM).max(page_rows / 2);
    let unread = list
        .unread_from
        .map_or(0, |position| list.rows - position.min(list.rows));
    unread.clamp(KNOWN.min(most), most)
}

/// How many rows a later read of the growing end shows again, if the list stays like this.
fn shown_again(list: &ListState, page_rows: u64) -> Option<usize> {
    let rows = match list.grows? {
        Grows::Start => page_rows.min(list.rows),
        Grows::End => known_rows(list, page_rows),
    };
    usize::try_from(rows).ok()
}

/// The digest of those rows; `None` unless all of them were taken.
pub fn end_digest(end_rows: &EndRows, list: &ListState, page_rows: u64) -> Option<Digest> {
    end_rows.digest(list.grows?, shown_again(list, page_rows)?)
}

/// A read of a list's growing end, between two responses; it neither waits nor sends.
#[derive(Debug)]
pub struct GrowingEnd {
    grows: Grows,
    held: ListState,
    /// The offset of the first page.
    start: u64,
    offset: u64,
    limit: Limit,
    /// The ids shown so far, in the order served.
    shown: Vec<i64>,
    distinct: HashSet<i64>,
    shape: ListShape,
    /// `None` without a key.
    end_rows: Option<EndRows>,
    total: Option<u64>,
    pages: u64,
    most_pages: u64,
    confirming: bool,
}

/// What follows from a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Another request is needed.
    Request,
    /// Known and new rows together are the list.
    Fits(Box<Grown>),
    /// Known and new rows are not the list, or this cannot be shown.
    Misfit(&'static str),
}

/// The list as it is now.
#[derive(Debug, PartialEq, Eq)]
pub struct Grown {
    pub rows: u64,
    pub first_ids: Vec<i64>,
    pub last_ids: Vec<i64>,
    pub unread_from: Option<u64>,
}

impl GrowingEnd {
    /// `None` if too little is known of the end to read there; `page_rows` is the largest page.
    pub fn new(held: ListState, page_rows: u64) -> Option<Self> {
        let grows = held.grows?;
        let anchors = match grows {
            Grows::End => &held.last_ids,
            Grows::Start => &held.first_ids,
        };
        let limit = Limit::new("limit", page_rows.try_into().ok()?).ok()?;
        let known = known_rows(&held, page_rows);
        if anchors.len() < ANCHORS || anchors.len() as u64 > known || known > held.rows {
            return None;
        }
        let start = match grows {
            Grows::End => held.rows - known,
            Grows::Start => 0,
        };
        Some(Self {
            grows,
            held,
            start,
            offset: start,
            limit,
            shown: Vec::new(),
            distinct: HashSet::new(),
            shape: ListShape::default(),
            end_rows: None,
            total: None,
            pages: 0,
            most_pages: MOST_PAGES,
            confirming: false,
        })
    }

    /// Leaves a list that grew by more pages to a sweep, which can be resumed.
    #[must_use]
    pub fn of_at_most(self, most_pages: u64) -> Self {
        Self { most_pages, ..self }
    }

    /// Compares the rows shown again with their digest, and makes that of the rows now there.
    #[must_use]
    pub fn with_digests(self, key: Option<DigestKey>) -> Self {
        let most = usize::from(self.limit.get());
        Self {
            end_rows: key.map(|key| EndRows::new(key, most)),
            ..self
        }
    }

    /// The next request: an offset and a limit.
    pub fn request(&self) -> (u64, Limit) {
        (self.offset, self.limit)
    }

    /// The previous state of the list.
    pub fn held(&self) -> &ListState {
        &self.held
    }

    /// How many rows of the next page were shown before.
    pub fn repeated(&self) -> usize {
        if self.confirming {
            usize::MAX
        } else {
            self.shown.len().min(OVERLAP)
        }
    }

    /// How many of the first rows of the only page are as they were when the list was held.
    pub fn unchanged_rows(&self) -> usize {
        let again = shown_again(&self.held, self.limit.get().into());
        let (Some(end_rows), 1, Some(again)) = (&self.end_rows, self.pages, again) else {
            return 0;
        };
        let digest = match self.grows {
            Grows::Start => end_rows.digest(Grows::Start, again),
            Grows::End => end_rows.digest_of_oldest(again),
        };
        if digest.is_some() && digest == self.held.digest {
            again
        } else {
            0
        }
    }

    /// The digest of the rows that a later read will show again if the list stays like this.
    pub fn digest_for(&self, list: &ListState) -> Option<Digest> {
        end_digest(self.end_rows.as_ref()?, list, self.limit.get().into())
    }

    /// Takes the response to the last request.
    pub fn take(&mut self, page: &Page) -> Step {
        self.judge(page).unwrap_or_else(Step::Misfit)
    }

    fn judge(&mut self, page: &Page) -> Result<Step, &'static str> {
        let total = page
            .total
            .and_then(|total| u64::try_from(total).ok())
            .ok_or("the service gave no total that is a number")?;
        if page
            .offset
            .is_some_and(|offset| u64::try_from(offset) != Ok(self.offset))
        {
            return Err("the page is from elsewhere");
        }
        if self.total.is_some_and(|before| total < before) {
            return Err("the total fell");
        }
        let ids: Vec<i64> = page
            .rows
            .iter()
            .map(|row| row.id)
            .collect::<Option<_>>()
            .ok_or("a row has no id")?;
        let applied = page
            .limit
            .and_then(|limit| u64::try_from(limit).ok())
            .filter(|limit| *limit > 0)
            .unwrap_or_else(|| self.limit.get().into());
        if page.rows.iter().any(|row| row.unreadable.is_some()) {
            return Err("a row cannot be read");
        }
        let full = ids.len() as u64 >= applied;
        if total.saturating_sub(self.held.rows) > self.most_pages.saturating_mul(applied) {
            return Err("the list grew by too much");
        }
        let before = self.total.replace(total);
        self.pages += 1;
        if self.confirming {
            return if before == Some(total) && self.shown.starts_with(&ids) && !ids.is_empty() {
                self.fits(total)
            } else {
                Err("the list changed while it was read")
            };
        }
        let fresh = self.join(&ids, &page.rows)?;
        match self.grows {
            Grows::End => self.judge_end(total, fresh, full),
            Grows::Start => self.judge_start(total, fresh),
        }
    }

    /// Joins a page to earlier ones; returns how many of its rows are new.
    fn join(&mut self, ids: &[i64], rows: &[Row]) -> Result<usize, &'static str> {
        let overlap = self.repeated();
        let tail = self.shown.len() - overlap;
        if ids.get(..overlap) != self.shown.get(tail..) {
            return Err("two pages do not join");
        }
        let (fresh, rows) = (ids.get(overlap..), rows.get(overlap..));
        let (fresh, rows) = (fresh.unwrap_or_default(), rows.unwrap_or_default());
        if !fresh.iter().all(|id| self.distinct.insert(*id)) {
            return Err("a row came twice");
        }
        self.shape.take(self.offset, rows);
        if let (Some(end_rows), Some(total)) = (self.end_rows.as_mut(), self.total) {
            end_rows.take(self.offset, rows, total);
        }
        self.shown.extend_from_slice(fresh);
        Ok(fresh.len())
    }

    fn judge_end(&mut self, total: u64, fresh: usize, full: bool) -> Result<Step, &'static str> {
        let known = usize::try_from(self.held.rows - self.start).unwrap_or(usize::MAX);
        // A short page may end before the last known rows.
        if self.shown.len() < known {
            return self.go_on(fresh);
        }
        let anchors = &self.held.last_ids;
        let from = known.saturating_sub(anchors.len());
        if self.shown.get(from..known) != Some(anchors.as_slice()) {
            return Err("the last known rows are not where they were");
        }
        let held = self.start + self.shown.len() as u64;
        if held > total {
            return Err("there are more rows than the total says");
        }
        // A total that a full page just reaches may be too small: more rows may follow.
        if held == total && (!full || fresh == 0) {
            return self.fits(total);
        }
        self.go_on(fresh)
    }

    fn judge_start(&mut self, total: u64, fresh: usize) -> Result<Step, &'static str> {
        let anchors = &self.held.first_ids;
        let found = anchors
            .first()
            .and_then(|first| self.shown.iter().position(|id| id == first));
        let Some(new) = found else {
            return if self.held.rows + self.shown.len() as u64 > total {
                Err("the first known rows are gone")
            } else {
                self.go_on(fresh)
            };
        };
        let after = self.shown.get(new..).unwrap_or_default();
        if after.len() < anchors.len() && anchors.starts_with(after) {
            return self.go_on(fresh);
        }
        if !after.starts_with(anchors) {
            return Err("the first known rows are not in their order");
        }
        if self.held.rows + new as u64 != total {
            return Err("the known rows and the new rows do not add up to the total");
        }
        match self.pages {
            1 => self.fits(total),
            // Rows added meanwhile are at the start, unseen.
            _ => {
                self.confirming = true;
                self.offset = 0;
                Ok(Step::Request)
            }
        }
    }

    fn go_on(&mut self, fresh: usize) -> Result<Step, &'static str> {
        if fresh == 0 {
            return Err("there are fewer rows than the total says");
        }
        if self.pages >= self.most_pages {
            return Err("the list grew by too much");
        }
        let shown = self.shown.len();
        self.offset = self.start + (shown - shown.min(OVERLAP)) as u64;
        Ok(Step::Request)
    }

    fn fits(&self, total: u64) -> Result<Step, &'static str> {
        if self.shape.grows() != Some(self.grows) {
            return Err("the rows are not in the order known");
        }
        let known_before = match self.grows {
            Grows::End => self.start,
            Grows::Start => total - (self.shown.len() as u64).min(total),
        };
        let unread_before = self
            .held
            .unread_from
            .filter(|position| *position < known_before);
        let (first_ids, last_ids) = match self.grows {
            Grows::End => (self.held.first_ids.clone(), self.shape.last_ids()),
            Grows::Start => {
                let first = self.shown.iter().take(ENDS).copied().collect();
                (first, self.held.last_ids.clone())
            }
        };
        Ok(Step::Fits(Box::new(Grown {
            rows: total,
            first_ids,
            last_ids,
            unread_from: unread_before.or_else(|| self.shape.unread_from(total, Some(self.grows))),
        })))
    }
}
