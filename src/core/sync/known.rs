//! What the mirror passes in: lists from earlier runs, and this run's progress.

use std::collections::{HashMap, HashSet};

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use super::list_shape::ListShape;
use crate::api::{Limit, Natural};
use crate::list_state::{Hints, ListState, ListedUser};
use crate::page_digest::DigestKey;
use crate::timestamp::Timestamp;
use crate::walk::{Checkpoint, Resume};

/// How a run treats lists that it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Long lists are read only at their growing end.
    Incremental,
    /// Every list is swept.
    Full,
}

/// Everything that the mirror passes in.
#[derive(Debug, Default)]
pub struct Known {
    /// The lists of earlier runs, by user.
    pub lists: HashMap<i64, ListState>,
    /// Lists that this run has finished.
    pub done: HashSet<i64>,
    /// Message lists that this run has partly read, by user.
    pub half_read: HashMap<i64, HalfRead>,
    /// The list of users, if this run has partly read it.
    pub users_half_read: Option<HalfRead>,
    /// The users, if this run has finished sweeping them.
    pub users: Option<Vec<ListedUser>>,
    /// Users of whom nothing may be read or stored.
    pub forgotten: HashSet<i64>,
    /// The users that alone are to be read, without a sweep; each is fetched by id.
    pub given: Option<Vec<Natural>>,
    /// The service's largest page, if it was measured.
    pub largest_page: Option<Limit>,
    /// The key of the digests in `lists`; without one, there are none.
    pub digest_key: Option<DigestKey>,
}

/// A list that this run has partly read.
#[derive(Debug, Default)]
pub struct HalfRead {
    pub cursor: String,
    pub held: RoaringTreemap,
}

/// Where to resume reading a list, and what its rows have shown so far; stored as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cursor {
    walk: Checkpoint,
    // The name in existing mirrors.
    #[serde(default, rename = "outline")]
    shape: ListShape,
    /// The user's `updated_at` and `online_at`, in microseconds.
    #[serde(default)]
    hints: Option<(Option<i64>, Option<i64>)>,
}

impl Cursor {
    pub fn new(walk: Checkpoint, shape: ListShape, hints: Option<Hints>) -> Self {
        let microseconds = |at: Option<Timestamp>| at.map(Timestamp::microseconds);
        Self {
            walk,
            shape,
            hints: hints.map(|hints| {
                (
                    microseconds(hints.updated_at),
                    microseconds(hints.online_at),
                )
            }),
        }
    }

    /// As text; `None` only if JSON cannot represent it, and then the list is read from its start.
    pub fn to_text(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn hints(&self) -> Option<Hints> {
        let instant = |at: Option<i64>| at.and_then(Timestamp::from_microseconds);
        self.hints.map(|(updated_at, online_at)| Hints {
            updated_at: instant(updated_at),
            online_at: instant(online_at),
        })
    }
}

/// A list that resumes where an earlier run stopped.
#[derive(Debug)]
pub struct GoingOn {
    pub resume: Resume,
    pub shape: ListShape,
    pub hints: Option<Hints>,
}

impl HalfRead {
    /// `None` if another version wrote the cursor; then the list is read from its start.
    pub fn go_on(self) -> Option<GoingOn> {
        let cursor: Cursor = serde_json::from_str(&self.cursor).ok()?;
        let hints = cursor.hints();
        Some(GoingOn {
            resume: Resume {
                checkpoint: cursor.walk,
                held: self.held,
            },
            shape: cursor.shape,
            hints,
        })
    }
}

/// The part of a service profile that a run uses.
#[derive(Debug, Default, Deserialize)]
pub struct MeasuredPages {
    largest_page: Option<i64>,
}

impl MeasuredPages {
    /// The service's largest page, if it was measured.
    pub fn largest(&self) -> Option<Limit> {
        Limit::new("largest_page", self.largest_page?).ok()
    }
}
