//! The sweep: the next page in the list's order is placed, linked, delivered, and followed.

use super::super::row_order::{LINK, Shared};
use super::paging::LINKABLE;
use super::request::{Fetch, Request};
use super::stall::Gain;
use super::{PageArrival, Stage, Sweep};

// A walk adds one concurrent request for every this many pages read.
const PAGES_PER_REQUEST: u64 = 4;

/// What to do with the next page.
enum Verdict {
    Join,
    /// It cannot be linked, and searching for the link is not worth it.
    JoinUnlinked,
    /// It waits for the pages that link it.
    Hold,
    /// It was requested when those before it were expected to be longer, and is requested again.
    Drop,
}

impl Sweep {
    /// The next page to request, unless enough are in flight.
    pub(super) fn request_ahead(&mut self) -> Option<Request> {
        let in_flight = self.in_flight.pages_ahead();
        let concurrent_pages = u64::try_from(self.settings.concurrent_pages)
            .unwrap_or(1)
            .max(1);
        if in_flight >= (self.proving.plain_pages() / PAGES_PER_REQUEST).clamp(1, concurrent_pages)
        {
            return None;
        }
        let offset = if in_flight == 0 {
            self.next_offset()
        } else {
            let certain = !self.delivery.has_unnamed_rows()
                && !self.stall.is_barren()
                && self.next_to_prove_end().is_none();
            if !certain || self.proving.left() <= in_flight {
                return None;
            }
            self.paging.offset_ahead(self.totals.last)?
        };
        let (room, size) = (self.delivery.room(), self.settings.page_size);
        let limit = self.paging.limit_for(room, in_flight, size)?;
        self.paging.plan(offset, limit);
        Some(self.in_flight.send_ahead(Fetch::Page { offset, limit }))
    }

    /// The offset of the next page.
    fn next_offset(&self) -> u64 {
        let special = || self.next_to_prove_end().or(self.may_be_hidden_behind());
        if !self.paging.is_empty()
            && let Some(offset) = special()
        {
            return offset;
        }
        let overlapping = !self.delivery.has_unnamed_rows() && !self.stall.is_barren();
        self.paging.next_offset(overlapping)
    }

    /// Where more rows may follow an empty page: services whose pages are short anyway may omit
    /// rows.
    fn may_be_hidden_behind(&self) -> Option<u64> {
        let offset = self.paging.after_empty_pages()?;
        let promised = self.totals.last.is_some_and(|total| offset < total);
        let hidden = self.list_end.had_more_after_short_page()
            || self.delivery.known().is_empty()
            || self.promises_a_page();
        (hidden && promised && !self.list_end.was_refused()).then_some(offset)
    }

    /// Joins the arrived pages that are next in order.
    pub(super) fn join_arrived(&mut self) {
        while matches!(self.stage, Stage::Sweeping)
            && let Some(page) = self.in_flight.next_in_order()
        {
            self.take_in_order(page);
        }
        if self.is_over() {
            self.in_flight.clear();
        }
    }

    fn take_in_order(&mut self, mut page: PageArrival) {
        let shared = self.place(&mut page);
        match self.judge(&page, &shared) {
            Verdict::Hold => return self.hold(page),
            Verdict::Drop => return self.in_flight.clear(),
            Verdict::JoinUnlinked => {
                self.report.evidence.missing_links += 1;
                if self.paging.usual_page() > LINK && !page.reduced {
                    self.linking.give_up();
                }
            }
            Verdict::Join => {}
        }
        self.join(page, shared);
        self.decide();
    }

