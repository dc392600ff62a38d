//! What the mirror remembers about a user's message list from one run to the next.

use serde::Deserialize;

use super::page_digest::Digest;
use super::report::{Certificate, WalkReport};
use super::timestamp::Timestamp;
use crate::api::Natural;
use crate::decode::page::Row;

/// The number of ids remembered at each end of a list.
pub const ENDS: usize = 4;

/// The kind of a list's last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The whole list was swept.
    Whole,
    /// Only its growing end was read.
    End,
    /// The user no longer exists.
    Gone,
    /// It could not be read.
    Unread,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::End => "end",
            Self::Gone => "gone",
            Self::Unread => "unread",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::Whole, Self::End, Self::Gone, Self::Unread]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// Where a list shows new rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grows {
    /// At its end: the oldest come first.
    End,
    /// At its start: the newest come first.
    Start,
}

impl Grows {
    pub fn name(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Start => "start",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::End, Self::Start]
            .into_iter()
            .find(|grows| grows.name() == name)
    }
}

/// The fields of a user that hint at new messages (interface 2.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Hints {
    pub updated_at: Option<Timestamp>,
    pub online_at: Option<Timestamp>,
}

impl Hints {
    /// Takes them from a user's row; in a row that cannot be read they are missing.
    pub fn of(row: &Row) -> Self {
        let hints = row.user().map(|(_, user)| Self {
            updated_at: user.updated_at,
            online_at: user.online_at,
        });
        hints.unwrap_or_default()
    }
}

/// A user whose messages can be requested, as a listing showed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedUser {
    pub user_id: Natural,
    /// `None` if the listing that showed the user is no longer available.
    pub hints: Option<Hints>,
}

impl ListedUser {
    /// The id as tables store it.
    pub fn id(self) -> i64 {
        i64::try_from(self.user_id.get()).unwrap_or(i64::MAX)
    }
}

/// The id for requesting a user's messages; none unless it is a whole number, 0 or more.
pub fn requestable_id(row: &Row) -> Option<Natural> {
    Natural::new("id", row.id?).ok()
}

/// A message list as the last read left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListState {
    /// Distinct messages held.
    pub rows: u64,
    pub total: Option<i64>,
    pub certificate: Certificate,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub kind: Kind,
    /// When the last sweep of the whole list ended.
    pub swept_at: Option<Timestamp>,
    /// `None` if the rows read were not in order of age.
    pub grows: Option<Grows>,
    /// The ids at the start of the list, in the order served; up to `ENDS`.
    pub first_ids: Vec<i64>,
    /// The ids at its end, in the order served; up to `ENDS`.
    pub last_ids: Vec<i64>,
    /// The oldest message that was unread by someone, as a position counted from the old end.
    pub unread_from: Option<u64>,
    /// The user's hints when the list was read.
    pub hints: Hints,
    /// Of the one response that held the whole list or, if its certificate is `counted`, of the rows
    /// that a read of its growing end shows again; `None` if they must be passed on anyway.
    pub digest: Option<Digest>,
}

impl ListState {
    /// The state of a list that follows from a walk's report alone.
    pub fn of(report: &WalkReport, kind: Kind, hints: Hints) -> Self {
        Self {
            rows: report.distinct,
            total: report.total_last,
            certificate: report.certificate,
            started_at: report.started_at,
            ended_at: report.ended_at,
            kind,
            swept_at: report.ended_at.filter(|_| kind == Kind::Whole),
            grows: None,
            first_ids: Vec::new(),
            last_ids: Vec::new(),
            unread_from: None,
            hints,
            digest: None,
        }
    }
}

/// A list that was read to its end in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRow {
    pub user_id: i64,
    pub state: ListState,
    /// The response was the same as the one before, so it was not decoded, and has no rows here.
    pub unchanged: bool,
    /// Rows that were shown but not passed on, because a digest said that they are as they were.
    pub rows_skipped: u64,
    /// Requests sent for it in this run.
    pub requests: u64,
    /// Why it is uncertified, in words.
    pub reason: Option<String>,
}
