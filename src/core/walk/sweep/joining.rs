//! A page that arrived: linked to earlier ones, delivered to the reader, counted.

use super::super::row_order::{LINK, Shared, content};
use super::{OVERLAP, PageArrival, Stage, Sweep};
use crate::core::api::Natural;
use crate::core::decode::page::{Row, Unreadable};
use crate::core::walk::WalkedPage;

// The most vanished rows fetched by id in one walk.
const MOST_LOOKED_UP: usize = 16;
// After this many links in a row, a widened overlap becomes narrower again.
const CLEAN_LINKS: u32 = 8;
// After this many consecutive pages without new rows, the walk assumes that the list is going in
// circles.
const BARREN_PAGES: u32 = 10;
// The same past the total,
const BARREN_PAGES_PAST_TOTAL: u32 = 1;
// and without a total: of two such pages, the second begins after all known rows.
const BARREN_PAGES_WITHOUT_TOTAL: u32 = 2;
// If pages have fewer rows, a missing link is not searched for.
pub(super) const LINKABLE: u64 = 8;
// A page with fewer new rows than this part of the longest page is scant.
const SCANT: u64 = 8;

impl Sweep {
    /// Joins the arrived pages that are next in order.
    pub(super) fn join_arrived(&mut self) {
        while matches!(self.stage, Stage::Sweeping)
            && let Some(number) = self.ahead.front()
            && let Some(arrived) = self.arrived.remove(number)
        {
            self.ahead.pop_front();
            self.sweep(arrived);
        }
        if self.is_over() {
            self.arrived.clear();
            self.ahead.clear();
        }
    }

    pub(super) fn sweep(&mut self, mut arrived: PageArrival) {
        let continues = self.continues_the_order(&arrived) || self.confirms_the_end(&arrived);
        // Known rows may be read again; a page that the service sends for offsets past the end
        // comes again unchanged.
        let again = self.is_an_edge(&arrived) || self.repeats_the_last(&arrived);
        let idle = self.barren_pages > 1 && self.last_idle && again;
        match continues {
            true => arrived.settle_in_place(),
            false => self.settle(&mut arrived, idle.then_some(self.end)),
        }
        let mut shared = self.compare(&arrived);
        let elsewhere = self.cannot_lie_there(&arrived)
            || self.is_a_small_list_again(&arrived)
            || self.stood_far_ahead(&arrived, &shared);
        if !continues && elsewhere {
            arrived.put_past_end();
            shared = self.compare(&arrived);
        }
        let first = self.last_offset.is_none();
        let (before, now) = (self.totals.last, arrived.total());
        // Unseen rows may have moved below the offset that returned nothing.
        let shrank = matches!((before, now), (Some(before), Some(now)) if now < before);
        // No link is needed: the page is past the end of the list.
        let at_or_past = self.at_end || (arrived.offset >= self.end && !shrank);
        // The same if known rows come instead of an empty page, unless the list became shorter.
        let told = before.is_some() && now.is_some();
        let instead = !arrived.rows.is_empty() && told && !shrank;
        let instead = instead && (!arrived.elsewhere || self.ends_with_the_last_row(&arrived));
        let past_end = arrived.is_past_end() && (at_or_past || instead);
        let hopeless = !self.looks_behind(&arrived) && self.may_not_link(&arrived);
        let promised = self.totals.last.is_some_and(|total| arrived.offset < total);
        // A later total, from further back, distinguishes the end from a refusal.
        if past_end && promised && self.last_full && arrived.refusal.is_some() {
            self.hold(arrived);
            return;
        }
        // Unless it is linked, the list's end does not show what was deleted before it.
        let adds_nothing = self.adds_nothing(&arrived) && !arrived.ends_the_list();
        let joins = first || past_end || shared.links() || adds_nothing;
        if !joins && !hopeless {
            self.hold(arrived);
            return;
        }
        if !joins {
            self.report.evidence.missing_links += 1;
            self.links_given_up += u64::from(self.longest_page > LINK);
        }
        self.join(arrived, shared);
        self.decide();
    }

