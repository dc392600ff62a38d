//! Rows that passes do not find, looked up by the unknown ids between the known ones.
//!
//! PostgreSQL orders ties the same way each time it runs the same query, so passes stop finding
//! rows long before all are found: of 2,000 rows with five keys, a fourth pass finds at most one
//! row per request, a fifth hardly any. Where ids are dense, nearly every id between known ones
//! belongs to a missing row.

use std::sync::Arc;

use super::{Stage, Sweep};
use crate::core::api::Natural;
use crate::core::client::Sent;
use crate::core::decode::page::Row;
use crate::core::walk::WalkedPage;

// Ids are dense if at least one in this many unknown ids should be a missing row.
const IDS_A_ROW: u64 = 4;
// Ids to look up before the results decide whether to continue.
const FIRST_LOOK_UPS: u64 = 16;

/// Look-ups of unknown ids, ascending.
#[derive(Debug)]
pub(super) struct Gaps {
    next: i64,
    asked: u64,
    found: u64,
}

impl Sweep {
    /// The number of unknown ids between the known ones, if they are dense for `short` missing
    /// rows.
    fn dense_gaps(&self, short: u64) -> Option<u64> {
        let (least, most) = (self.seen.min()?, self.seen.max()?);
        let ids = (most - least + 1).saturating_sub(self.seen.len());
        let dense = ids > 0 && ids <= short.saturating_mul(IDS_A_ROW);
        // Negative ids are not looked up; as unsigned numbers they exceed all others.
        dense.then_some(ids).filter(|_| i64::try_from(most).is_ok())
    }

    /// Whether look-ups by id may find rows that the order hides; `passes_help` while passes still
    /// do.
    pub(super) fn is_worth_look_ups(&self, short: Option<u64>, passes_help: bool) -> bool {
        let ties = self.report.evidence.inversions > 0 && !self.gaps_read;
        let Some(short) = short.filter(|short| ties && *short > 0) else {
            return false;
        };
        let pages = self.end / u64::from(self.settings.page_size.get()) + 1;
        self.dense_gaps(short)
            .is_some_and(|ids| !passes_help || ids <= pages)
    }

    pub(super) fn look_up_gaps(&mut self) -> Stage {
        self.gaps_read = true;
        let next = self.seen.min().unwrap_or_default().cast_signed();
        match self.gap_after(next) {
            None => self.next_stage(),
            Some(next) => Stage::Gaps(Gaps {
                next,
                asked: 0,
                found: 0,
            }),
        }
    }

    /// The first unknown id after this one, below the largest known id.
    fn gap_after(&self, id: i64) -> Option<i64> {
        let most = self.seen.max()?.cast_signed();
        (id.checked_add(1)?..most)
            .find(|id| !self.seen.contains(id.cast_unsigned()) && Natural::new("id", *id).is_ok())
    }

    /// Takes the response for a looked-up id; continues while rows are missing and some are found.
    pub(super) fn take_gap(&mut self, row: Option<String>, sent: Sent) {
        let Stage::Gaps(mut gaps) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return;
        };
        gaps.asked += 1;
        let resource = self.list.resource();
        let row = row.and_then(|json| Row::alone(Arc::new(json), resource).ok());
        if let Some(row) = row.filter(|row| row.id == Some(gaps.next)) {
            gaps.found += 1;
            self.give_found(row, sent);
        }
        let short = self.totals.short(self.report.distinct);
        let finds = gaps.asked < FIRST_LOOK_UPS || gaps.found * IDS_A_ROW >= gaps.asked;
        let next = self.gap_after(gaps.next);
        match next.filter(|_| finds && short != Some(0) && !self.cut && self.proving_left() > 0) {
            Some(next) => {
                gaps.next = next;
                self.stage = Stage::Gaps(gaps);
                self.count_proof();
            }
            None => self.close(),
        }
    }

    fn give_found(&mut self, row: Row, sent: Sent) {
        self.report.rows += 1;
        self.report.distinct += 1;
        self.report.evidence.rows_found_by_id += 1;
        let id = row.id.unwrap_or_default();
        self.seen.insert(id.cast_unsigned());
        let [last, _] = self.last_fresh;
        self.last_fresh = [self.taken, last];
        let mut rows = vec![row];
        self.cut_to_max_items(&mut rows);
        self.ready.push_back(WalkedPage {
            limit: None,
            offset: None,
            total: None,
            rows,
            user_id: self.user_id(),
            counts: self.report.counts(),
            sent,
            checkpoint: None,
        });
    }
}

impl Gaps {
    pub fn id(&self) -> i64 {
        self.next
    }
}
