//! What the mirror passes in: lists from earlier runs, and this run's progress.

use std::collections::{HashMap, HashSet};

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
}

impl Known {
    /// Takes what the mirror stored of a list.
    pub fn take(&mut self, list: StoredList) {
        let StoredList {
            user_id,
            kind,
            state,
            of_this_run,
        } = list;
        match (of_this_run, kind) {
            (true, Kind::Partial) => self.resume(user_id, state),
            (true, Kind::Whole | Kind::End | Kind::Gone) => {
                self.done.insert(user_id);
            }
            (_, Kind::Unread) | (false, _) => {
                let is_cursor = |state: &String| serde_json::from_str::<Cursor>(state).is_ok();
                if of_this_run && state.as_ref().is_some_and(is_cursor) {
                    self.resume(user_id, state.clone());
                }
                let state = state.and_then(|state| serde_json::from_str(&state).ok());
                let state = ListState {
                    kind,
                    ..state.unwrap_or_default()
                };
                self.lists.insert(user_id, state);
            }
        }
    }

    fn resume(&mut self, user_id: i64, state: Option<String>) {
        let held = RoaringTreemap::new();
        self.half_read.insert(user_id, HalfRead { state, held });
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

/// A list that this run has partly read.
#[derive(Debug, Default)]
pub struct HalfRead {
    pub state: Option<String>,
    pub held: RoaringTreemap,
}

/// Where to resume reading a list, and what its rows have shown so far; stored as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cursor {
    pub walk: Checkpoint,
    pub shape: ListShape,
    pub hints: Option<Hints>,
}

/// A list that resumes where an earlier run stopped.
#[derive(Debug)]
pub struct GoingOn {
    pub resume: Resume,
    pub shape: ListShape,
    pub hints: Option<Hints>,
}

impl HalfRead {
    /// `None` if another version wrote the state; then the list is read from its start.
    pub fn go_on(self) -> Option<GoingOn> {
        let Cursor { walk, shape, hints } = serde_json::from_str(&self.state?).ok()?;
        let resume = Resume {
            checkpoint: walk,
            held: self.held,
        };
        Some(GoingOn {
            resume,
            shape,
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
