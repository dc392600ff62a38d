//! After the sweep: requests for whatever is still in doubt, within the proving budget.

use super::look_ups::{Gaps, Vanished, dense_gaps};
use super::page_arrival::PageArrival;
use super::passes::{Pass, PassEnd};
use super::request::Fetch;
use super::{Stage, Sweep};
use crate::api::{Limit, List};
use crate::client::Sent;
use crate::decode::json::Text;
use crate::decode::page::Row;
use crate::schema::SenderType;

impl Sweep {
    /// Moves on to what is in doubt, or ends the walk.
    pub(super) fn close(&mut self) {
        self.stage = self.next_stage();
        self.count_proof();
        if self.is_over() {
            self.certify();
        }
    }

    fn next_stage(&mut self) -> Stage {
        let may_go_on = !self.passes.are_refused()
            && !self.cut
            && !self.delivery.has_unnamed_rows()
            && self.proving.left() > 0;
        if !may_go_on || self.is_snapshot() || self.is_counted() {
            return Stage::Over;
        }
        if !self.look_ups.is_empty() {
            return Stage::LookingUp;
        }
        let held = self.report.distinct;
        let short = self.short();
        // Rows added in front meanwhile need not be read (the total's growth explains them), but a
        // row that moved there was never read.
        let unexplained = short.is_none_or(|short| short > self.totals.grown());
        if self.linking.shifted() && !self.passes.front_read && unexplained {
            self.passes.front_read = true;
            return Stage::Front { offset: 0 };
        }
        let passes_help = self.is_worth_another_pass(short);
        if self.is_worth_looking_up_gaps(short, passes_help) {
            self.passes.gaps_read = true;
            return match Gaps::between(self.delivery.known()) {
                Some(gaps) => Stage::Gaps(gaps),
                None => self.next_stage(),
            };
        }
        if passes_help {
            self.report.sweeps += 1;
            let page_size = u64::from(self.settings.page_size.get());
            return Stage::Pass(Pass::new(self.report.sweeps, page_size, short));
        }
        let all_counted = matches!(self.list, List::Messages { .. })
            && !self.passes.recounted
            && self.totals.last == Some(held)
            && !self.doubts().is_empty();
        if all_counted {
            self.passes.recounted = true;
            return Stage::Recount;
        }
        Stage::Over
    }

    /// How many more rows the last total counts than are known, without those that cannot be read.
    pub(super) fn short(&self) -> Option<u64> {
        let not_read = self.delivery.unreadable().not_read();
        self.totals.short(self.report.distinct + not_read)
    }

    /// Whether the order is in doubt, rows may be missing, and the last passes found some.
    fn is_worth_another_pass(&self, short: Option<u64>) -> bool {
        let unstable = self.report.evidence.inversions > 0 || self.linking.given_up() > 0;
        let unexplained = self.paging.at_end()
            && !self.total_disagrees()
            && short.is_some_and(|short| short > self.totals.grown());
        // Deleted rows still count as held: once the total fell, it does not tell how many are
        // missing.
        let short = short.filter(|_| !self.totals.fell);
        let worth = self
            .passes
            .are_worth_another(self.report.sweeps, unstable, short);
        worth && (unstable || unexplained)
    }

    /// Whether look-ups by id may find rows that the order hides; `passes_help` while passes still
    /// do.
    fn is_worth_looking_up_gaps(&self, short: Option<u64>, passes_help: bool) -> bool {
        let ties = self.report.evidence.inversions > 0 && !self.passes.gaps_read;
        let Some(short) = short.filter(|short| ties && *short > 0) else {
            return false;
        };
        let pages = self.paging.end() / u64::from(self.settings.page_size.get()) + 1;
        dense_gaps(self.delivery.known(), short).is_some_and(|ids| !passes_help || ids <= pages)
    }

