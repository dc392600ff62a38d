//! What the mirror passes in: lists from earlier runs, and this run's progress.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use super::list_shape::ListShape;
use crate::api::{Limit, Natural};
use crate::arrow::columns::StoredList;
use crate::list_state::{Hints, Kind, ListState, ListedUser};
use crate::walk::Checkpoint;

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

    /// Draws a sample; returns it with its lists and their places. `earlier` is what the run drew
    /// before, in the order of its seed.
    pub fn draw(
        earlier: Option<Self>,
        seed: u64,
        skipped: Vec<ListedUser>,
    ) -> (Self, Vec<(u64, ListedUser)>) {
        let seed = earlier.map_or(seed, |audit| audit.seed);
        let order = BuildHasherDefault::<DefaultHasher>::default();
        let placed = skipped.into_iter();
        let placed = placed.map(|user| (order.hash_one((seed, user.id())), user));
        let mut placed: Vec<_> = placed.collect();
        placed.sort_unstable_by_key(|(place, user)| (*place, user.user_id));
        let size = placed.len().div_ceil(Self::SHARE).max(Self::LEAST);
        // Where all are drawn, lists that may be skipped after the run is resumed are, too.
        let last = match placed.get(size - 1) {
            Some((place, _)) if placed.len() > size => *place,
            _ => u64::MAX,
        };
        let last = earlier.map_or(last, |audit| audit.last);
        let skipped = placed.split_off(placed.partition_point(|(place, _)| *place <= last));
        let audit = Self {
            seed,
            last,
            drawn: placed.len() as u64,
            skipped: skipped.len() as u64,
        };
        (audit, placed)
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
        let user_id = list.user_id;
        let mut known = ListState::default();
        match list.kind {
            Kind::Whole | Kind::End | Kind::Gone if list.of_this_run => {
                self.done.insert(user_id);
                return;
            }
            Kind::Unread | Kind::Partial if list.of_this_run => {
                let half_read = list.state.as_deref().and_then(HalfRead::stored);
                self.half_read
                    .extend(half_read.map(|half_read| (user_id, half_read)));
            }
            Kind::Whole | Kind::End => {
                let state = list.state.as_deref();
                let state = state.and_then(|state| serde_json::from_str(state).ok());
                known = state.unwrap_or_default();
            }
            Kind::Gone | Kind::Unread | Kind::Partial => {}
        }
        (known.kind, known.checked_at, known.swept_at) =
            (list.kind, list.checked_at, list.swept_at);
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

/// A list that this run has partly read: where to resume it, and what its rows have shown so far.
/// Stored as JSON.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HalfRead {
    /// `None` before its first page.
    pub walk: Option<Checkpoint>,
    pub shape: ListShape,
    /// The user's hints before the reading began.
    pub hints: Hints,
    /// The ids that the run has committed, which the mirror stores as rows.
    #[serde(skip)]
    pub held: RoaringTreemap,
}

impl HalfRead {
    /// `None` if another version wrote the state; then the list is read from its start.
    pub fn stored(state: &str) -> Option<Self> {
        serde_json::from_str(state).ok()
    }
}
