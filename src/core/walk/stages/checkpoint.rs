//! Checkpoints, from which a later walk of the same list can resume.

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use super::chain::Remembered;
use super::delivery::Unreadable;
use super::look_up::Vanished;
use super::page_length::PageLength;
use super::totals::Totals;
use super::{Doubts, ListWalk, Pass};
use crate::api::List;
use crate::report::{Counts, Evidence, WalkReport};
use crate::timestamp::Timestamp;
use crate::walk::WalkSettings;
use crate::walk::stages::chain::Chain;

/// A checkpoint remembers this many rows, so that some are still in place after a night.
const REMEMBERED: usize = 8;

/// The state of a walk between two pages, stored as JSON; it holds ids and no fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Where the joined pages end, and the last rows before it.
    end: u64,
    last_rows: Vec<Remembered>,
    length: PageLength,
    /// Links lead back to the start.
    chained: bool,
    /// The last page had fewer rows than its limit.
    short: bool,
    /// By how many rows inserts before the walk's position pushed back others.
    shifted: u64,
    totals: Totals,
    doubts: Doubts,
    vanished: Vanished,
    unreadable: Unreadable,
    unnamed: bool,
    responses: u64,
    plain_pages: f64,
    requests: u64,
    counts: Counts,
    evidence: Evidence,
    total_first: Option<i64>,
    total_last: Option<i64>,
    /// Microseconds since 1970.
    started_at: Option<i64>,
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
        self.last_rows
            .iter_mut()
            .for_each(Remembered::forget_content);
        self.vanished.forget_contents();
    }
}

impl ListWalk {
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let report = &self.report;
        Checkpoint {
            end: self.pass.end,
            last_rows: self.pass.chain.end(REMEMBERED),
            length: self.length.clone(),
            chained: self.pass.chained,
            short: self.pass.cut_at.is_some(),
            shifted: self.pass.shifted,
            totals: self.totals.clone(),
            doubts: self.doubts.clone(),
            vanished: self.vanished.clone(),
            unreadable: self.delivery.unreadable.clone(),
            unnamed: self.delivery.unnamed,
            responses: self.taken,
            plain_pages: self.plain_pages,
            requests: report.requests,
            counts: report.counts(),
            evidence: report.evidence,
            total_first: report.total_first,
            total_last: report.total_last,
            started_at: report.started_at.map(Timestamp::microseconds),
        }
    }

    /// A walk that resumes where an earlier one ended.
    pub fn resumed(list: List, settings: WalkSettings, resume: Resume, at: Timestamp) -> Self {
        let Resume { checkpoint, held } = resume;
        let mut walk = Self::new(list, settings, at);
        walk.report = checkpoint.report(at, held.len());
        let chain = Chain::resumed(&checkpoint.last_rows, checkpoint.doubts.by_id);
        walk.pass = Pass::resumed(chain, checkpoint.end, checkpoint.chained, checkpoint.short);
        walk.pass.shifted = checkpoint.shifted;
        walk.length = checkpoint.length;
        walk.totals = checkpoint.totals;
        walk.doubts = checkpoint.doubts;
        walk.vanished = checkpoint.vanished;
        walk.delivery.known = held;
        walk.delivery.unnamed = checkpoint.unnamed;
        walk.delivery.unreadable = checkpoint.unreadable;
        walk.taken = checkpoint.responses;
        walk.plain_pages = checkpoint.plain_pages;
        walk.reach = checkpoint.end;
        walk.end_at_max_items();
        walk
    }
}

impl Checkpoint {
    /// The report of the walk so far; `at` is now, and `held` is how many rows are held.
    fn report(&self, at: Timestamp, held: u64) -> WalkReport {
        let mut report = WalkReport::start(at);
        report.add(self.counts, Counts::default());
        // Rows that a killed run read after this checkpoint are held too, and will come again.
        report.distinct = held;
        report.requests = self.requests;
        report.evidence = self.evidence;
        report.total_first = self.total_first;
        report.total_last = self.total_last;
        let began = self.started_at.and_then(Timestamp::from_microseconds);
        report.started_at = began.or(report.started_at);
        report
    }
}