    /// What the stage after the sweep requests next.
    pub(super) fn next_fetch(&mut self) -> Fetch {
        let whole = self.settings.page_size;
        let page = |offset, size: u64| {
            let limit = Limit::of(size).map_or(whole, |limit| limit.min(whole));
            Fetch::Page { offset, limit }
        };
        match &self.stage {
            Stage::LookingUp => Fetch::Row {
                id: self.look_ups.next(),
            },
            Stage::Gaps(gaps) => Fetch::Row { id: gaps.id() },
            Stage::Front { offset } => page(*offset, u64::MAX),
            Stage::Pass(pass) => {
                let (offset, size) = pass.page();
                page(offset, size)
            }
            Stage::Filling(fill) => fill.fetch(whole),
            Stage::Recount | Stage::Sweeping | Stage::Over => {
                let shared = self.paging.shared_rows();
                page(self.paging.end().saturating_sub(shared), u64::MAX)
            }
        }
    }

    /// Takes the response for a row that was fetched by its id.
    pub(super) fn take_row(&mut self, row: Option<Text>, sent: Sent) {
        if matches!(self.stage, Stage::Gaps(_)) {
            self.take_gap(row, sent);
            return;
        }
        match self
            .look_ups
            .take(row.as_ref().map(|row| row.json.as_str()))
        {
            Vanished::Gone => self.report.evidence.rows_gone += 1,
            Vanished::Moved => self.report.evidence.rows_moved += 1,
        }
        self.close();
    }

    /// Takes the response for an unknown id; continues while rows are missing and some are found.
    fn take_gap(&mut self, row: Option<Text>, sent: Sent) {
        let Stage::Gaps(mut gaps) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return;
        };
        let resource = self.list.resource();
        let repaired = row.as_ref().map_or(0, |row| row.repaired);
        let row = row.and_then(|row| Row::alone(row.json, resource).ok());
        let foreign = row.as_ref().is_some_and(|row| self.is_of_another(row));
        let found = row.filter(|row| row.id == Some(gaps.id()));
        if foreign {
            self.look_ups.note_another_users();
        }
        let found = found.filter(|_| !foreign);
        gaps.take(found.is_some());
        if let Some(row) = found {
            self.report.repaired_text += repaired;
            self.delivery.deliver_found(row, sent, &mut self.report);
            self.counting.note_fresh(self.in_flight.taken());
            self.end_at_max_items();
        }
        let complete = self.short() == Some(0);
        let go_on = !complete && !foreign && !self.cut && self.proving.left() > 0;
        match gaps.next(self.delivery.known()).filter(|_| go_on) {
            Some(gaps) => {
                self.stage = Stage::Gaps(gaps);
                self.count_proof();
            }
            None => self.close(),
        }
    }

    /// Whether another user sent this message: the service ignores the user in the path.
    fn is_of_another(&self, row: &Row) -> bool {
        let List::Messages { user_id } = self.list else {
            return false;
        };
        row.message().is_ok_and(|(text, message)| {
            let sender_type = message.sender_type.map(|span| span.text(text));
            let sender = message.sender.as_ref().and_then(|sender| sender.id);
            SenderType::of(sender_type.as_deref(), sender) == SenderType::User
                && sender.is_some_and(|id| u64::try_from(id) != Ok(user_id.get()))
        })
    }

    /// Takes a page that was requested after the sweep.
    pub(super) fn take_proof(&mut self, mut page: PageArrival) {
        self.settle(&mut page, None);
        let shared = self.linking.compare(&page);
        self.note_shared(&page, &shared);
        let repeated = self.linking.replace_previous_page(&page);
        let end = PassEnd::of(&page, repeated, self.paging.end());
        let received = page.received();
        let fresh = self.deliver(page);
        let total = self.totals.last;
        let holds_all = total == Some(self.report.distinct) && !self.totals.fell;
        let goes_on = match &mut self.stage {
            // A full page of new rows: read the next one too, until known rows appear.
            Stage::Front { offset } if end.full && fresh == received => {
                *offset = end.page_end;
                true
            }
            Stage::Pass(pass) => {
                pass.take(end.page_end, fresh);
                self.passes.note_found(fresh);
                !end.is_last(fresh, total, holds_all)
            }
            _ => false,
        };
        if goes_on && self.proving.left() > 0 {
            return;
        }
        if let Stage::Pass(pass) = &self.stage {
            let short = self.short();
            self.passes.end(pass, short.filter(|_| !self.totals.fell));
        }
        self.close();
    }

    pub(super) fn count_proof(&mut self) {
        self.report.evidence.proving_requests = self.proving.spent();
    }
}