    fn judge(&self, page: &PageArrival, shared: &Shared) -> Verdict {
        let (before, now) = (self.totals.last, page.total());
        // Unseen rows may have moved below the offset that returned nothing.
        let shrank = matches!((before, now), (Some(before), Some(now)) if now < before);
        // No link is needed: the page is past the end of the list.
        let at_or_past = self.paging.at_end() || (page.offset >= self.paging.end() && !shrank);
        // The same if known rows come instead of an empty page, unless the list became shorter.
        let told = before.is_some() && now.is_some();
        let instead = !page.rows.is_empty()
            && told
            && !shrank
            && (!page.elsewhere || self.linking.ends_with_the_last_row(page));
        let past_end = page.is_past_end() && (at_or_past || instead);
        let promised = before.is_some_and(|total| page.offset < total);
        // A later total, from further back, distinguishes the end from a refusal.
        if past_end && promised && self.paging.last_full() && page.refusal.is_some() {
            return Verdict::Hold;
        }
        // It was requested before it was known how short the pages before it are.
        let too_far = self.paging.end().max(self.next_offset()) < page.offset;
        // Unless it is linked, the list's end does not show what was deleted before it.
        let adds_nothing = self.adds_nothing(page) && !page.ends_the_list();
        if !page.was_received() {
            Verdict::Join
        } else if self.paging.was_reduced() && too_far && !past_end {
            Verdict::Drop
        } else if self.paging.is_empty() || past_end || shared.links() || adds_nothing {
            Verdict::Join
        } else if !self.looks_behind(page) && self.may_not_link(page) {
            Verdict::JoinUnlinked
        } else {
            Verdict::Hold
        }
    }

    /// Whether a missing link is not worth searching for.
    fn may_not_link(&self, page: &PageArrival) -> bool {
        self.report.evidence.inversions > 0
            || self.delivery.has_unnamed_rows()
            || page.has_unnamed_rows()
            || self.paging.usual_page() < LINKABLE
            || self.paging.follows_row_not_read()
            || (page.reduced && page.applied < LINKABLE)
    }

    /// Whether all of a page's rows are within what was read.
    pub(super) fn adds_nothing(&self, page: &PageArrival) -> bool {
        let within = page.end() <= self.paging.end();
        within && !page.is_past_end() && self.delivery.knows_all_of(page)
    }

    /// How many known rows follow a page, because rows inserted before them have pushed them
    /// further back; those are not read again.
    fn pushed_back(&self, page: &PageArrival, shared: &Shared) -> u64 {
        let cut_short = page.received() < page.applied && !self.list_end.had_more_below_limit();
        let last = cut_short && page.total().is_none();
        let end = page.end() + shared.behind;
        let past_total = page.total().is_some_and(|total| end > total);
        // Once the order has changed, the rows' ranks do not tell.
        let unordered = self.report.evidence.inversions > 0;
        if last || page.ends_the_list() || past_total || unordered {
            0
        } else {
            shared.behind
        }
    }

    /// Adds a page to the row order and delivers its new rows.
    pub(super) fn join(&mut self, page: PageArrival, shared: Shared) {
        let first = self.paging.is_empty();
        let end_before = self.paging.end();
        self.note_shared(&page, &shared);
        if !first && shared.links() {
            self.report.evidence.links += 1;
            let overlapped = end_before.saturating_sub(page.offset);
            self.linking.note_link(&shared, overlapped);
            self.paging.note_link();
        }
        let pushed_back = self.pushed_back(&page, &shared);
        self.paging.join(&page, pushed_back);
        let end = self.paging.end();
        let reached = page.total().is_some_and(|total| end >= total);
        if page.received() < page.applied && !reached && !page.is_past_end() {
            self.list_end.note_short_page();
        }
        self.linking.note_first_row(&page);
        let repeated = self.linking.replace_previous_page(&page);
        let probes = self.looks_behind(&page);
        let before = (!first).then_some(end_before);
        self.list_end.note_page(&page, &shared, end, before, probes);
        let whole = first && page.is_whole();
        // A list that fits in one response needs no order.
        if !(whole && self.paging.at_end()) {
            self.linking.join(&page);
        }
        let gain = self.gain(&page, end_before, repeated);
        if page.refusal.is_some() {
            self.list_end.note_refusal();
        }
        let received = page.received();
        let fresh = self.deliver(page);
        if whole && fresh == received {
            self.counting.note_whole_list();
        }
        let gain = Gain { fresh, ..gain };
        if gain.is_new() {
            self.list_end.note_more();
        }
        self.stall.note(&gain);
    }

    /// What a page that was just joined brings, except for its new rows.
    fn gain(&self, page: &PageArrival, end_before: u64, repeated: bool) -> Gain {
        let past_end = page.is_past_end();
        let end = self.paging.end();
        // Inserted rows pushed known ones back, as long as the total promises more.
        let full = page.received() >= page.applied;
        let more = full || page.total().is_none_or(|total| end < total);
        let advance = end.saturating_sub(end_before);
        let rereads = page.end() < end_before;
        let usable = !past_end && page.refusal.is_none() && !repeated && !page.strayed;
        Gain {
            fresh: 0,
            unnamed: page.has_unnamed_rows(),
            past_end,
            repeated,
            goes_on: usable && more && (rereads || advance > 0),
            rereads,
            advance,
            usual: self.paging.usual_page(),
        }
    }

