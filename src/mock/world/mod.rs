//! The world that the mock serves: users and messages generated on demand, with changes on top.
//!
//! Row i is a pure function of (generator version, seed, `messages_per_user`, i): a larger world
//! has byte for byte the rows of a smaller one, and size costs no memory.

mod block;
mod calendar;
mod changes;
mod conversation;
pub(super) mod draw;
mod edits;
mod generator;
mod json_object;
mod jsonl;
mod locale;
mod messages;
mod row;
mod rows;
#[cfg(test)]
mod tests;
mod user;
mod view;

use std::sync::{Arc, PoisonError, RwLock};

use backread_clock::Clock;
use thiserror::Error;
use tokio::time::Instant;

use calendar::Calendar;
use changes::Changes;
pub use changes::{Fields, Hints};
use generator::Generator;
pub use generator::{MAX_LIST, MAX_USERS};
pub use jsonl::JsonlReader;
use rows::Rows;
pub use view::{List, View};

/// The version of the generator; rows change only together with it.
pub const GENERATOR_VERSION: u64 = 2;

/// The most messages that a user can be generated with.
pub const MAX_GENERATED: u64 = 1_000_000;

/// The bounds of a given end: the first of 2010, and the last millisecond of 2199.
const EARLIEST_END: u64 = 1_262_304_000_000;
const LATEST_END: u64 = 7_258_118_399_999;

/// Why a world could not be made, read or changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WorldError {
    #[error("{argument}: {problem}")]
    Argument {
        argument: &'static str,
        problem: String,
    },
    #[error("this world has no user {user_id}")]
    NoUser { user_id: u64 },
    #[error("user {user_id} of this world has no message {message_id}")]
    NoMessage { user_id: u64, message_id: u64 },
}

impl WorldError {
    fn argument(argument: &'static str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self::Argument { argument, problem }
    }
}

/// A made-up service: its users, their messages, and the changes since.
#[derive(Debug)]
pub struct World {
    rows: Arc<Rows>,
    changes: RwLock<Arc<Changes>>,
    /// What the hints of users do, and the clock that they follow.
    hints: RwLock<(Hints, Clock)>,
}

impl World {
    /// A world of `users` users with `lo..=hi` messages each, most of them with few. Takes no time,
    /// whatever its size.
    ///
    /// # Errors
    /// `Argument` when there are more than [`MAX_USERS`] users, `lo > hi`, or `hi` is above
    /// [`MAX_GENERATED`].
    pub fn new(seed: u64, users: u64, lo: u64, hi: u64) -> Result<Self, WorldError> {
        if users > MAX_USERS {
            return Err(too_many_users(users));
        }
        if lo > hi || hi > MAX_GENERATED {
            let problem = format!(
                "({lo}, {hi}) is not a range; give (least, most) with least <= most <= \
                 {MAX_GENERATED}"
            );
            return Err(WorldError::argument("messages_per_user", problem));
        }
        let generator = Generator::new(seed, lo, hi);
        Ok(Self::over(Rows::generated(users, generator)))
    }

    /// The same users with other times: the last of them arrives about a day before `end`,
    /// milliseconds since 1970, and no generated time is later. Unlike all else of a row, its times
    /// depend on the number of users. Changes made before are dropped.
    ///
    /// # Errors
    /// `Argument` when `end` is not from [`EARLIEST_END`] to [`LATEST_END`].
    pub fn ending(self, end: u64) -> Result<Self, WorldError> {
        let (users, generator) = (self.rows.users, self.rows.generator);
        let bounds = EARLIEST_END..=LATEST_END;
        let calendar = bounds
            .contains(&end)
            .then(|| Calendar::ending(generator.seed, users, end));
        let wrong = || WorldError::argument("until", "must be from 2010 to 2199");
        let calendar = calendar.flatten().ok_or_else(wrong)?;
        let generator = Generator {
            calendar,
            ..generator
        };
        Ok(Self::over(Rows::generated(users, generator)))
    }

