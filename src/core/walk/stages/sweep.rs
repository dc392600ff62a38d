//! The sweep: which page is requested next, which pages link, and where the list ends.

use super::arrived::ArrivedPage;
use super::chain::{Chain, Joined, LINK, Shared};
use super::pass::{LastPage, OVERLAP};
use super::{Fetch, ListWalk, Stage};
use crate::decode::page::Row;

// One more page is requested ahead for each four that linked in a row.
const LINKS_PER_REQUEST: u64 = 4;
// The list may begin anew this often; one that changes more cannot be followed.
const MOST_BEGINNINGS: u32 = 8;
// The most short pages of few rows at the end of a list that grows there with each request.
const MOST_DRIBBLES: u64 = 12;
// Known rows that inserts pushed back are skipped, until that led nowhere twice.
const MOST_JUMPS: u32 = 2;

/// What a page of the pool is to the chain.
enum Verdict {
    /// It shares unchanged rows with the chain.
    Links(Shared),
    /// Nothing can link it, or the order changes anyway: it is joined without.
    DoesNotLink(Shared),
    /// It is at the list's start: the chain begins with it, whatever was read before.
    Begins,
    /// It shows nothing behind the end.
    ShowsNothing,
    /// It lies among rows that were read.
    AddsNothing,
    /// Pages before it may link it.
    Waits,
}

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
        let passes = if pass.last.is_none() { self.report.sweeps - 1 } else { 0 };
        let size = (0..passes).fold(size, |size, _| size.half().unwrap_or(size));
        let shared = pass.end.saturating_sub(offset);
        let limit = self.limit_for_room(size, shared, ahead)?;
        let most = u64::from(limit.get());
        let expected = pass.last.as_ref().map_or(most, |last| last.received.min(most));
        self.pass.planned = offset + expected;
        Some(Fetch::Page { offset, limit })
    }

    /// The offset of the next page, if none is in flight.
    fn next_offset(&self) -> u64 {
        let pass = &self.pass;
        if pass.barren > 0 {
            return pass.offset_behind(self.length.longest_or(self.settings.page_size));
        }
        let overlap = if self.may_prove() && !self.delivery.unnamed {
            pass.overlap()
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
        let most = most.min(1 + pass.links_in_a_row / LINKS_PER_REQUEST);
        let planned = pass.planned.max(pass.end);
        let promised = self.totals.last.is_some_and(|total| planned < total)
            && pass.until.is_none_or(|until| planned < until);
        let certain = pass.barren == 0
            && 2 * last.received >= self.length.longest
            && !self.delivery.unnamed
            && self.may_prove();
        (ahead < most && promised && certain).then(|| planned - pass.overlap())
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
        self.join_pool();
        if self.is_over() || self.in_flight > 0 {
            return;
        }
        if let Stage::Back(_) = self.stage {
            self.compare_spelling();
        } else if let Some(target) = self.pass.first_new().filter(|_| !self.pass.proved) {
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

impl ListWalk {
    fn judge(&self, page: &ArrivedPage) -> Verdict {
        let pass = &self.pass;
        let first = pass.last.is_none();
        if page.is_left_out() {
            let next = page.offset <= pass.end;
            return if next { Verdict::DoesNotLink(Shared::default()) } else { Verdict::Waits };
        }
        let rows: &[Row] = if self.is_elsewhere(page) { &[] } else { &page.rows };
        let at_start = page.offset == pass.start && page.refusal.is_none();
        if rows.is_empty() && !at_start {
            // Below the end, rows must be there: a link is missing.
            let behind = !first && page.offset >= pass.end;
            return if behind { Verdict::ShowsNothing } else { Verdict::Waits };
        }
        if page.waits && pass.chain.knows_all(rows) {
            return Verdict::AddsNothing;
        }
        let shared = pass.chain.compare(rows);
        let in_order = shared.inversions == 0;
        let disordered = !in_order || self.report.evidence.inversions > 0;
        let due = page.offset <= pass.end;
        // Nothing links rows without ids, or over a row that was left out.
        let unlinkable = pass.chain.is_empty() || self.delivery.unnamed;
        if !first && in_order && shared.unchanged >= LINK.min(rows.len().max(1)) {
            Verdict::Links(shared)
        } else if !first && (disordered || unlinkable) && due {
            Verdict::DoesNotLink(shared)
        } else if at_start && (first || pass.beginnings < MOST_BEGINNINGS) {
            Verdict::Begins
        } else if page.end() + OVERLAP < pass.end {
            Verdict::AddsNothing
        } else {
            Verdict::Waits
        }
    }

    /// Whether a page shows other rows than those at its offset, as some services do for offsets past
    /// the end: their first or their last page.
    fn is_elsewhere(&self, page: &ArrivedPage) -> bool {
        let pass = &self.pass;
        let first = page.rows.first().and_then(|row| row.id);
        let past_total = page.total().is_some_and(|total| page.offset >= total);
        if page.offset == pass.start || page.rows.is_empty() || pass.last.is_none() {
            return false;
        }
        if page.states_another_offset() {
            return past_total || self.delivery.knows_all(&page.rows);
        }
        // Rows that were pushed to a place behind the end are few, and the last ones.
        let pushed = page.received() <= OVERLAP && !past_total;
        let before_end = match pass.end.checked_sub(page.offset) {
            Some(rows @ 1..) => Some(rows),
            _ => pushed.then_some(page.received()),
        };
        let in_place = before_end.is_some_and(|rows| pass.chain.before_end(rows) == first);
        let ordered = self.report.evidence.inversions == 0;
        let known = || match ordered {
            true => pass.chain.knows_all(&page.rows),
            false => self.delivery.knows_all(&page.rows),
        };
        !in_place && (past_total || (ordered && page.offset >= pass.end)) && known()
    }

    fn act(&mut self, page: ArrivedPage, verdict: Verdict) {
        match verdict {
            Verdict::Links(shared) => self.join(page, shared, true),
            Verdict::DoesNotLink(shared) => self.join(page, shared, false),
            Verdict::Begins => {
                self.pass.beginnings += 1;
                self.pass.chain = Chain::new(self.doubts.by_id);
                self.pass.chained = true;
                self.pass.cut_at = None;
                self.join(page, Shared::default(), true);
            }
            Verdict::ShowsNothing => {
                self.look_behind(&page);
                self.deliver(page);
            }
            Verdict::AddsNothing => {
                self.deliver(page);
            }
            Verdict::Waits => {}
        }
    }

    /// Takes a page that shows nothing behind the end.
    fn look_behind(&mut self, page: &ArrivedPage) {
        if page.offset != self.next_offset() {
            return;
        }
        // A stale total may promise a few rows more; if it promises a page, the service hides rows.
        let total = page.total().or(self.totals.last);
        let promised = self.length.promises_a_page(total, self.pass.end);
        // Some services send their first or their last page instead of an empty one.
        let largest = self.length.largest();
        let short = page.is_short(largest) && page.applied(largest).is_some();
        let nothing = page.rows.is_empty() || page.states_another_offset() || short;
        let pass = &mut self.pass;
        pass.proved |= pass.confirmed && pass.barren == 1 && nothing && !promised;
        pass.note_nothing(page);
    }

    /// Adds a page to the chain and delivers its new rows.
    pub(super) fn join(&mut self, page: ArrivedPage, shared: Shared, linked: bool) {
        let first = self.pass.last.is_none();
        let end_before = self.pass.end;
        let expected = page.offset >= self.next_offset() && !page.waits;
        let whole = first && page.offset == 0 && page.total() == Some(page.received());
        self.note_link(&page, &shared, linked);
        let pass = &mut self.pass;
        let repeats = pass.last.is_some_and(|last| last.repeats(&page));
        // A list that fits one page needs no chain.
        let joined = if whole && page.is_short(self.length.largest()) {
            Joined::first(page.received())
        } else {
            pass.chain.join(&page.rows, page.number)
        };
        if let Some((rank, rows)) = pass.cut_at
            && joined.rank > rank
        {
            self.length.note_cut(rows);
        }
        let unnamed = if repeats { 0 } else { page.unnamed() };
        let appended = joined.appended + unnamed;
        if appended > 0 {
            pass.missing_links = 0;
        }
        let short = page.is_short(self.length.largest());
        // Known rows that inserts pushed back need not be read again.
        let jumps = linked && !short && pass.missing_links < MOST_JUMPS && page.offset < end_before;
        pass.end = match (repeats, jumps) {
            (true, _) => end_before,
            (_, true) => page.end() + joined.behind,
            (_, false) => page.end(),
        };
        let dribbles = short
            && appended <= OVERLAP
            && page.total().is_none_or(|total| total <= pass.end);
        pass.dribbles = if dribbles { pass.dribbles + 1 } else { 0 };
        if appended > 0 || pass.end != end_before {
            pass.barren = 0;
        } else if expected || page.rows.is_empty() {
            pass.note_nothing(&page);
        }
        let nothing_new = appended == 0 && !first;
        let sure = short
            && page.applied(self.length.largest()).is_some()
            && !page.rows.is_empty()
            && joined.behind == 0
            && !self.length.is_cut_short();
        let again = pass.confirmed && page.offset >= end_before;
        pass.confirmed = pass.chained && nothing_new && sure;
        let ends = pass.chained
            && match page.total() {
                Some(total) if total == pass.end => {
                    short && (nothing_new || !self.length.is_cut_short())
                }
                // A total below what was read is cached.
                Some(total) if total < pass.end => sure,
                // The offset behind the end must show nothing new, too.
                total => again && pass.confirmed && !self.length.promises_a_page(total, pass.end),
            };
        if ends {
            pass.proved = true;
            pass.at_total = page.total() == Some(pass.end);
        }
        let cut_at = (joined.rank, page.received());
        pass.cut_at = (short && !page.rows.is_empty() && !ends).then_some(cut_at);
        pass.last = Some(LastPage::of(&page, short, appended > 0));
        let (number, received) = (page.number, page.received());
        let fresh = self.deliver(page);
        if whole && fresh == received {
            self.totals.note_whole_list(number);
        }
        self.mark_checkpoint();
    }

    /// Notes what a page shows of the list's order before it is joined.
    fn note_link(&mut self, page: &ArrivedPage, shared: &Shared, linked: bool) {
        let pass = &mut self.pass;
        let evidence = &mut self.report.evidence;
        evidence.inversions += shared.inversions;
        pass.chained &= linked;
        if linked {
            evidence.links += u64::from(shared.unchanged > 0);
            pass.note_link();
            let vanished = pass.chain.vanished(shared, &page.rows, page.sent_after);
            self.vanished.note(vanished);
            if let Stage::Back(back) = &mut self.stage {
                back.linked = true;
            }
        }
        // Once the order changed, or over a row that was left out, the chain tells nothing.
        if evidence.inversions > 0 || page.is_left_out() {
            pass.chain = Chain::new(self.doubts.by_id);
        }
    }

    /// Delivers a page's new rows; returns how many there are.
    pub(super) fn deliver(&mut self, page: ArrivedPage) -> u64 {
        let number = page.number;
        let usual = self.length.longest.min(page.limit);
        let unnamed = page.unnamed() > 0;
        let fresh = self.delivery.deliver(page, &mut self.report);
        if fresh > 0 {
            self.totals.note_fresh(number);
            self.pass.found += fresh;
        }
        let regular = fresh > 0 && 2 * fresh >= usual.saturating_sub(OVERLAP);
        let plain = (regular && self.report.sweeps == 1) || unnamed || self.plain_pages == 0;
        self.plain_pages += u64::from(plain);
        self.end_at_max_items();
        fresh
    }

    /// Adds a checkpoint to the last page; a resumed walk requests again what is in flight.
    fn mark_checkpoint(&mut self) {
        if self.settings.checkpoints && self.report.sweeps == 1 && !self.cut {
            let checkpoint = self.checkpoint();
            if let Some(page) = self.delivery.last_page() {
                page.checkpoint = Some(Box::new(checkpoint));
            }
        }
    }

    /// Whether nothing is left to request, whatever that proves.
    fn is_swept(&self) -> bool {
        let pass = &self.pass;
        if pass.proved || self.left() == 0 || self.doubts.failed_proofs > 0 {
            return true;
        }
        let Some(last) = &pass.last else {
            return pass.barren > 0;
        };
        // Rows that moved unread are often found at the start.
        let complete = self.linked_once && self.missing() == Some(0);
        let complete = complete || (self.report.sweeps > 1 && self.are_all_counted());
        let offset = self.next_offset();
        let refused = pass.refused_at.is_some_and(|refused| offset >= refused);
        let at_total = last.short && last.total == Some(pass.end) && !self.length.is_cut_short();
        let past_total = last.total.is_some_and(|total| total <= pass.end);
        let barren = pass.barren >= if past_total { 1 } else { 2 };
        let nothing_left = barren && self.totals.last.is_none_or(|total| offset >= total);
        complete
            || refused
            || at_total
            || nothing_left
            || pass.dribbles >= MOST_DRIBBLES
            || pass.until.is_some_and(|until| pass.end >= until)
    }
}
