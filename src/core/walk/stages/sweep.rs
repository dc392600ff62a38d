//! The sweep: which page is requested next, and what to decide once nothing is in flight.

use super::arrived::ArrivedPage;
use super::link::Verdict;
use super::{Fetch, ListWalk, Stage};

// One more page is requested ahead for each four that linked in a row.
const LINKS_PER_REQUEST: u64 = 4;

impl ListWalk {
    /// The next page to request, unless enough are in flight.
    pub(super) fn request_page(&mut self) -> Option<Fetch> {
        let pass = &self.pass;
        let size = self.settings.page_size;
        let (offset, ahead) = if self.in_flight == 0 {
            (self.next_offset(), 0)
        } else {
            (self.offset_ahead()?, pass.planned.saturating_sub(pass.end))
        };
        // Each pass has other page boundaries.
        let halvings = if pass.last.is_none() {
            self.report.sweeps - 1
        } else {
            0
        };
        let size = (0..halvings).fold(size, |size, _| size.half().unwrap_or(size));
        let shared = pass.end.saturating_sub(offset);
        let limit = self.limit_for_room(size, shared, ahead)?;
        let most = u64::from(limit.get());
        let expected = pass
            .last
            .as_ref()
            .map_or(most, |last| last.received.min(most));
        self.pass.planned = offset + expected;
        Some(Fetch::Page { offset, limit })
    }

    /// The offset of the next page, if none is in flight.
    pub(super) fn next_offset(&self) -> u64 {
        let pass = &self.pass;
        if pass.barren > 0 {
            let requested = self.settings.page_size.get().into();
            return pass.offset_behind(match self.length.longest {
                0 => requested,
                longest => longest,
            });
        }
        let overlap = if self.may_prove() && !self.delivery.unnamed {
            pass.overlap(&self.length)
        } else {
            0
        };
        pass.end - overlap
    }

    /// The offset of the page after those in flight, if the total promises rows there and pages came
    /// as long as expected.
    fn offset_ahead(&self) -> Option<u64> {
        let pass = &self.pass;
        let last = pass.last.as_ref()?;
        let ahead = self.in_flight + pass.pool.len() as u64;
        let most = u64::try_from(self.settings.concurrent_pages).unwrap_or(1);
        let most = most.min((pass.links_in_a_row / LINKS_PER_REQUEST).max(1));
        let planned = pass.planned.max(pass.end);
        let promised = self.totals.last.is_some_and(|total| planned < total)
            && pass.until.is_none_or(|until| planned < until);
        let certain = pass.barren == 0
            && !pass.saw_nothing
            && 2 * last.received >= self.length.longest
            && !self.delivery.unnamed
            && self.may_prove();
        (ahead < most && promised && certain).then(|| planned - pass.overlap(&self.length))
    }

    /// Takes a page that arrived.
    pub(super) fn take_page(&mut self, page: ArrivedPage) {
        if !page.is_left_out() {
            self.report.rows += page.received();
            self.length.note_page(page.received(), page.limit);
            if page.refusal.is_none() {
                if self.report.pages == 1 {
                    self.report.total_first = page.said_total;
                }
                self.report.total_last = page.said_total;
            }
            self.totals.take(&page);
        }
        self.doubts.strayed |=
            page.states_another_offset() && !page.rows.is_empty() && !self.is_elsewhere(&page);
        self.pass.add(page);
        self.settle();
    }

    /// Joins what links; once nothing does and nothing is in flight, decides what to do.
    pub(super) fn settle(&mut self) {
        if let Stage::Back(_) = self.stage {
            self.detect_respelling();
        }
        self.join_pool();
        if self.is_over() || self.in_flight > 0 {
            return self.mark_checkpoint();
        }
        if matches!(self.stage, Stage::Sweep)
            && let Some(target) = self.pass.first_new().filter(|_| !self.pass.proved)
        {
            // One that was fetched ahead only waits until the rows before it are read.
            let ahead = target.offset > self.pass.end && target.offset != self.next_offset();
            if !ahead {
                self.begin_back(target.number);
            }
        }
        self.pass.pool.iter_mut().for_each(|page| page.waits = true);
        self.decide_back();
        if matches!(self.stage, Stage::Sweep) && self.is_swept() {
            self.close();
        }
        self.mark_checkpoint();
    }

    /// Adds a checkpoint to the last page; a resumed walk requests again what is in flight.
    fn mark_checkpoint(&mut self) {
        if self.settings.checkpoints && self.report.sweeps == 1 && !self.is_over() {
            let checkpoint = self.checkpoint();
            if let Some(page) = self.delivery.last_page() {
                page.checkpoint = Some(Box::new(checkpoint));
            }
        }
    }

    /// Joins pages of the pool while any links, those with the lowest offset first.
    pub(super) fn join_pool(&mut self) {
        let mut index = 0;
        while index < self.pass.pool.len() && !self.is_over() {
            let page = self.pass.pool.remove(index);
            index = match self.judge(&page) {
                Verdict::Waits => {
                    self.pass.pool.insert(index, page);
                    index + 1
                }
                verdict => {
                    self.act(page, verdict);
                    0
                }
            };
        }
    }
}
