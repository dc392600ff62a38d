//! A page as it arrived.

use roaring::RoaringTreemap;

use super::request::{Fetch, Request};
use crate::client::{Read, Sent};
use crate::decode::page::{Page, Row, Unreadable};
use crate::error::Error;

/// When a response was requested and taken, counted in responses taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    pub taken: u64,
    pub taken_before: u64,
    pub total: Option<i64>,
}

/// A page that arrived.
#[derive(Debug)]
pub(super) struct PageArrival {
    /// As requested.
    pub offset: u64,
    /// The page size that was applied.
    pub applied: u64,
    pub rows: Vec<Row>,
    pub said_limit: Option<i64>,
    pub said_offset: Option<i64>,
    pub said_total: Option<i64>,
    /// The error, if the offset was refused.
    pub refusal: Option<Error>,
    /// The page states another offset than the requested one,
    pub elsewhere: bool,
    /// and had rows from there.
    pub strayed: bool,
    pub repaired_text: u64,
    /// It has few rows because more could not be read.
    pub reduced: bool,
    /// `None` if the offset was refused.
    pub sent: Option<Sent>,
    pub timing: Timing,
    past_end: bool,
}

impl PageArrival {
    /// `None` if the request was not for a page.
    pub fn page(request: &Request, taken: u64, read: Read<Page>) -> Option<Self> {
        let Fetch::Page { offset, limit } = request.fetch else {
            return None;
        };
        let Read { value: page, sent } = read;
        let applied = page.limit.and_then(|limit| u64::try_from(limit).ok());
        Some(Self {
            offset,
            applied: page.reduced_to.unwrap_or_else(|| {
                applied
                    .filter(|limit| *limit > 0)
                    .map_or(limit.get().into(), |said| said.min(limit.get().into()))
            }),
            rows: page.rows,
            said_limit: page.limit,
            said_offset: page.offset,
            said_total: page.total,
            refusal: None,
            elsewhere: false,
            strayed: false,
            repaired_text: page.text.repaired,
            reduced: page.reduced_to.is_some(),
            sent: Some(sent),
            timing: Timing {
                taken,
                taken_before: request.taken_before,
                total: page.total,
            },
            past_end: false,
        })
    }

    /// `None` if the request was not for a page.
    pub fn past_end(request: &Request, taken: u64, refusal: Error) -> Option<Self> {
        let Fetch::Page { offset, limit } = request.fetch else {
            return None;
        };
        Some(Self {
            offset,
            applied: limit.get().into(),
            rows: Vec::new(),
            said_limit: None,
            said_offset: None,
            said_total: None,
            refusal: Some(refusal),
            elsewhere: false,
            strayed: false,
            repaired_text: 0,
            reduced: false,
            sent: None,
            timing: Timing {
                taken,
                taken_before: request.taken_before,
                total: None,
            },
            past_end: true,
        })
    }

    /// Whether it is a response, and not what stands for a row that was not read.
    pub fn was_received(&self) -> bool {
        let received = |row: &Row| row.unreadable.is_none_or(Unreadable::was_received);
        self.rows.iter().all(received)
    }

    pub fn total(&self) -> Option<u64> {
        self.said_total.and_then(|total| u64::try_from(total).ok())
    }

    /// Whether the list ended before its offset; some services then send the last page again.
    pub fn is_past_end(&self) -> bool {
        self.past_end
    }

    /// Decides whether the page lies past the end, by the rows known when its turn comes. `end` is
    /// where the rows read so far end, once nothing new has come from there.
    pub fn settle(&mut self, seen: &RoaringTreemap, end: Option<u64>, edge: bool) {
        let ends = [self.total().filter(|_| edge), end];
        let beyond = ends.iter().flatten().any(|end| self.offset >= *end);
        let held = |row: &Row| row.id.is_some_and(|id| seen.contains(id.cast_unsigned()));
        self.past_end =
            self.rows.is_empty() || (self.offset > 0 && beyond && self.rows.iter().all(held));
        let elsewhere = |said: i64| u64::try_from(said) != Ok(self.offset);
        self.elsewhere = self.said_offset.is_some_and(elsewhere);
        // Rows added meanwhile may be in a page that is sent instead of an empty one.
        let behind_total = self.total().is_some_and(|total| self.offset >= total);
        self.past_end |= self.elsewhere && (behind_total || self.rows.iter().all(held));
        self.strayed = self.elsewhere && !self.past_end;
    }

    /// Decides the same for a page that begins among known rows, whatever the total says.
    pub fn settle_in_place(&mut self) {
        self.past_end = self.rows.is_empty();
        let elsewhere = |said: i64| u64::try_from(said) != Ok(self.offset);
        self.elsewhere = self.said_offset.is_some_and(elsewhere);
        self.strayed = self.elsewhere && !self.past_end;
    }

    /// It cannot lie at the requested offset: it is what the service sends for offsets past the
    /// end.
    pub fn put_past_end(&mut self) {
        self.past_end = true;
    }

    /// The rows that lie at the requested offset.
    pub fn rows_in_place(&self) -> &[Row] {
        if self.is_past_end() { &[] } else { &self.rows }
    }

    pub fn received(&self) -> u64 {
        self.rows_in_place().len() as u64
    }

    /// Where its rows end.
    pub fn end(&self) -> u64 {
        self.offset + self.received()
    }

    /// Whether it ends where its total says that the list does, with room left for more rows.
    pub fn ends_the_list(&self) -> bool {
        self.received() < self.applied && self.total() == Some(self.end())
    }

    /// Whether it has fewer rows than the limit that the service reports.
    pub fn is_shorter_than_it_says(&self) -> bool {
        let said = self.said_limit.and_then(|limit| u64::try_from(limit).ok());
        // If a service always reports the same limit, only the part that was requested counts.
        said.is_some_and(|limit| (self.rows.len() as u64) < limit.min(self.applied))
    }

    /// Whether it holds all rows that its total counts.
    pub fn is_whole(&self) -> bool {
        self.offset == 0 && !self.strayed && self.total() == Some(self.rows.len() as u64)
    }

    /// Whether a row has no id.
    pub fn has_unnamed_rows(&self) -> bool {
        self.was_received() && self.rows.iter().any(|row| row.id.is_none())
    }
}