    /// Whether a missing link is not worth searching for.
    fn may_not_link(&self, arrived: &PageArrival) -> bool {
        self.report.evidence.inversions > 0
            || self.unnamed_rows > 0
            || arrived.rows.iter().any(|row| row.id.is_none())
            || self.longest_page < LINKABLE
    }

    /// Whether all of a page's rows are within what was read.
    pub(super) fn adds_nothing(&self, arrived: &PageArrival) -> bool {
        let within = arrived.offset + arrived.received() <= self.end;
        within && !arrived.is_past_end() && self.holds_all(arrived)
    }

    pub(super) fn holds_all(&self, arrived: &PageArrival) -> bool {
        let held = |id: i64| self.seen.contains(id.cast_unsigned());
        arrived.rows.iter().all(|row| row.id.is_some_and(held))
    }

    /// How many known rows follow a page. Once the order has changed, their ranks do not tell.
    fn pushed_back(&self, arrived: &PageArrival, shared: &Shared) -> u64 {
        let end = arrived.offset + arrived.received() + shared.behind;
        let past_total = arrived.total().is_some_and(|total| end > total);
        match self.report.evidence.inversions {
            0 if !past_total => shared.behind,
            _ => 0,
        }
    }

    pub(super) fn compare(&self, arrived: &PageArrival) -> Shared {
        self.row_order
            .compare(arrived.rows_in_place(), arrived.ends_the_list())
    }

    /// Adds a page to the chain and delivers its new rows.
    pub(super) fn join(&mut self, arrived: PageArrival, shared: Shared) {
        let first = self.last_offset.is_none();
        let received = arrived.received();
        let end_before = self.end;
        let before = (!first).then_some(end_before);
        let in_place = !arrived.is_past_end();
        let answered = arrived.refusal.is_none();
        self.note_shared(&arrived, &shared);
        if !first && shared.links() {
            self.report.evidence.links += 1;
            let overlapped = self.end.saturating_sub(arrived.offset);
            self.shifted |= shared.unchanged > overlapped;
            self.clean_links += 1;
            if self.clean_links >= CLEAN_LINKS {
                self.clean_links = 0;
                self.overlap = (self.overlap / 2).max(OVERLAP);
            }
        }
        if !arrived.is_past_end() || self.last_offset.is_none() {
            // Rows inserted before them have pushed known rows further back; those are not read
            // again.
            let cut_short = received < arrived.applied && !self.shorter_then_more;
            let last = cut_short && arrived.total().is_none();
            let pushed_back = match last || arrived.ends_the_list() {
                true => 0,
                false => self.pushed_back(&arrived, &shared),
            };
            self.end = arrived.offset + received + pushed_back;
            self.last_received = received;
            self.last_reduced = arrived.reduced;
            self.longest_page = self.longest_page.max(received);
            self.last_full = received >= arrived.applied;
            self.last_to_total = arrived.total() == Some(arrived.offset + received);
        }
        let total = arrived.total();
        let reached = total.is_some_and(|total| self.end >= total);
        self.at_end = match arrived.is_past_end() {
            false => arrived.ends_the_list(),
            // The page before it must have ended the list by its own total, since rows may be
            // deleted.
            true => {
                let confirmed = self.last_to_total && total == Some(self.end);
                self.at_end || (confirmed && !arrived.elsewhere)
            }
        };
        self.short_pages |= received < arrived.applied && !reached && !arrived.is_past_end();
        if arrived.offset == 0 {
            self.first_row = arrived.rows.first().and_then(|row| row.id);
        }
        if first || !arrived.is_past_end() {
            self.last_offset = Some(arrived.offset);
            self.empty_to = None;
        }
        if arrived.is_past_end() && arrived.offset <= self.empty_to.unwrap_or(self.end) {
            // Twice as far each time: a whole block may be omitted.
            let gone_over = arrived.offset.saturating_sub(self.end);
            self.empty_to = Some(arrived.offset.saturating_add(1 + gone_over));
        }
        let came_again = self.came_again(&arrived);
        self.note_end(&arrived, &shared, before);
        let unnamed = arrived.rows.iter().any(|row| row.id.is_none());
        let whole = first && arrived.is_whole();
        // Inserted rows pushed known ones back, as long as the total promises more.
        let full = received >= arrived.applied;
        let more = full || total.is_none_or(|total| self.end < total);
        let advance = self.end.saturating_sub(end_before);
        let read_before = arrived.offset + received < end_before;
        let passes = in_place && answered && more && !came_again && !arrived.strayed;
        let passes = passes && (read_before || advance > 0);
        self.last_idle = !in_place || came_again;
        // A list that fits in one response needs no chain.
        if !(whole && self.at_end) {
            self.row_order.join(arrived.rows_in_place());
        }
        let usual = match arrived.reduced {
            true => self.longest_page.min(arrived.applied),
            false => self.longest_page,
        };
        let fresh = self.deliver(arrived);
        self.held_it_all |= whole && fresh == received;
        if (fresh > 0 && in_place) || (unnamed && !came_again) {
            self.short_then_more |= self.short_pages;
            self.barren_pages = 0;
        } else if passes {
            self.barren_pages = 0;
        } else {
            self.barren_pages += 1;
        }
        // A refused offset means that nothing can come from there.
        self.refused |= !answered;
        if unnamed
            || (passes && (advance * SCANT >= usual || read_before))
            || fresh * SCANT >= usual
        {
            self.scant_pages = 0;
        } else {
            self.scant_pages += 1;
        }
    }