    /// Records what a page shows of the list's order and size, wherever it is joined.
    pub(super) fn note_shared(&mut self, page: &PageArrival, shared: &Shared) {
        let evidence = &mut self.report.evidence;
        evidence.inversions += shared.inversions;
        evidence.rows_moved += shared.moved;
        self.linking.note_offset(page);
        let content_of = |id| self.linking.content_of(id);
        self.look_ups.note(&shared.vanished, content_of);
        if page.refusal.is_none() && page.was_received() {
            let end = (!page.is_past_end()).then(|| page.end());
            self.totals.take(page.said_total, end);
            if self.paging.is_empty() {
                self.report.total_first = page.said_total;
            }
            self.report.total_last = page.said_total;
        }
    }

    /// Delivers a page's new rows, and counts the page; returns how many are new.
    pub(super) fn deliver(&mut self, page: PageArrival) -> u64 {
        let sweeping = matches!(self.stage, Stage::Sweeping);
        let strayed = page.strayed;
        let below_limit = page.is_shorter_than_it_says();
        let to = page.offset + page.rows.len() as u64;
        let timing = page.timing;
        let delivered = self.delivery.deliver(page, &mut self.report);
        let fresh = delivered.fresh;
        let regular = self.paging.is_regular(fresh);
        // Pages of passes after the sweep count as proving requests, and so do pages from another
        // offset that bring little. Some services misstate the offset of pages that are right.
        if sweeping && (!strayed || regular) {
            self.list_end.note_below_limit(below_limit, fresh > 0);
            self.proving.note_page(to, delivered.unnamed, regular);
        }
        self.counting.note_page(timing, fresh);
        self.end_at_max_items();
        fresh
    }

    /// Decides whether the sweep continues after the page just joined.
    pub(super) fn decide(&mut self) {
        if self.cut {
            return;
        }
        if self.in_flight.pages_ahead() == 0 && self.is_swept() {
            self.close();
        } else {
            self.mark_checkpoint();
        }
    }

    /// Whether no page is left to sweep.
    fn is_swept(&self) -> bool {
        let left = self.proving.left() > 0;
        if self.next_to_prove_end().is_some() && left {
            return false;
        }
        let total = self.totals.last;
        let reached = total.is_some_and(|total| self.paging.end() >= total);
        let short_pages = self.list_end.had_short_pages();
        let confirmed = self.paging.at_end() && (!short_pages || self.stall.is_barren());
        let past_end = reached && !self.paging.last_full() && !short_pages;
        confirmed
            || past_end
            || self.end_is_proved()
            || self.paging.is_stuck_at(self.next_offset())
            || self.stall.is_over(total.is_some(), reached)
            || !left
    }

    /// Adds a checkpoint to the last page; a resumed walk requests again what is in flight.
    fn mark_checkpoint(&mut self) {
        if self.settings.checkpoints {
            let checkpoint = self.checkpoint();
            if let Some(page) = self.delivery.last_page() {
                page.checkpoint = Some(Box::new(checkpoint));
            }
        }
    }

    /// The offset of the next page while the end of the list is being proved.
    pub(super) fn next_to_prove_end(&self) -> Option<u64> {
        let linkable = self.paging.longest_page() > LINK
            && !self.delivery.has_unnamed_rows()
            && self.report.evidence.inversions == 0
            && !self.promises_a_page();
        self.list_end
            .next_offset(self.paging.end())
            .filter(|_| linkable)
    }

    /// Whether this page was requested to show that nothing follows.
    pub(super) fn looks_behind(&self, page: &PageArrival) -> bool {
        self.list_end.is_short() && self.next_to_prove_end() == Some(page.offset)
    }

    /// Whether the end is proved without the total.
    pub(super) fn end_is_proved(&self) -> bool {
        self.list_end.is_proved() && !self.promises_a_page()
    }

    pub(super) fn promises_a_page(&self) -> bool {
        self.paging.lacks_a_page(self.totals.last)
    }
}