    fn over(rows: Rows) -> Self {
        Self {
            rows: Arc::new(rows),
            changes: RwLock::default(),
            hints: RwLock::default(),
        }
    }

    /// The seed given at creation; 0 in a world from JSON lines.
    pub fn seed(&self) -> u64 {
        self.rows.generator.seed
    }

    /// The number of users at creation.
    pub fn users(&self) -> u64 {
        self.rows.users
    }

    /// The least and the most messages generated for a user; in a world from JSON lines, those that
    /// its users have.
    pub fn messages_per_user(&self) -> (u64, u64) {
        (self.rows.generator.lo, self.rows.generator.hi)
    }

    /// The time that no generated row is later than, in milliseconds since 1970, if one was given.
    pub fn end(&self) -> Option<u64> {
        self.rows.generator.calendar.end
    }

    /// Whether its first rows came from JSON lines.
    pub fn is_from_jsonl(&self) -> bool {
        self.rows.given.users.len() > 0
    }

    /// Whether rows were added, removed or edited.
    pub fn is_changed(&self) -> bool {
        *self.view().changes != Changes::default()
    }

    /// What the hints of users do when messages change, from now on.
    pub fn set_hints(&self, hints: Hints, clock: Clock) {
        *self.hints.write().unwrap_or_else(PoisonError::into_inner) = (hints, clock);
    }

    fn hints(&self) -> (Hints, Instant) {
        let held = self.hints.read().unwrap_or_else(PoisonError::into_inner);
        let (hints, clock) = &*held;
        (*hints, clock.now())
    }

    /// A read-only view of this instant of the world, which can also be restored later; it holds no
    /// lock.
    pub fn view(&self) -> View {
        let changes = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        View {
            rows: Arc::clone(&self.rows),
            changes: Arc::clone(&changes),
            now: self.hints().1,
        }
    }

    /// Restores the world; rows added since then are gone, and their ids will be used again.
    ///
    /// # Errors
    /// `Argument` if the view belongs neither to this world nor to a copy of it.
    pub fn restore(&self, view: &View) -> Result<(), WorldError> {
        if !Arc::ptr_eq(&self.rows, &view.rows) {
            let problem = "it is of another world; use one of this world or of a copy of it";
            return Err(WorldError::argument("snapshot", problem));
        }
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        *changes = Arc::clone(&view.changes);
        Ok(())
    }

    /// An independent world with the same rows and changes. Costs nothing, whatever the size;
    /// rendered rows are shared.
    pub fn fork(&self) -> Self {
        let View { rows, changes, .. } = self.view();
        Self {
            rows,
            changes: RwLock::new(changes),
            hints: RwLock::default(),
        }
    }

    /// How many users there are now.
    pub fn total_users(&self) -> u64 {
        self.view().users().total()
    }

    /// How many messages there are now. Counts those of every user, about 10 million users per second.
    pub fn total_messages(&self) -> u64 {
        let view = self.view();
        let users = view.users().rows();
        users.map(|index| view.messages(index).total()).sum()
    }

    /// Sixteen hexadecimal digits that hash the generator's version, the arguments and all changes:
    /// equal fingerprints serve equal rows.
    pub fn fingerprint(&self) -> String {
        let mut digest = draw::Digest::new();
        let Generator { seed, lo, hi, .. } = self.rows.generator;
        let end = self.end().unwrap_or(0);
        for number in [GENERATOR_VERSION, seed, self.rows.users, lo, hi, end] {
            digest.number(number);
        }
        self.rows.given.digest(&mut digest);
        self.view().changes.digest(&mut digest);
        digest.hex()
    }
}

fn too_many_users(users: u64) -> WorldError {
    let problem = format!("{users} are too many; the maximum is {MAX_USERS}");
    WorldError::argument("users", problem)
}
