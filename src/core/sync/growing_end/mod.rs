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
use crate::list_state::{ENDS, Ends, Grows, Kind, ListState};
use crate::report::Certificate;

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
    /// Known and new rows together are the list, which is so now.
    Fits(Box<ListState>),
    /// Known and new rows are not the list, or this cannot be shown.
    Misfit,
}

impl GrowingEnd {
    /// `None` if too little is known of the end to read there; `page_rows` is the largest page.
    /// A list that grew by more than `most_pages` is left to a sweep, which can be resumed.
    pub fn new(mut held: ListState, page_rows: u64, most_pages: u64) -> Option<Self> {
        let ends = held.ends.take()?;
        let anchors = match ends.grows {
            Grows::End => &ends.last_ids,
            Grows::Start => &ends.first_ids,
        };
        let limit = Limit::of(page_rows)?;
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
        self.judge(page).unwrap_or(Step::Misfit)
    }

    fn judge(&mut self, page: &Page) -> Option<Step> {
        let total = u64::try_from(page.total?).ok()?;
        let from_elsewhere = page
            .offset
            .is_some_and(|offset| u64::try_from(offset) != Ok(self.offset));
        let total_fell = self.total.is_some_and(|before| total < before);
        if from_elsewhere || total_fell || page.rows.iter().any(|row| row.unreadable.is_some()) {
            return None;
        }
        let ids: Vec<i64> = page.rows.iter().map(|row| row.id).collect::<Option<_>>()?;
        let applied = page.limit.and_then(|limit| u64::try_from(limit).ok());
        let applied = applied
            .filter(|limit| *limit > 0)
            .unwrap_or_else(|| self.limit.get().into());
        if total.saturating_sub(self.held.rows) > self.most_pages.saturating_mul(applied) {
            return None;
        }
        let before = self.total.replace(total);
        self.pages += 1;
        if self.confirming {
            let unchanged = before == Some(total) && self.shown.starts_with(&ids);
            return self.fits(total).filter(|_| unchanged && !ids.is_empty());
        }
        let fresh = self.join(&ids, &page.rows)?;
        match self.ends.grows {
            Grows::End => self.judge_end(total, fresh, ids.len() as u64 >= applied),
            Grows::Start => self.judge_start(total, fresh),
        }
    }

    /// Joins a page to earlier ones; returns how many of its rows are new.
    fn join(&mut self, ids: &[i64], rows: &[Row]) -> Option<usize> {
        let overlap = self.repeated();
        let repeated = self.shown.get(self.shown.len() - overlap..)?;
        let fresh = ids.strip_prefix(repeated)?;
        if !fresh.iter().all(|id| self.distinct.insert(*id)) {
            return None;
        }
        self.shape.take(self.offset, rows.get(overlap..)?);
        self.shown.extend_from_slice(fresh);
        Some(fresh.len())
    }

    fn judge_end(&mut self, total: u64, fresh: usize, full: bool) -> Option<Step> {
        let known = usize::try_from(self.held.rows - self.start).ok()?;
        // A short page may end before the last known rows.
        let Some(known_rows) = self.shown.get(..known) else {
            return self.go_on(fresh);
        };
        let held = self.start + self.shown.len() as u64;
        if !known_rows.ends_with(&self.ends.last_ids) || held > total {
            return None;
        }
        // A total that a full page just reaches may be too small: more rows may follow.
        if held == total && (!full || fresh == 0) {
            return self.fits(total);
        }
        self.go_on(fresh)
    }

    fn judge_start(&mut self, total: u64, fresh: usize) -> Option<Step> {
        let anchors = &self.ends.first_ids;
        let first = anchors.first()?;
        let Some(new) = self.shown.iter().position(|id| id == first) else {
            // If there is no room for more rows, the first known ones are gone.
            return match self.held.rows + self.shown.len() as u64 > total {
                true => None,
                false => self.go_on(fresh),
            };
        };
        let after = self.shown.get(new..)?;
        if after.len() < anchors.len() && anchors.starts_with(after) {
            return self.go_on(fresh);
        }
        if !after.starts_with(anchors) || self.held.rows + new as u64 != total {
            return None;
        }
        if self.pages == 1 {
            return self.fits(total);
        }
        // Rows added meanwhile are at the start, unseen.
        self.confirming = true;
        self.offset = 0;
        Some(Step::Request)
    }

    /// Requests more, unless the list has fewer rows than its total says or grew by too much.
    fn go_on(&mut self, fresh: usize) -> Option<Step> {
        if fresh == 0 || self.pages >= self.most_pages {
            return None;
        }
        let shown = self.shown.len();
        self.offset = self.start + (shown - shown.min(OVERLAP)) as u64;
        Some(Step::Request)
    }

    /// The list as it is, if its new rows are in the known order.
    fn fits(&self, total: u64) -> Option<Step> {
        let grows = self.ends.grows;
        if self.shape.grows() != Some(grows) {
            return None;
        }
        let known_before = match grows {
            Grows::End => self.start,
            Grows::Start => total.saturating_sub(self.shown.len() as u64),
        };
        let mut ends = self.ends.clone();
        ends.unread_from = ends
            .unread_from
            .filter(|position| *position < known_before)
            .or_else(|| self.shape.unread_from(total, grows));
        match grows {
            Grows::End => ends.last_ids = self.shape.last_ids(),
            Grows::Start => ends.first_ids = self.shown.iter().take(ENDS).copied().collect(),
        }
        Some(Step::Fits(Box::new(ListState {
            kind: Kind::End,
            rows: total,
            certificate: Certificate::Counted,
            ends: Some(ends),
            ..self.held.clone()
        })))
    }
}
