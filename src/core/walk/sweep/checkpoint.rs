//! Checkpoints, from which a later walk of the same list can resume.

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use super::super::row_order::Remembered;
use super::super::totals::Totals;
use super::unreadable::Unreadables;
use crate::report::{Counts, Evidence, WalkReport};
use crate::timestamp::Timestamp;

/// The state of a walk between two pages, stored as JSON; it holds ids and no fields. Each part of
/// the walk saves its own state here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub(super) end: u64,
    pub(super) last_offset: u64,
    pub(super) last_received: u64,
    pub(super) longest_page: u64,
    pub(super) overlap: u64,
    pub(super) last_full: bool,
    pub(super) last_to_total: bool,
    pub(super) short_pages: bool,
    pub(super) short_then_more: bool,
    pub(super) below_limit: bool,
    pub(super) below_limit_then_more: bool,
    pub(super) list_end: End,
    pub(super) first_row: Option<i64>,
    pub(super) looked_up: Vec<i64>,
    pub(super) not_looked_up: u64,
    pub(super) unnamed_rows: u64,
    pub(super) unreadable: Unreadables,
    pub(super) links_given_up: u64,
    pub(super) refused_at: Option<(u64, u16)>,
    pub(super) strayed: bool,
    pub(super) shifted: bool,
    pub(super) fresh_pages: u64,
    pub(super) held_it_all: bool,
    pub(super) answers: u64,
    pub(super) plain_pages: u64,
    pub(super) plain_to: u64,
    pub(super) vanished: Vec<i64>,
    /// The hashes of their texts.
    pub(super) vanished_contents: Vec<Option<u64>>,
    pub(super) totals: Totals,
    pub(super) chain: Vec<Remembered>,
    pub(super) by_id: bool,
    pub(super) has_old_pages: bool,
    pub(super) requests: u64,
    pub(super) sweeps: u64,
    pub(super) counts: Counts,
    pub(super) evidence: Evidence,
    pub(super) total_first: Option<i64>,
    pub(super) total_last: Option<i64>,
    /// Microseconds since 1970.
    pub(super) started_at: Option<i64>,
}

/// What is known of the end of the last page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    /// More rows may follow.
    #[default]
    Open,
    /// The page is shorter than the limit it reports, and its total differs or is missing.
    Short,
    /// The same, and the offset after it returned nothing.
    NothingAfter,
    /// The page is shorter than the limit it reports, linked, and ends at its total.
    AtTotal,
    /// The offset after it returned nothing, and its last rows are still in the same place.
    Proved { total: Option<u64> },
}

/// What a resumed walk needs: a checkpoint, and the ids that are already held.
#[derive(Debug, Clone)]
pub struct Resume {
    pub checkpoint: Checkpoint,
    pub held: RoaringTreemap,
}

impl Checkpoint {
    /// Forgets the hashes of texts: a resumed walk compares these rows by their ids.
    pub fn without_hashes(&mut self) {
        self.chain.iter_mut().for_each(Remembered::forget_content);
        self.vanished_contents.fill(None);
    }

    pub(super) fn save_report(&mut self, report: &WalkReport) {
        self.requests = report.requests;
        self.sweeps = report.sweeps;
        self.counts = report.counts();
        self.evidence = report.evidence;
        self.total_first = report.total_first;
        self.total_last = report.total_last;
        self.started_at = report.started_at.map(Timestamp::microseconds);
    }

    /// The report of the walk so far; `at` is now, and `held` is how many rows are held.
    pub(super) fn report(&self, at: Timestamp, held: u64) -> WalkReport {
        let mut report = WalkReport::start(at);
        report.add(self.counts, Counts::default());
        // Rows that a killed run read after this checkpoint are held too, and will come again.
        report.distinct = held;
        report.requests = self.requests;
        report.sweeps = self.sweeps;
        report.evidence = self.evidence;
        report.total_first = self.total_first;
        report.total_last = self.total_last;
        let began = self.started_at.and_then(Timestamp::from_microseconds);
        report.started_at = began.or(report.started_at);
        report
    }
}