    /// Whether a page with this many new rows counts as one of the list's regular pages.
    pub(super) fn is_full(&self, fresh: u64) -> bool {
        fresh > 0 && fresh * 2 >= self.longest_page.saturating_sub(self.shared_rows())
    }

    /// A plain loop would have sent one request for each full page, and one for the last.
    pub(super) fn count_proof(&mut self) {
        let others = self.answers.saturating_sub(self.plain_pages + 1);
        self.report.evidence.proving_requests = others;
    }

    /// Records what a page shows of the list's order and size, wherever it is joined.
    pub(super) fn note_shared(&mut self, arrived: &PageArrival, shared: &Shared) {
        let evidence = &mut self.report.evidence;
        evidence.inversions += shared.inversions;
        evidence.rows_moved += shared.moved;
        self.strayed |= arrived.strayed;
        for id in &shared.vanished {
            let askable = Natural::new("id", *id).is_ok();
            if !askable || self.looked_up.contains(id) {
                continue;
            }
            if self.looked_up.len() < MOST_LOOKED_UP {
                self.looked_up.insert(*id);
                // The text at its old place; a later page may show the row elsewhere with another
                // text.
                let content = self.row_order.content_of(*id);
                self.vanished.push_back((*id, content.unwrap_or_default()));
            } else {
                self.not_looked_up += 1;
            }
        }
        if arrived.refusal.is_none() {
            let end = (!arrived.is_past_end()).then(|| arrived.offset + arrived.received());
            self.totals.take(arrived.said_total, end);
            if self.last_offset.is_none() {
                self.report.total_first = arrived.said_total;
            }
            self.report.total_last = arrived.said_total;
        }
    }

    /// Whether a page repeats the previous one; if so, it replaces it.
    pub(super) fn came_again(&mut self, arrived: &PageArrival) -> bool {
        if arrived.rows.is_empty() {
            return false;
        }
        let again = self.repeats_the_last(arrived);
        self.rows_before = names(arrived).collect();
        again
    }

    /// Whether a page repeats the previous one, row for row; either may be shorter.
    fn repeats_the_last(&self, arrived: &PageArrival) -> bool {
        let same = names(arrived)
            .zip(&self.rows_before)
            .all(|(now, before)| now == *before);
        // Rows that could not be read cannot be compared.
        let read = |row: &Row| row.unreadable != Some(Unreadable::TooLarge);
        let compared = !arrived.rows.is_empty() && !self.rows_before.is_empty();
        same && compared && arrived.rows.iter().all(read)
    }

