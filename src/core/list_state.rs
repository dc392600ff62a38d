//! What the mirror remembers about a user's message list from one run to the next.

use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};

use super::report::{Certificate, WalkReport};
use super::timestamp::Timestamp;
use crate::api::Natural;
use crate::decode::page::Row;

/// The number of ids remembered at each end of a list.
pub const ENDS: usize = 4;

/// The kind of a list's last read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The whole list was swept.
    #[default]
    Whole,
    /// Only its growing end was read.
    End,
    /// The user no longer exists.
    Gone,
    /// It could not be read.
    Unread,
    /// It is being read, or its run was stopped.
    Partial,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::End => "end",
            Self::Gone => "gone",
            Self::Unread => "unread",
            Self::Partial => "partial",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::deserialize(StrDeserializer::<Error>::new(name)).ok()
    }
}

/// Where a list shows new rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grows {
    /// At its end: the oldest come first.
    End,
    /// At its start: the newest come first.
    Start,
}

/// The fields of a user that hint at new messages (interface 2.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    pub updated_at: Option<Timestamp>,
    pub online_at: Option<Timestamp>,
}

impl Hints {
    pub fn any(self) -> bool {
        self.updated_at.is_some() || self.online_at.is_some()
    }

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
    /// Users by their ids alone, without those whose messages cannot be requested.
    pub fn all_known(ids: impl Iterator<Item = i64>) -> Vec<Self> {
        let hints = None;
        ids.filter_map(|id| Natural::new("id", id).ok())
            .map(|user_id| Self { user_id, hints })
            .collect()
    }

    /// The id as tables store it.
    pub fn id(self) -> i64 {
        self.user_id.signed()
    }
}

/// The id for requesting a user's messages; none unless it is a whole number, 0 or more.
pub fn requestable_id(row: &Row) -> Option<Natural> {
    Natural::new("id", row.id?).ok()
}

/// A message list as its last reading left it, stored as JSON; its kind has a column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListState {
    #[serde(skip)]
    pub kind: Kind,
    /// Distinct messages held.
    pub rows: u64,
    pub certificate: Certificate,
    /// When the last reading began; it has a column, too.
    #[serde(skip)]
    pub checked_at: Option<Timestamp>,
    /// When the last sweep of the whole list ended; it has a column, too.
    #[serde(skip)]
    pub swept_at: Option<Timestamp>,
    /// The user's hints when the list was read.
    pub hints: Hints,
    /// What a later run may read the growing end by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<Ends>,
}

/// The ends of a list whose rows were in order of age.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    pub grows: Grows,
    /// The ids at the start of the list, in the order served; up to `ENDS`.
    pub first_ids: Vec<i64>,
    /// The ids at its end, in the order served; up to `ENDS`.
    pub last_ids: Vec<i64>,
    /// The oldest message that was unread by someone, as a position counted from the old end.
    pub unread_from: Option<u64>,
}

impl ListState {
    /// Whether the reading reached the list's end and proved what it holds.
    pub fn is_certified(&self) -> bool {
        matches!(self.kind, Kind::Whole | Kind::End) && self.certificate != Certificate::Uncertified
    }

    /// The state of a list that follows from a walk's report alone.
    pub fn of(report: &WalkReport, kind: Kind, hints: Hints) -> Self {
        Self {
            kind,
            rows: report.distinct,
            certificate: report.certificate,
            checked_at: report.started_at,
            swept_at: report.ended_at.filter(|_| kind == Kind::Whole),
            hints,
            ends: None,
        }
    }
}

/// A list as a run leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRow {
    pub user_id: i64,
    pub total: Option<i64>,
    /// Why it is uncertified, in words.
    pub reason: Option<String>,
    pub state: ListState,
    pub compared: Compared,
}

/// What a reading shows of the user's hints, beside the reading before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// Whether the hints moved; `None` unless both readings were certified and had hints.
    pub moved: Option<bool>,
    /// The list has more rows than before, or fewer.
    pub rows_differ: bool,
    /// A quick run drew the list for its audit.
    pub audited: bool,
}

impl ListRow {
    pub fn of(user_id: i64, report: &WalkReport, state: ListState) -> Self {
        Self {
            user_id,
            total: report.total_last,
            reason: report.reason.clone(),
            state,
            compared: Compared::default(),
        }
    }
}
