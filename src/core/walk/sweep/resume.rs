//! Checkpoints, from which a later walk of the same list can resume.

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use super::super::row_order::{Remembered, RowOrder};
use super::super::totals::Totals;
use super::Sweep;
use super::ending::End;
use super::unreadable::Unreadables;
use crate::core::api::List;
use crate::core::report::{Counts, Evidence};
use crate::core::timestamp::Timestamp;
use crate::core::walk::WalkSettings;

// How many rows of the chain's end a checkpoint holds.
const KEPT: usize = 99;

/// The state of a walk between two pages, stored as JSON; it holds ids and no fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    end: u64,
    last_offset: u64,
    last_received: u64,
    longest_page: u64,
    overlap: u64,
    last_full: bool,
    last_to_total: bool,
    short_pages: bool,
    short_then_more: bool,
    #[serde(default)]
    shorter_pages: bool,
    #[serde(default)]
    shorter_then_more: bool,
    #[serde(default)]
    list_end: End,
    #[serde(default)]
    first_row: Option<i64>,
    looked_up: Vec<i64>,
    not_looked_up: u64,
    unnamed_rows: u64,
    #[serde(default)]
    unreadable: Unreadables,
    links_given_up: u64,
    refused_at: Option<(u64, u16)>,
    strayed: bool,
    shifted: bool,
    fresh_pages: u64,
    held_it_all: bool,
    answers: u64,
    plain_pages: u64,
    #[serde(default)]
    plain_to: u64,
    vanished: Vec<i64>,
    /// The hashes of their texts; in older checkpoints, the chain's.
    #[serde(default)]
    vanished_contents: Vec<u64>,
    totals: Totals,
    chain: Vec<Remembered>,
    requests: u64,
    sweeps: u64,
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

impl Sweep {
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let report = &self.report;
        Checkpoint {
            end: self.end,
            last_offset: self.last_offset.unwrap_or_default(),
            last_received: self.last_received,
            longest_page: self.longest_page,
            overlap: self.overlap,
            last_full: self.last_full,
            last_to_total: self.last_to_total,
            short_pages: self.short_pages,
            short_then_more: self.short_then_more,
            shorter_pages: self.shorter_pages,
            shorter_then_more: self.shorter_then_more,
            list_end: self.list_end,
            first_row: self.first_row,
            looked_up: self.looked_up.iter().copied().collect(),
            not_looked_up: self.not_looked_up,
            unnamed_rows: self.unnamed_rows,
            unreadable: self.unreadable.clone(),
            links_given_up: self.links_given_up,
            refused_at: self.refused_at,
            strayed: self.strayed,
            shifted: self.shifted,
            fresh_pages: self.fresh_pages,
            held_it_all: self.held_it_all,
            answers: self.answers,
            plain_pages: self.plain_pages,
            plain_to: self.plain_to,
            vanished: self.vanished.iter().map(|(id, _)| *id).collect(),
            vanished_contents: self.vanished.iter().map(|(_, content)| *content).collect(),
            totals: self.totals,
            chain: self.row_order.end(KEPT),
            requests: report.requests,
            sweeps: report.sweeps,
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
        let mut sweep = Self::new(list, settings, at);
        sweep.end = checkpoint.end;
        sweep.planned_end = checkpoint.end;
        sweep.last_offset = Some(checkpoint.last_offset);
        sweep.last_received = checkpoint.last_received;
        sweep.longest_page = checkpoint.longest_page;
        sweep.overlap = checkpoint.overlap;
        sweep.last_full = checkpoint.last_full;
        sweep.last_to_total = checkpoint.last_to_total;
        sweep.short_pages = checkpoint.short_pages;
        sweep.short_then_more = checkpoint.short_then_more;
        sweep.shorter_pages = checkpoint.shorter_pages;
        sweep.shorter_then_more = checkpoint.shorter_then_more;
        sweep.list_end = checkpoint.list_end;
        sweep.first_row = checkpoint.first_row;
        sweep.looked_up = checkpoint.looked_up.into_iter().collect();
        sweep.not_looked_up = checkpoint.not_looked_up;
        sweep.unnamed_rows = checkpoint.unnamed_rows;
        sweep.unreadable = checkpoint.unreadable;
        sweep.links_given_up = checkpoint.links_given_up;
        sweep.refused_at = checkpoint.refused_at;
        sweep.strayed = checkpoint.strayed;
        sweep.shifted = checkpoint.shifted;
        sweep.fresh_pages = checkpoint.fresh_pages;
        sweep.held_it_all = checkpoint.held_it_all;
        sweep.answers = checkpoint.answers;
        sweep.plain_pages = checkpoint.plain_pages;
        sweep.plain_to = checkpoint.plain_to;
        sweep.totals = checkpoint.totals;
        sweep.row_order = RowOrder::resumed(&checkpoint.chain);
        let mut contents = checkpoint.vanished_contents.into_iter();
        let with_content = |id| {
            let held = || sweep.row_order.content_of(id);
            (id, contents.next().or_else(held).unwrap_or_default())
        };
        sweep.vanished = checkpoint.vanished.into_iter().map(with_content).collect();
        sweep.seen = held;
        let report = &mut sweep.report;
        let counts = checkpoint.counts;
        report.requests = checkpoint.requests;
        report.sweeps = checkpoint.sweeps;
        report.pages = counts.pages;
        report.rows = counts.rows;
        // Rows that a killed run read after this checkpoint are held too, and will come again.
        report.distinct = sweep.seen.len();
        report.repeats = counts.repeats;
        report.repaired_text = counts.repaired_text;
        report.odd_values = counts.odd_values;
        report.unreadable_rows = counts.unreadable_rows;
        report.evidence = checkpoint.evidence;
        report.total_first = checkpoint.total_first;
        report.total_last = checkpoint.total_last;
        let began = checkpoint.started_at;
        report.started_at = began
            .and_then(Timestamp::from_microseconds)
            .or(report.started_at);
        sweep
    }
}