    /// Queues a page for the reader without rows that were delivered before; returns how many are
    /// new.
    pub(super) fn deliver(&mut self, arrived: PageArrival) -> u64 {
        let mut rows: Vec<Row> = Vec::with_capacity(arrived.rows.len());
        let shorter = arrived.is_shorter_than_it_says();
        let strayed = arrived.strayed;
        let to = arrived.offset + arrived.rows.len() as u64;
        let mut fresh = 0_u64;
        for row in arrived.rows {
            match row.id {
                None => self.unnamed_rows += 1,
                Some(id) if self.seen.insert(id.cast_unsigned()) => fresh += 1,
                Some(_) => {
                    self.report.repeats += 1;
                    continue;
                }
            }
            self.unreadable.take(arrived.offset, &row);
            self.report.odd_values += row.odd_values;
            self.report.unreadable_rows += u64::from(row.unreadable.is_some());
            rows.push(row);
        }
        self.report.distinct += fresh;
        // Pages of passes after the sweep, and pages from another offset, count as proving
        // requests.
        let sweeping = matches!(self.stage, Stage::Sweeping) && !strayed;
        if sweeping {
            self.shorter_then_more |= self.shorter_pages && fresh > 0;
            self.shorter_pages |= shorter;
        }
        let first_or_nameless = self.plain_pages == 0 || rows.iter().any(|row| row.id.is_none());
        // Offsets that are read again, from the start or going back, count once.
        let plain = first_or_nameless || (self.is_full(fresh) && to > self.plain_to);
        if sweeping && plain {
            self.plain_pages += 1;
            self.plain_to = to;
        }
        if fresh > 0 {
            self.fresh_pages += 1;
            let [last, _] = self.last_fresh;
            self.last_fresh = [arrived.order.taken, last];
        }
        if self
            .latest
            .is_none_or(|latest| latest.taken_before <= arrived.order.taken_before)
            && arrived.said_total.is_some()
        {
            self.latest = Some(arrived.order);
        }
        self.cut_to_max_items(&mut rows);
        let Some(sent) = arrived.sent else {
            return fresh;
        };
        self.ready.push_back(WalkedPage {
            limit: arrived.said_limit,
            offset: arrived.said_offset,
            total: arrived.said_total,
            rows,
            user_id: self.user_id(),
            counts: self.report.counts(),
            sent,
            checkpoint: None,
        });
        fresh
    }

    /// Decides whether the sweep continues after the page just joined.
    pub(super) fn decide(&mut self) {
        if self.cut {
            return;
        }
        if !self.ahead.is_empty() {
            self.mark_checkpoint();
            return;
        }
        let reached = self.totals.last.is_some_and(|total| self.end >= total);
        let confirmed = self.at_end && (!self.short_pages || self.barren_pages > 0);
        let past_end = reached && !self.last_full && !self.short_pages;
        let bound = match self.totals.last {
            None if self.last_idle => BARREN_PAGES_WITHOUT_TOTAL,
            None => BARREN_PAGES,
            Some(_) if reached => BARREN_PAGES_PAST_TOTAL,
            Some(_) => BARREN_PAGES,
        };
        if self.next_to_prove_end().is_some() && self.proving_left() > 0 {
            self.mark_checkpoint();
            return;
        }
        let next = self.next_offset();
        let stuck = self.last_offset.is_some_and(|last| next <= last)
            || self.empty_to.is_some_and(|empty_to| next < empty_to);
        let circles = self.barren_pages >= bound || self.scant_pages >= BARREN_PAGES;
        let ended = self.end_is_proved();
        if confirmed || past_end || ended || stuck || circles || self.proving_left() == 0 {
            self.close();
        } else {
            self.mark_checkpoint();
        }
    }

    /// Adds a checkpoint to the last page; a resumed walk requests again what is in flight.
    fn mark_checkpoint(&mut self) {
        if self.settings.checkpoints {
            let checkpoint = self.checkpoint();
            if let Some(page) = self.ready.back_mut() {
                page.checkpoint = Some(Box::new(checkpoint));
            }
        }
    }
}

/// The ids of a page's rows, or the content hash of rows without one.
fn names(arrived: &PageArrival) -> impl Iterator<Item = u64> {
    let name = |row: &Row| row.id.map_or_else(|| content(row), i64::cast_unsigned);
    arrived.rows.iter().map(name)
}
