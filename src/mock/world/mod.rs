//! The world that the mock serves: users and messages generated on demand, with changes on top.
//!
//! Row i is a pure function of (generator version, seed, `messages_per_user`, i): a larger world
//! has byte for byte the rows of a smaller one, and size costs no memory.

mod block;
mod cache;
mod calendar;
mod conversation;
pub(super) mod draw;
mod edits;
mod generator;
mod hints;
mod ids;
mod json_object;
mod jsonl;
mod jsonl_rows;
mod locale;
mod message;
mod messages;
mod overlay;
mod remaining_rows;
mod rows;
mod schema;
mod sorted;
#[cfg(test)]
mod tests;
pub(crate) mod text;
mod user;
mod view;

use std::sync::{Arc, PoisonError, RwLock};
use tokio::time::Instant;

use backread_clock::Clock;
use thiserror::Error;

use calendar::Calendar;
pub use draw::GENERATOR_VERSION;
use generator::Generator;
use hints::HintRule;
pub use hints::Hints;
pub use ids::{MAX_LIST, MAX_USERS};
pub use jsonl::{JsonlError, JsonlReader};
use jsonl_rows::JsonlRows;
pub use overlay::Fields;
use overlay::Overlay;
use rows::Rows;
pub use view::View;

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

/// A made-up service: its users, their messages, and the changes since.
#[derive(Debug)]
pub struct World {
    rows: Arc<Rows>,
    overlay: RwLock<Arc<Overlay>>,
    hints: RwLock<HintRule>,
}

/// The changes of a world at one instant, for restoring it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    view: View,
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
            return Err(WorldError::Argument {
                argument: "messages_per_user",
                problem: format!(
                    "({lo}, {hi}) is not a range; give (least, most) with least <= most <= \
                     {MAX_GENERATED}"
                ),
            });
        }
        Ok(Self::over(Rows::generated(
            users,
            seed,
            lo,
            hi,
            Calendar::default(),
        )))
    }

    /// The same users with other times: the last of them arrives about a day before `end`,
    /// milliseconds since 1970, and no generated time is later. Unlike all else of a row, its times
    /// depend on the number of users. Changes made before are dropped.
    ///
    /// # Errors
    /// `Argument` when `end` is not from [`EARLIEST_END`] to [`LATEST_END`].
    pub fn ending(self, end: u64) -> Result<Self, WorldError> {
        let Generator { seed, lo, hi, .. } = self.rows.generator;
        let users = self.rows.users;
        (EARLIEST_END..=LATEST_END)
            .contains(&end)
            .then(|| Calendar::ending(seed, users, end))
            .flatten()
            .map(|calendar| Self::over(Rows::generated(users, seed, lo, hi, calendar)))
            .ok_or_else(|| WorldError::Argument {
                argument: "until",
                problem: "must be from 2010 to 2199".into(),
            })
    }

    fn fixed(rows: JsonlRows) -> Self {
        Self::over(Rows::fixed(rows))
    }

    fn over(rows: Rows) -> Self {
        Self {
            rows: Arc::new(rows),
            overlay: RwLock::default(),
            hints: RwLock::default(),
        }
    }

    /// The seed given at creation; 0 in a world from JSON lines.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.rows.generator.seed
    }

    /// The number of users at creation.
    #[must_use]
    pub fn users(&self) -> u64 {
        self.rows.users
    }

    /// The least and the most messages generated for a user; in a world from JSON lines, those that
    /// its users have.
    #[must_use]
    pub fn messages_per_user(&self) -> (u64, u64) {
        (self.rows.generator.lo, self.rows.generator.hi)
    }

    /// The time that no generated row is later than, in milliseconds since 1970, if one was given.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.rows.generator.calendar.end()
    }

    /// Whether its first rows came from JSON lines.
    #[must_use]
    pub fn is_from_jsonl(&self) -> bool {
        self.rows.fixed.users.len() > 0
    }

    /// What the hints of users do when messages change, from now on.
    pub fn set_hints(&self, hints: Hints, clock: Clock) {
        let mut rule = self.hints.write().unwrap_or_else(PoisonError::into_inner);
        *rule = HintRule { hints, clock };
    }

    fn hints(&self) -> (Hints, Instant) {
        let rule = self.hints.read().unwrap_or_else(PoisonError::into_inner);
        rule.now()
    }

    /// A read-only view of this instant of the world; it holds no lock.
    #[must_use]
    pub fn view(&self) -> View {
        let overlay = self.overlay.read().unwrap_or_else(PoisonError::into_inner);
        View {
            rows: Arc::clone(&self.rows),
            overlay: Arc::clone(&overlay),
            now: self.hints().1,
        }
    }

    /// All changes up to now, for restoring them later. Costs nothing.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { view: self.view() }
    }

    /// Restores the world; rows added since then are gone, and their ids will be used again.
    ///
    /// # Errors
    /// `Argument` if the snapshot belongs neither to this world nor to a copy of it.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), WorldError> {
        let Snapshot { view } = snapshot;
        if !Arc::ptr_eq(&self.rows, &view.rows) {
            return Err(WorldError::Argument {
                argument: "snapshot",
                problem: "it is of another world; use one of this world or of a copy of it".into(),
            });
        }
        let mut overlay = self.overlay.write().unwrap_or_else(PoisonError::into_inner);
        *overlay = Arc::clone(&view.overlay);
        Ok(())
    }

    /// An independent world with the same rows and changes. Costs nothing, whatever the size;
    /// rendered rows are shared.
    #[must_use]
    pub fn fork(&self) -> Self {
        let view = self.view();
        Self {
            rows: view.rows,
            overlay: RwLock::new(view.overlay),
            hints: RwLock::default(),
        }
    }

    /// How many users there are now.
    #[must_use]
    pub fn total_users(&self) -> u64 {
        self.view().total_users()
    }

    /// How many messages there are now. The first call counts every generated user (about 10
    /// million per second), and each call counts those that were added.
    #[must_use]
    pub fn total_messages(&self) -> u64 {
        let view = self.view();
        let added = self.rows.users..self.rows.users + view.overlay.added_users;
        let added: u64 = added.map(|index| self.rows.length(index)).sum();
        (self.rows.messages() + added).saturating_add_signed(view.overlay.message_delta)
    }

    /// The user as the service sends it, or `None`.
    #[must_use]
    pub fn user_json(&self, user_id: u64) -> Option<String> {
        let mut out = Vec::new();
        self.view()
            .write_user(user_id, &mut out)
            .then(|| into_text(out))
    }

    /// The message as the service sends it, or `None`.
    #[must_use]
    pub fn message_json(&self, user_id: u64, message_id: u64) -> Option<String> {
        let mut out = Vec::new();
        self.view()
            .write_message(user_id, message_id, &mut out)
            .then(|| into_text(out))
    }

    /// Sixteen hexadecimal digits that hash the generator's version, the arguments and all changes:
    /// equal fingerprints serve equal rows.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut digest = draw::Digest::new();
        let Generator { seed, lo, hi, .. } = self.rows.generator;
        for number in [seed, self.rows.users, lo, hi] {
            digest.number(number);
        }
        if let Some(end) = self.end() {
            digest.number(end);
        }
        self.rows.fixed.digest(&mut digest);
        self.view().overlay.digest(&mut digest);
        digest.hex()
    }
}

fn too_many_users(users: u64) -> WorldError {
    WorldError::Argument {
        argument: "users",
        problem: format!("{users} are too many; the maximum is {MAX_USERS}"),
    }
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
