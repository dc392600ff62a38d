//! What the mirror passes in: lists from earlier runs, and this run's progress.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use super::list_shape::ListShape;
use crate::api::{Limit, Natural};
use crate::arrow::columns::StoredList;
use crate::list_state::{Hints, Kind, ListState, ListedUser};
use crate::walk::{Checkpoint, Resume};

/// How a run treats lists that it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Long lists are read only at their growing end.
    Incremental,
    /// Every list is swept.
    Full,
    /// Lists whose users did not move are skipped, except for a sample of them.
    Quick,
}

/// The sample of skipped lists that a quick run reads: those whose place in a random order is at
/// most `last`. Stored as JSON, so that a resumed run keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    seed: u64,
    last: u64,
    /// How many lists it drew,
    #[serde(skip)]
    pub drawn: u64,
    /// and how many are skipped.
    #[serde(skip)]
    pub skipped: u64,
}

impl Audit {
    /// Of the lists to be skipped, this share is drawn,
    const SHARE: usize = 50;
    /// or this many, so that a miss is likely to be found in a small mirror, too.
    const LEAST: usize = 50;

    /// Draws a sample; returns it with its lists. `earlier` is what the run drew before, in the order
    /// of its seed.
    pub fn draw(
        earlier: Option<Self>,
        seed: u64,
        skipped: Vec<ListedUser>,
    ) -> (Self, Vec<ListedUser>) {
        let seed = earlier.map_or(seed, |audit| audit.seed);
        let order = BuildHasherDefault::<DefaultHasher>::default();
        let mut placed: Vec<(u64, ListedUser)> = skipped
            .into_iter()
            .map(|user| (order.hash_one((seed, user.id())), user))
            .collect();
        placed.sort_unstable_by_key(|(place, user)| (*place, user.user_id));
        let size = match earlier {
            Some(audit) => placed.partition_point(|(place, _)| *place <= audit.last),
            None => placed.len().div_ceil(Self::SHARE).max(Self::LEAST),
        };
        let skipped = placed.len().saturating_sub(size) as u64;
        placed.truncate(size);
        // Where all are drawn, lists that may be skipped after the run is resumed are, too.
        let last = match placed.last() {
            Some((place, _)) if skipped > 0 => *place,
            _ => u64::MAX,
        };
        let audit = Self {
            seed,
            last: earlier.map_or(last, |audit| audit.last),
            drawn: placed.len() as u64,
            skipped,
        };
        (audit, placed.into_iter().map(|(_, user)| user).collect())
    }

    /// `None` if another version wrote it; then a new sample is drawn.
    pub fn stored(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    pub fn to_json(self) -> Option<String> {
        serde_json::to_string(&self).ok()
    }
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
    /// What this run has drawn for its audit.
    pub audit: Option<Audit>,
    /// The service's largest page, if it was measured.
    pub largest_page: Option<Limit>,
}

impl Known {
    /// Takes what the mirror stored of a list.
    pub fn take(&mut self, list: StoredList) {
        let StoredList {
            user_id,
            kind,
            checked_at,
            swept_at,
            state,
            of_this_run,
        } = list;
        let mut known = ListState::default();
        match kind {
            Kind::Whole | Kind::End | Kind::Gone if of_this_run => {
                self.done.insert(user_id);
                return;
            }
            Kind::Unread | Kind::Partial if of_this_run => {
                let half_read = state.as_deref().and_then(HalfRead::stored);
                self.half_read
                    .extend(half_read.map(|half_read| (user_id, half_read)));
            }
            Kind::Whole | Kind::End => {
                let state = state.and_then(|state| serde_json::from_str(&state).ok());
                known = state.unwrap_or_default();
            }
            Kind::Gone | Kind::Unread | Kind::Partial => {}
        }
        (known.kind, known.checked_at, known.swept_at) = (kind, checked_at, swept_at);
        self.lists.insert(user_id, known);
    }

    /// Takes a row that this run has committed of a partly read list; `None` is that of users.
    pub fn hold(&mut self, user_id: Option<i64>, id: i64) {
        let half_read = match user_id {
            None => self.users_half_read.as_mut(),
            Some(user_id) => self.half_read.get_mut(&user_id),
        };
        if let Some(half_read) = half_read {
            half_read.held.insert(id.cast_unsigned());
        }
    }
}

/// A list that this run has partly read, and the ids that it has committed.
#[derive(Debug, Default)]
pub struct HalfRead {
    pub cursor: Cursor,
    pub held: RoaringTreemap,
}

/// Where to resume reading a list, and what its rows have shown so far; stored as JSON.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Cursor {
    pub walk: Checkpoint,
    pub shape: ListShape,
    pub hints: Option<Hints>,
}

impl HalfRead {
    /// `None` if another version wrote the state; then the list is read from its start.
    pub fn stored(state: &str) -> Option<Self> {
        let cursor = serde_json::from_str(state).ok()?;
        let held = RoaringTreemap::new();
        Some(Self { cursor, held })
    }

    /// The walk to resume, with the shape of what it has read.
    pub fn resume(self) -> (Resume, ListShape) {
        let Self { cursor, held } = self;
        let checkpoint = cursor.walk;
        (Resume { checkpoint, held }, cursor.shape)
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
