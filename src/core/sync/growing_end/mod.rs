//! Reads a list's growing end: one request for new rows and `total`, compared with the known list.
//!
//! The known rows were the whole list once, and messages are only added. So if the last known rows
//! are still at the growing end, and known plus new rows number `total`, they are the list. Any
//! mismatch is left to a sweep.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use super::list_shape::ListShape;
use crate::api::Limit;
use crate::decode::page::{Page, Row};
use crate::list_state::{ENDS, Ends, Grows, ListState};

/// The least number of known rows requested again, if the page has room.
const KNOWN: u64 = 10;
/// The least room for new rows.
const ROOM: u64 = 10;
/// Rows that two pages share.
const OVERLAP: usize = 3;
/// A list that grew by more pages is swept instead.
pub const MOST_PAGES: u64 = 256;
/// The same in a run with a budget.
pub const MOST_PAGES_OF_A_BUDGET: u64 = 16;
/// The number of ids at an end that must be known to read the list there.
const ANCHORS: usize = 2;

/// How many known rows are requested again.
fn known_rows(rows: u64, ends: &Ends, page_rows: u64) -> u64 {
    let most = page_rows.saturating_sub(ROOM).max(page_rows / 2);
    let unread = ends
        .unread_from
        .map_or(0, |position| rows - position.min(rows));
    unread.clamp(KNOWN.min(most), most)
}

/// A read of a list's growing end, between two responses; it neither waits nor sends.
#[derive(Debug)]
pub struct GrowingEnd {
    held: ListState,
    /// Its ends.
    ends: Ends,
    /// The offset of the first page.
    start: u64,
    offset: u64,
    limit: Limit,
    /// The ids shown so far, in the order served.
    shown: Vec<i64>,
    distinct: HashSet<i64>,
    shape: ListShape,
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
    pub ends: Ends,
}

impl GrowingEnd {
    /// `None` if too little is known of the end to read there; `page_rows` is the largest page.
    /// A list that grew by more than `most_pages` is left to a sweep, which can be resumed.
    pub fn new(held: ListState, page_rows: u64, most_pages: u64) -> Option<Self> {
        let ends = held.ends.clone()?;
        let anchors = match ends.grows {
            Grows::End => &ends.last_ids,
            Grows::Start => &ends.first_ids,
        };
        let limit = Limit::new("limit", page_rows.try_into().ok()?).ok()?;
        let known = known_rows(held.rows, &ends, page_rows);
        if anchors.len() < ANCHORS || anchors.len() as u64 > known || known > held.rows {
            return None;
        }
        let start = match ends.grows {
            Grows::End => held.rows - known,
            Grows::Start => 0,
        };
        Some(Self {
            held,
            ends,
            start,
            offset: start,
            limit,
            shown: Vec::new(),
            distinct: HashSet::new(),
            shape: ListShape::default(),
            total: None,
            pages: 0,
            most_pages,
            confirming: false,
        })
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
        match self.ends.grows {
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
        self.shown.extend_from_slice(fresh);
        Ok(fresh.len())
    }

    fn judge_end(&mut self, total: u64, fresh: usize, full: bool) -> Result<Step, &'static str> {
        let known = usize::try_from(self.held.rows - self.start).unwrap_or(usize::MAX);
        // A short page may end before the last known rows.
        if self.shown.len() < known {
            return self.go_on(fresh);
        }
        let anchors = &self.ends.last_ids;
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
        let anchors = &self.ends.first_ids;
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
        let grows = self.ends.grows;
        if self.shape.grows() != Some(grows) {
            return Err("the rows are not in the order known");
        }
        let known_before = match grows {
            Grows::End => self.start,
            Grows::Start => total - (self.shown.len() as u64).min(total),
        };
        let unread_before = self
            .ends
            .unread_from
            .filter(|position| *position < known_before);
        let unread_from = unread_before.or_else(|| self.shape.unread_from(total, grows));
        let mut ends = Ends {
            unread_from,
            ..self.ends.clone()
        };
        match grows {
            Grows::End => ends.last_ids = self.shape.last_ids(),
            Grows::Start => ends.first_ids = self.shown.iter().take(ENDS).copied().collect(),
        }
        Ok(Step::Fits(Box::new(Grown { rows: total, ends })))
    }
}
