//! Linking: what a page of the pool is to the chain, and how it is joined.

use super::arrived::ArrivedPage;
use super::chain::{Chain, Joined, LINK, Shared};
use super::pass::{LastPage, OVERLAP};
use super::{ListWalk, Stage};
use crate::decode::page::Row;

// The chain may begin this often, the first time included; a list that changes more cannot be followed.
const MOST_BEGINNINGS: u32 = 4;
// Known rows that inserts pushed back are skipped, until two links were missing without a new row.
const MOST_JUMPS: u32 = 2;

/// What a page of the pool is to the chain.
pub(super) enum Verdict {
    /// It shares unchanged rows with the chain.
    Links(Shared),
    /// Nothing can link it, or the order changes anyway: it is joined without.
    DoesNotLink(Shared),
    /// It is at the list's start: the chain begins with it, whatever was read before.
    Begins,
    /// It shows nothing behind the end.
    ShowsNothing,
    /// It ends well before the joined pages do, or waited and is known: it is only delivered.
    AddsNothing,
    /// Pages before it may link it.
    Waits,
}

impl ListWalk {
    /// Decides what a page is to the chain.
    pub(super) fn judge(&self, page: &ArrivedPage) -> Verdict {
        let pass = &self.pass;
        let first = pass.last.is_none();
        if page.is_left_out() {
            let past_total = self.totals.last.is_some_and(|total| page.offset >= total);
            return if page.offset > pass.end {
                Verdict::Waits
            } else if past_total {
                Verdict::ShowsNothing
            } else {
                Verdict::DoesNotLink(Shared::default())
            };
        }
        let rows: &[Row] = if self.is_elsewhere(page) {
            &[]
        } else {
            &page.rows
        };
        let at_start = page.offset == pass.start && page.refusal.is_none();
        if rows.is_empty() && !at_start {
            return if !first && page.offset >= pass.end {
                Verdict::ShowsNothing
            } else {
                // Below the end, rows must be there: a link is missing.
                Verdict::Waits
            };
        }
        if page.waits && pass.chain.knows_all(rows) {
            return Verdict::AddsNothing;
        }
        let shared = pass.chain.compare(rows);
        let in_order = shared.inversions == 0;
        let disordered = !in_order || self.report.evidence.inversions > 0;
        let due = page.offset <= pass.end;
        // Nothing links rows without ids, over a row that was left out, or next to one that fails.
        let cornered = page.reduced && page.offset == pass.end;
        let unlinkable = pass.chain.is_empty() || self.delivery.unnamed || cornered;
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
    pub(super) fn is_elsewhere(&self, page: &ArrivedPage) -> bool {
        let pass = &self.pass;
        let first = page.rows.first().and_then(|row| row.id);
        let past_total = page.total().is_some_and(|total| page.offset >= total);
        if page.offset == pass.start || page.rows.is_empty() || pass.last.is_none() {
            return false;
        }
        if page.states_another_offset() {
            return past_total || self.delivery.knows_all(&page.rows);
        }
        // A few last rows, pushed behind the end by inserts, are in their place.
        let few = page.received() <= OVERLAP.min(self.length.longest - 1);
        let pushed = few && !past_total;
        let before_end = match pass.end.checked_sub(page.offset) {
            Some(rows @ 1..) => Some(rows),
            _ => pushed.then_some(page.received()),
        };
        let in_place = before_end.is_some_and(|rows| pass.chain.before_end(rows) == first);
        let ordered = self.report.evidence.inversions == 0;
        let known = || match ordered && self.length.can_link() {
            true => pass.chain.knows_all(&page.rows),
            false => self.delivery.knows_all(&page.rows),
        };
        !in_place && (past_total || (ordered && page.offset >= pass.end)) && known()
    }

    pub(super) fn act(&mut self, page: ArrivedPage, verdict: Verdict) {
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
                self.pass.saw_nothing = true;
                self.look_behind(&page);
                self.deliver(page);
            }
            Verdict::AddsNothing => {
                self.deliver(page);
            }
            Verdict::Waits => {}
        }
    }

    /// Adds a page to the chain and delivers its new rows.
    pub(super) fn join(&mut self, page: ArrivedPage, shared: Shared, linked: bool) {
        let first = self.pass.last.is_none();
        let whole = first && page.offset == 0 && page.total() == Some(page.received());
        let expected = page.offset >= self.next_offset() && !page.waits;
        self.note_order(&page, &shared, linked);
        let whole_in_one = whole && page.is_short(self.length.largest());
        let pass = &mut self.pass;
        let repeats = pass.last.is_some_and(|last| last.repeats(&page));
        // A list that fits one page needs no chain.
        let joined = if whole_in_one {
            Joined {
                appended: page.received(),
                behind: 0,
                rank: page.received(),
            }
        } else {
            pass.chain.join(&page.rows, page.number)
        };
        if let Some((rank, rows)) = pass.cut_at
            && joined.rank > rank
        {
            self.length.note_cut(rows);
        }
        let short = page.is_short(self.length.largest());
        let unnamed = if repeats { 0 } else { page.unnamed() };
        let appended = joined.appended + unnamed;
        if appended > 0 {
            pass.missing_links = 0;
        }
        let end_before = pass.end;
        // Known rows that inserts pushed back need not be read again.
        let jumps = linked && !short && pass.missing_links < MOST_JUMPS && page.offset < end_before;
        pass.end = match (repeats, jumps) {
            (true, _) => end_before,
            (_, true) => page.end() + joined.behind,
            (_, false) => page.end(),
        };
        if appended > 0 || pass.end != end_before {
            pass.barren = 0;
        } else if expected || page.rows.is_empty() {
            pass.note_nothing(&page);
        }
        self.note_end(&page, joined, end_before, first, appended);
        self.pass.last = Some(LastPage::of(&page, appended > 0));
        let (number, received) = (page.number, page.received());
        let (offset, limit) = (page.offset, page.limit);
        let unnamed = !page.is_left_out() && page.unnamed() > 0;
        let fresh = self.deliver(page);
        let rows = if unnamed { received } else { fresh };
        self.pass.found_last = fresh;
        self.count_plain_page(offset, limit, rows);
        if whole && fresh == received {
            self.totals.whole = Some(number);
        }
    }

    /// Notes what a page shows of the list's order before it is joined.
    fn note_order(&mut self, page: &ArrivedPage, shared: &Shared, linked: bool) {
        let pass = &mut self.pass;
        let evidence = &mut self.report.evidence;
        evidence.inversions += shared.inversions;
        pass.chained &= linked;
        if linked {
            evidence.links += u64::from(shared.unchanged > 0);
            pass.note_link();
            // More shared rows than the pages overlap by were pushed back.
            let overlapped = pass.end.saturating_sub(page.offset);
            if pass.last.is_some() {
                pass.shifted += (shared.unchanged as u64).saturating_sub(overlapped);
            }
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
        let fresh = self.delivery.deliver(page, &mut self.report);
        if fresh > 0 {
            self.totals.note_fresh(number);
            self.pass.found += fresh;
        }
        self.end_at_max_items();
        fresh
    }

    /// Counts which part of a plain loop's page the new rows of a joined page fill.
    fn count_plain_page(&mut self, from: u64, limit: u64, rows: u64) {
        let full = self.length.longest.clamp(1, limit);
        // Offsets that are read again, from the start or going back, count once.
        let further = self.pass.end.saturating_sub(from.max(self.reach));
        self.reach = self.reach.max(self.pass.end);
        if self.report.sweeps == 1 {
            self.plain_pages += rows.min(further) as f64 / full as f64;
        }
    }
}
