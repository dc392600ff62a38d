//! Finds where a list ends, whatever its `total` says, and what the service returns past that.

use super::probe_client::{Finding, Listed, ProbeClient, answered, unmeasured};
use super::profile::{Gives, PastEnd};
use crate::api::{Limit, List, Request};

/// Growing steps and bisection find the end of a list of a hundred million rows in fewer requests.
pub const MOST_REQUESTS: u32 = 48;
const REPEATED: &str = "several offsets return the same page, and no response says which is right";
/// The growth factor of the steps.
const LEAP_GROWTH: u64 = 4;

/// The end of a list.
#[derive(Debug, Clone)]
pub struct End {
    /// The number of rows.
    pub at: u64,
    /// The number of rows according to the service, at the same time.
    pub total: Option<u64>,
    pub past: Finding<PastEnd>,
}

impl End {
    /// `total` minus the actual number of rows.
    pub fn total_error(self) -> Finding<i64> {
        let total = self.total;
        let error = total.and_then(|total| total.checked_signed_diff(self.at));
        error.ok_or_else(|| "the list has no total that is a number".to_owned())
    }
}

/// What is known of the end during the search.
pub struct Search {
    /// There are rows below this offset,
    low: u64,
    /// and none from this one on.
    high: Option<u64>,
    /// A good offset to try next.
    hint: Option<u64>,
    /// How far to step while no end is in sight.
    leap: u64,
    /// The row just below `low`.
    last_row: Option<String>,
    /// Where a short page suggested that the list ends.
    believed: Option<u64>,
    /// Whether rows followed a short page, so that short pages show nothing.
    misled: bool,
}

/// Finds the end of a list, some of whose `pages` are already read; adds what it reads to them.
pub async fn find(client: &mut ProbeClient, list: List, pages: &mut Vec<Listed>) -> Finding<End> {
    let Some(first) = pages.iter().find(|page| page.requested_offset == 0) else {
        return unmeasured("no page of such a list could be read");
    };
    let limit = client.limit;
    let mut total = first.total;
    // An offset past the end of an empty list cannot be told from its start.
    let mut past = unmeasured("the list is empty");
    if first.rows.is_empty() {
        return Ok(End { at: 0, total, past });
    }
    let mut search = Search::new(pages, total, limit);
    for _ in 0..MOST_REQUESTS {
        let offset = search.next();
        let request = Request::Read(list.page(offset, limit));
        let reply = client.send(request).await?;
        let status = reply.status;
        let gives = match reply.listed {
            Some(page) if is_another_again(&page, pages) => return unmeasured(REPEATED),
            Some(page) => {
                total = page.total;
                let gives = search.page(&page, limit);
                pages.push(page);
                gives
            }
            None if (400..500).contains(&status) => {
                search.nothing_at(offset);
                Some(Gives::Error)
            }
            None => return Err(answered(status)),
        };
        if let Some(gives) = gives {
            past = Ok(PastEnd { gives, status });
        }
        if let Some(at) = search.end() {
            return Ok(End { at, total, past });
        }
    }
    unmeasured("the end was not found in 48 requests")
}

impl Search {
    pub fn new(pages: &[Listed], total: Option<u64>, limit: Limit) -> Self {
        let in_place = pages.iter().filter(|page| page.is_in_place());
        let farthest = in_place.max_by_key(|page| page.end());
        let mut search = Self {
            low: farthest.map_or(0, Listed::end),
            high: None,
            last_row: farthest.and_then(Listed::last_row),
            hint: total.and_then(|total| total.checked_sub(1)),
            leap: u64::from(limit.get()),
            believed: None,
            misled: false,
        };
        if search.hint.is_none_or(|last| last < search.low) {
            search.believe_in_end();
        }
        search
    }

    pub fn next(&mut self) -> u64 {
        let open =
            |offset: &u64| *offset >= self.low && self.high.is_none_or(|high| *offset < high);
        match (self.hint.take().filter(open), self.high) {
            (Some(hint), _) => hint,
            (None, Some(high)) => self.low + high.saturating_sub(self.low) / 2,
            (None, None) => {
                let offset = self.low.saturating_add(self.leap);
                self.leap = self.leap.saturating_mul(LEAP_GROWTH);
                offset
            }
        }
    }

    /// Takes a page; returns what the service gives past the end, if it lies there.
    pub fn page(&mut self, page: &Listed, limit: Limit) -> Option<Gives> {
        if page.rows.is_empty() {
            self.nothing_at(page.requested_offset);
            return Some(Gives::Empty);
        }
        if self.is_from_before(page) {
            self.nothing_at(page.requested_offset);
            if let Some(start) = page.offset.filter(|start| *start < page.requested_offset) {
                self.low = self.low.max(start.saturating_add(page.len()));
            }
            self.believe_in_end();
            return Some(Gives::EarlierRows);
        }
        self.misled |= self.believed == Some(page.requested_offset);
        if page.end() > self.low {
            self.low = page.end();
            self.last_row = page.last_row();
        }
        if page.len() < page.applied().unwrap_or(limit.get().into()) && !self.misled {
            self.believe_in_end();
        }
        None
    }

    /// Whether a page shows rows from another offset: it says so, or shows the row before its own.
    fn is_from_before(&self, page: &Listed) -> bool {
        let shown = |row: &String| page.identities().contains(row);
        !page.is_in_place()
            || (page.offset.is_none()
                && page.requested_offset >= self.low
                && self.last_row.as_ref().is_some_and(shown))
    }

    fn believe_in_end(&mut self) {
        self.hint = Some(self.low);
        self.believed = self.hint;
    }

    pub fn nothing_at(&mut self, offset: u64) {
        self.high = Some(self.high.map_or(offset, |high| high.min(offset)));
    }

    /// The end, once it is known from both sides; rows may have been deleted since they were seen.
    pub fn end(&self) -> Option<u64> {
        self.high.filter(|high| *high <= self.low)
    }
}

/// Whether a page without an offset repeats another page: then neither can be placed.
fn is_another_again(page: &Listed, earlier: &[Listed]) -> bool {
    let again = |other: &Listed| {
        other.requested_offset != page.requested_offset
            && other.requested_offset > 0
            && other.identities() == page.identities()
    };
    page.offset.is_none() && !page.rows.is_empty() && earlier.iter().any(again)
}

/// Whether a page had fewer rows than it could; `None` if no page shows it.
pub fn short_pages(pages: &[Listed], end: u64) -> Option<bool> {
    let could = |page: &Listed| {
        let left = end.saturating_sub(page.requested_offset);
        page.applied()
            .map(|applied| applied.min(left))
            .filter(|rows| *rows > 1)
    };
    let in_place = pages.iter().filter(|page| page.is_in_place());
    in_place
        .filter_map(|page| Some(page.len() < could(page)?))
        .reduce(|short, of_page| short || of_page)
}
