//! What a walk did and what it proves.

use std::collections::BTreeMap;
use std::fmt;

use super::timestamp::Timestamp;

/// What a list that was read is proved to be, the strongest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certificate {
    /// Nothing is proved; the report's reason says why.
    Uncertified,
    /// One response held the whole list.
    Snapshot,
}

impl Certificate {
    pub fn name(self) -> &'static str {
        match self {
            Self::Uncertified => "uncertified",
            Self::Snapshot => "snapshot",
        }
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The account of one walk; live while the walk runs, final when `ended_at` is set.
#[derive(Debug, Clone, PartialEq)]
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
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Why the list is uncertified, in words; `None` once it is certified.
    pub reason: Option<String>,
    /// Message lists by certificate; only a walk over every user's messages fills it.
    pub lists_by_certificate: BTreeMap<&'static str, u64>,
    pub uncertified_users: Vec<i64>,
}

/// What a walk has counted so far; it only grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub pages: u64,
    pub rows: u64,
    pub distinct: u64,
    pub repeats: u64,
    pub repaired_text: u64,
}

impl WalkReport {
    pub fn not_read_yet() -> Self {
        Self {
            requests: 0,
            pages: 0,
            rows: 0,
            distinct: 0,
            repeats: 0,
            total_first: None,
            total_last: None,
            sweeps: 0,
            repaired_text: 0,
            certificate: Certificate::Uncertified,
            started_at: None,
            ended_at: None,
            reason: Some("not read yet".to_owned()),
            lists_by_certificate: BTreeMap::new(),
            uncertified_users: Vec::new(),
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
        }
    }

    /// Adds what a part of this walk has counted since it had counted `before`.
    pub fn add(&mut self, now: Counts, before: Counts) {
        self.pages += now.pages - before.pages;
        self.rows += now.rows - before.rows;
        self.distinct += now.distinct - before.distinct;
        self.repeats += now.repeats - before.repeats;
        self.repaired_text += now.repaired_text - before.repaired_text;
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
