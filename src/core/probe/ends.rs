//! Finds where a list ends, whatever its `total` says, and what the service returns past that.

use super::probe_client::{Listed, Measured, ProbeClient, unmeasured};
use super::profile::{Gives, PastEnd};
use crate::api::{Limit, List};
use crate::probe_request::ProbeRequest;

/// Growing steps and bisection find the end of a list of a hundred million rows in fewer requests.
const MOST_REQUESTS: u32 = 48;
/// The growth factor of the steps.
const LEAP_GROWTH: u64 = 4;

/// The end of a list.
#[derive(Debug)]
pub struct End {
    /// The number of rows.
    pub at: u64,
    /// The number of rows according to the service, at the same time.
    pub total: Option<u64>,
    /// `None` if the list is empty: an offset past its end cannot be told from its start.
    pub past: Option<PastEnd>,
}

impl End {
    /// `total` minus the actual number of rows.
    pub fn total_error(&self) -> Option<i64> {
        let total = i64::try_from(self.total?).ok()?;
        total.checked_sub(i64::try_from(self.at).ok()?)
    }
}

/// What is known of the end during the search.
struct Search {
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
pub async fn find(
    probe_client: &mut ProbeClient,
    list: List,
    limit: Limit,
    pages: &mut Vec<Listed>,
) -> Measured<End> {
    let Some(first) = pages.iter().find(|page| page.requested_offset == 0) else {
        return unmeasured("no page of such a list could be read");
    };
    if first.rows.is_empty() {
        let total = first.total;
        return Ok(End {
            at: 0,
            total,
            past: None,
        });
    }
    let mut search = Search::new(pages, first.total, limit);
    let mut past = None;
    let mut total = first.total;
    for _ in 0..MOST_REQUESTS {
        let offset = search.next();
        let reply = probe_client
            .send(&ProbeRequest::plain(list.page(offset, limit)))
            .await?;
        let status = reply.answer.status;
        match reply.listed() {
            Some(page) if is_another_again(&page, pages) => {
                return unmeasured(
                    "several offsets return the same page, and no response says which is right",
                );
            }
            Some(page) => {
                total = page.total;
                let gives = search.page(&page, limit);
                past = gives.map(|gives| PastEnd { gives, status }).or(past);
                pages.push(page);
            }
            None if reply.is_refusal() => {
                search.nothing_at(offset);
                past = Some(PastEnd {
                    gives: Gives::Error,
                    status,
                });
            }
            None => return unmeasured(&format!("the service answered {status}")),
        }
        if let Some(at) = search.end() {
            return Ok(End { at, total, past });
        }
    }
    unmeasured(&format!(
        "the end was not found in {MOST_REQUESTS} requests"
    ))
}

impl Search {
    fn new(pages: &[Listed], total: Option<u64>, limit: Limit) -> Self {
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

    fn next(&mut self) -> u64 {
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
    fn page(&mut self, page: &Listed, limit: Limit) -> Option<Gives> {
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

    fn nothing_at(&mut self, offset: u64) {
        self.high = Some(self.high.map_or(offset, |high| high.min(offset)));
    }

    /// The end, once it is known from both sides; rows may have been deleted since they were seen.
    fn end(&self) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[derive(Debug, Clone, Copy)]
    enum Past {
        Empty,
        Refused,
        LastPage,
        LastPageWithoutOffset,
    }

    /// The response of a service that serves this many rows; `None` is a refusal.
    fn serve(
        end: u64,
        past: Past,
        requested_offset: u64,
        limit: u64,
        short: bool,
    ) -> Option<Listed> {
        let last = (end - 1) / limit * limit;
        let (start, said) = match past {
            _ if requested_offset < end => (requested_offset, Some(requested_offset)),
            Past::Empty => (end, Some(requested_offset)),
            Past::Refused => return None,
            Past::LastPage => (last, Some(last)),
            Past::LastPageWithoutOffset => (last, None),
        };
        let offset = match past {
            Past::LastPageWithoutOffset => None,
            _ => said,
        };
        let count = limit.min(end - start.min(end));
        let count = if short && count > 1 { count - 1 } else { count };
        Some(Listed {
            requested_offset,
            limit: Some(limit),
            offset,
            total: None,
            rows: (start..start + count).map(|id| json!({"id": id})).collect(),
        })
    }

    fn found(end: u64, total: Option<u64>, past: Past, limit: u8, short: &[bool]) -> (u64, u32) {
        let limit = Limit::new("limit", limit.into()).unwrap();
        let rows = u64::from(limit.get());
        let first = serve(end, past, 0, rows, short[0]).unwrap();
        let mut pages = vec![first];
        let mut search = Search::new(&pages, total, limit);
        for request in 1..=MOST_REQUESTS {
            let requested_offset = search.next();
            let turn = short[request as usize % short.len()];
            match serve(end, past, requested_offset, rows, turn) {
                Some(page) => {
                    search.page(&page, limit);
                    pages.push(page);
                }
                None => search.nothing_at(requested_offset),
            }
            if let Some(at) = search.end() {
                return (at, request);
            }
        }
        panic!("not found");
    }

    proptest! {
        #[test]
        fn the_end_is_found_whatever_the_total_says(
            end in prop_oneof![1_u64..300, 1_u64..100_000_000],
            total in proptest::option::of(prop_oneof![0_u64..300, 0_u64..200_000_000]),
            past in prop_oneof![
                Just(Past::Empty), Just(Past::Refused), Just(Past::LastPage)
            ],
            limit in 1_u8..=99,
            short in proptest::collection::vec(any::<bool>(), 1..7),
        ) {
            prop_assert_eq!(found(end, total, past, limit, &short).0, end);
        }

        #[test]
        fn a_last_page_that_comes_again_is_no_new_one(end in 1_u64..5_000, limit in 2_u8..=99) {
            let (at, _) = found(end, Some(end), Past::LastPageWithoutOffset, limit, &[false]);
            prop_assert_eq!(at, end);
        }
    }

    #[test]
    fn a_true_total_costs_two_requests() {
        assert_eq!(found(250, Some(250), Past::Empty, 99, &[false]), (250, 2));
        assert_eq!(found(7, Some(7), Past::Empty, 99, &[false]), (7, 1));
    }
}
