//! Where a list ends, whatever its `total` says, and what lies past that.

use super::asker::{Asked, Asker, Listed, unmeasured};
use super::profile::{Gives, PastEnd};
use crate::core::interface::{Limit, List};
use crate::core::question::Question;

/// Doubling and halving find the end of a list of a hundred million rows in fewer requests.
const MOST_REQUESTS: u32 = 48;

/// The end of a list.
#[derive(Debug)]
pub struct End {
    /// How many rows there are.
    pub at: u64,
    /// How many there are by the service's account, at the same time.
    pub total: Option<u64>,
    /// `None` where the list is empty: there is no way past its end that is not its start.
    pub past: Option<PastEnd>,
}

impl End {
    /// How many rows more the service says there are than there are.
    pub fn total_error(&self) -> Option<i64> {
        let total = i64::try_from(self.total?).ok()?;
        total.checked_sub(i64::try_from(self.at).ok()?)
    }
}

/// What is known of the end while it is looked for.
struct Search {
    /// Rows stand below this offset ...
    low: u64,
    /// ... and none from this one on.
    high: Option<u64>,
    /// Worth asking next.
    hint: Option<u64>,
    /// How far to leap while no end is in sight.
    leap: u64,
    /// Where a short page made believe that the list ends.
    believed: Option<u64>,
    /// Whether rows have followed a short page, so that being short says nothing.
    misled: bool,
}

/// Looks for the end of a list whose `pages` are read already; what it reads joins them.
pub async fn find(
    asker: &mut Asker,
    list: List,
    limit: Limit,
    pages: &mut Vec<Listed>,
) -> Asked<End> {
    let Some(first) = pages.iter().find(|page| page.asked == 0) else {
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
    let low = pages
        .iter()
        .filter(|page| page.is_in_place())
        .map(Listed::end)
        .max()
        .unwrap_or(0);
    let mut search = Search {
        low,
        high: None,
        hint: first.total.and_then(|total| total.checked_sub(1)),
        leap: u64::from(limit.get()),
        believed: None,
        misled: false,
    };
    if search.hint.is_none_or(|last| last < low) {
        search.believe_in_end();
    }
    let mut past = None;
    let mut total = first.total;
    for _ in 0..MOST_REQUESTS {
        let offset = search.next();
        let reply = asker
            .ask(&Question::plain(list.page(offset, limit)))
            .await?;
        let status = reply.answer.status;
        match reply.listed() {
            Some(page) => {
                total = page.total;
                let gives = search.page(&page, limit, pages);
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
    fn next(&mut self) -> u64 {
        let open =
            |offset: &u64| *offset >= self.low && self.high.is_none_or(|high| *offset < high);
        match (self.hint.take().filter(open), self.high) {
            (Some(hint), _) => hint,
            (None, Some(high)) => self.low + high.saturating_sub(self.low) / 2,
            (None, None) => {
                let offset = self.low.saturating_add(self.leap);
                self.leap = self.leap.saturating_mul(2);
                offset
            }
        }
    }

    /// Takes a page in; gives what it is if it lies past the end.
    fn page(&mut self, page: &Listed, limit: Limit, earlier: &[Listed]) -> Option<Gives> {
        if page.rows.is_empty() {
            self.nothing_at(page.asked);
            return Some(Gives::Empty);
        }
        if is_from_before(page, earlier) {
            self.nothing_at(page.asked);
            if let Some(start) = page.offset.filter(|start| *start < page.asked) {
                self.low = self.low.max(start.saturating_add(page.len()));
            }
            self.believe_in_end();
            return Some(Gives::EarlierRows);
        }
        self.misled |= self.believed == Some(page.asked);
        self.low = self.low.max(page.end());
        if page.len() < page.applied().unwrap_or(limit.get().into()) && !self.misled {
            self.believe_in_end();
        }
        None
    }

    fn believe_in_end(&mut self) {
        self.hint = Some(self.low);
        self.believed = self.hint;
    }

    fn nothing_at(&mut self, offset: u64) {
        self.high = Some(self.high.map_or(offset, |high| high.min(offset)));
    }

    /// The end, once it is known from both sides; rows may have gone since they were seen.
    fn end(&self) -> Option<u64> {
        self.high.filter(|high| *high <= self.low)
    }
}

/// Whether a page shows rows from another place: it says so, or it is another page once more.
fn is_from_before(page: &Listed, earlier: &[Listed]) -> bool {
    let repeats =
        |other: &Listed| other.asked != page.asked && other.identities() == page.identities();
    !page.is_in_place() || (page.offset.is_none() && earlier.iter().any(repeats))
}

/// Whether a page held fewer rows than it could; `None` where no page shows it.
pub fn short_pages(pages: &[Listed], end: u64) -> Option<bool> {
    let could = |page: &Listed| {
        let left = end.saturating_sub(page.asked);
        page.applied()
            .map(|applied| applied.min(left))
            .filter(|rows| *rows > 1)
    };
    let in_place = pages.iter().filter(|page| page.is_in_place());
    in_place
        .filter_map(|page| Some(page.len() < could(page)?))
        .reduce(|short, of_page| short || of_page)
}
