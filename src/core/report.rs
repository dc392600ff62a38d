//! What a walk did and what it proves.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::timestamp::Timestamp;

/// What is proved about a list that was read, weakest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Certificate {
    /// Nothing is proved; the report's reason says why.
    #[default]
    Uncertified,
    /// Each page shares rows with the next: no row that stayed in its place was lost.
    Linked,
    /// Messages are only added, and the walk holds as many as a later response counted.
    Counted,
    /// One response held the whole list.
    Snapshot,
}

impl Certificate {
    pub fn name(self) -> &'static str {
        match self {
            Self::Uncertified => "uncertified",
            Self::Linked => "linked",
            Self::Counted => "counted",
            Self::Snapshot => "snapshot",
        }
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The report of one walk; live while the walk runs, final once `ended_at` is set. Serialized
/// without its instants, for which each format has its own type.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WalkReport {
    pub requests: u64,
    pub pages: u64,
    pub rows: u64,
    pub distinct: u64,
    pub repeats: u64,
    pub total_first: Option<i64>,
    pub total_last: Option<i64>,
    pub sweeps: u64,
    pub repaired_text: u64,
    pub certificate: Certificate,
    #[serde(skip)]
    pub started_at: Option<Timestamp>,
    #[serde(skip)]
    pub ended_at: Option<Timestamp>,
    /// Why the list is uncertified, in words; `None` once it is certified.
    pub reason: Option<String>,
    /// Message lists by certificate; only a walk over all users' messages fills it.
    pub lists_by_certificate: BTreeMap<&'static str, u64>,
    pub uncertified_users: Vec<i64>,
    /// Users whose list could not be read, or not to its end; they are also uncertified.
    pub unread_users: Vec<i64>,
    pub evidence: Evidence,
    /// How long the service was down while the walk ran.
    pub outage_seconds: f64,
    /// Values of documented fields that have another type.
    pub odd_values: u64,
    /// Rows that could not be decoded to a record.
    pub unreadable_rows: u64,
}

/// What a walk saw of its list's order and size, and what the proof cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Pages that share unchanged rows, in the same order, with earlier pages.
    pub links: u64,
    /// Pages that could not be linked within the bound.
    pub missing_links: u64,
    /// Neighbouring rows that a later page showed in reverse order.
    pub inversions: u64,
    /// Rows that a later page no longer showed and that were not found by id.
    pub rows_gone: u64,
    /// Rows that exist by id, but moved.
    pub rows_moved: u64,
    /// Rows that the last total counts and the walk lacks; `None` without a total.
    pub rows_short: Option<u64>,
    /// Rows that no page showed, found by looking up ids between the known ones.
    #[serde(default)]
    pub rows_found_by_id: u64,
    /// Requests that a plain loop over the pages would not have sent.
    pub proving_requests: u64,
}

impl Evidence {
    /// Adds the evidence of a part.
    pub fn add(&mut self, part: &Self) {
        self.links += part.links;
        self.missing_links += part.missing_links;
        self.inversions += part.inversions;
        self.rows_gone += part.rows_gone;
        self.rows_moved += part.rows_moved;
        self.rows_short = match (self.rows_short, part.rows_short) {
            (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
            _ => None,
        };
        self.rows_found_by_id += part.rows_found_by_id;
        self.proving_requests += part.proving_requests;
    }
}

/// A walk's counters so far; they only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub pages: u64,
    pub rows: u64,
    pub distinct: u64,
    pub repeats: u64,
    pub repaired_text: u64,
    #[serde(default)]
    pub odd_values: u64,
    #[serde(default)]
    pub unreadable_rows: u64,
}

impl WalkReport {
    pub fn not_read_yet() -> Self {
        Self {
            reason: Some("not read yet".to_owned()),
            ..Self::default()
        }
    }

    pub fn start(at: Timestamp) -> Self {
        Self {
            sweeps: 1,
            started_at: Some(at),
            reason: Some("not read to its end".to_owned()),
            ..Self::not_read_yet()
        }
    }

    pub fn counts(&self) -> Counts {
        Counts {
            pages: self.pages,
            rows: self.rows,
            distinct: self.distinct,
            repeats: self.repeats,
            repaired_text: self.repaired_text,
            odd_values: self.odd_values,
            unreadable_rows: self.unreadable_rows,
        }
    }

    /// Adds what a part of this walk has counted since `before`.
    pub fn add(&mut self, now: Counts, before: Counts) {
        self.pages += now.pages - before.pages;
        self.rows += now.rows - before.rows;
        self.distinct += now.distinct - before.distinct;
        self.repeats += now.repeats - before.repeats;
        self.repaired_text += now.repaired_text - before.repaired_text;
        self.odd_values += now.odd_values - before.odd_values;
        self.unreadable_rows += now.unreadable_rows - before.unreadable_rows;
    }

    pub fn certify(&mut self, certificate: Certificate) {
        self.certificate = certificate;
        self.reason = None;
    }

    pub fn doubt(&mut self, reason: String) {
        self.certificate = Certificate::Uncertified;
        self.reason = Some(reason);
    }

    pub fn end(&mut self, at: Timestamp) {
        self.ended_at = Some(at);
    }
}
