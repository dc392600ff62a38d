//! The sweep's next page: its offset, its size, and how many to request concurrently.

use super::super::row_order::LINK;
use super::joining::LINKABLE;
use super::{Ask, Sweep, WalkRequest};
use crate::core::api::Limit;

// Pages with fewer rows than this can spare only two of them for the overlap.
const SMALL_PAGE: u64 = 30;
// A walk adds one concurrent request for every this many pages read.
const PAGES_A_LANE: u64 = 4;

impl Sweep {
    pub(super) fn number(&mut self, request: WalkRequest) -> Ask {
        self.asked += 1;
        Ask {
            number: self.asked,
            request,
            taken_before: self.taken,
        }
    }

    /// The next page to request, unless enough are in flight.
    pub(super) fn ask_ahead(&mut self) -> Option<Ask> {
        let under_way = self.ahead.len() as u64;
        let lanes = u64::try_from(self.settings.lanes).unwrap_or(1);
        let most = (self.plain_pages / PAGES_A_LANE).clamp(1, lanes.max(1));
        if under_way >= most {
            return None;
        }
        let offset = if under_way == 0 {
            self.next_offset()
        } else {
            // Only where the total promises rows, and assuming pages as long as the last one.
            let promised = self
                .totals
                .last
                .is_some_and(|total| self.planned_end < total);
            let whole = self.unnamed_rows == 0 && self.barren_pages == 0;
            let whole = whole && self.next_to_prove_end().is_none();
            let affordable = self.proving_left() > under_way;
            if !promised || !whole || !affordable || self.last_received < SMALL_PAGE {
                return None;
            }
            self.planned_end.saturating_sub(self.shared_rows())
        };
        let limit = self.limit_for(under_way)?;
        let ask = self.number(WalkRequest::Page { offset, limit });
        let expected = match self.last_offset {
            None => u64::from(limit.get()),
            Some(_) => self.last_received.min(limit.get().into()),
        };
        self.planned_end = offset + expected;
        self.ahead.push_back(ask.number);
        Some(ask)
    }

    /// The offset of the next page: a little before the end of the last one.
    pub(super) fn next_offset(&self) -> u64 {
        let Some(last) = self.last_offset else {
            return 0;
        };
        if let Some(offset) = self.next_to_prove_end() {
            return offset;
        }
        if let Some(empty_to) = self.may_be_hidden_behind() {
            return empty_to;
        }
        if self.unnamed_rows > 0 || self.barren_pages > 0 {
            return self.end;
        }
        self.end.saturating_sub(self.shared_rows()).max(last + 1)
    }

    /// Where more rows may follow an empty page: services whose pages are short anyway may omit
    /// rows.
    fn may_be_hidden_behind(&self) -> Option<u64> {
        let empty_to = self.empty_to?;
        let promised = self.totals.last.is_some_and(|total| empty_to < total);
        let hidden = self.short_then_more || self.seen.is_empty() || self.promises_a_page();
        (hidden && promised && !self.refused).then_some(empty_to)
    }

    /// How many rows the next page should share with the last one.
    pub(super) fn shared_rows(&self) -> u64 {
        match self.last_received {
            0..=LINK => 0,
            // Next to a row that is too large, pages of one or two rows would share all their rows.
            received if self.last_reduced && received < LINKABLE => 0,
            received if received < SMALL_PAGE => LINK,
            _ => self.overlap,
        }
    }

    /// How far before the end of the joined pages a page must begin to link with them.
    pub(super) fn link_step(&self) -> u64 {
        match self.last_received {
            received if received < SMALL_PAGE => LINK,
            _ => self.overlap,
        }
    }

    /// The page size to request, no more than `max_items` needs; `None` if it needs no more.
    pub(super) fn limit_for(&self, under_way: u64) -> Option<Limit> {
        let size = self.settings.page_size;
        let Some(most) = self.settings.max_items else {
            return Some(size);
        };
        let coming = under_way * self.last_received.saturating_sub(self.shared_rows());
        let rest = most.saturating_sub(self.given.saturating_add(coming));
        if rest == 0 && under_way > 0 {
            return None;
        }
        let shared = self.last_offset.map_or(0, |_| self.shared_rows());
        let wanted = i64::try_from(rest.saturating_add(shared)).unwrap_or(i64::MAX);
        let wanted = Limit::new("limit", wanted).ok();
        Some(
            wanted
                .filter(|limit| limit.get() < size.get())
                .unwrap_or(size),
        )
    }
}
