//! The world that the mock serves: users and messages made when asked for, and changes on top.
//!
//! Row i is a pure function of (generator version, seed, `messages_per_user`, i): a larger world
//! keeps the rows of a smaller one to the byte, and size costs no memory.

mod calendar;
pub(super) mod draw;
mod identity;
mod locale;
mod locales_eastern;
mod locales_latin;
mod overlay;
mod render;
mod shape;
#[cfg(test)]
mod tests;
pub(crate) mod text;
mod view;

use std::sync::{OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use thiserror::Error;

pub use draw::GENERATOR_VERSION;
pub use identity::{MAX_LIST, MAX_USERS};
pub use overlay::Fields;
use overlay::Overlay;
use render::Generator;
pub use view::View;
use view::{live_index, live_position};

/// The most messages that a user can be generated with.
pub const MAX_GENERATED: u64 = 1_000_000;

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

/// A made-up service: its users, their messages, and what was changed since.
#[derive(Debug)]
pub struct World {
    users: u64,
    generator: Generator,
    overlay: RwLock<Overlay>,
    generated_messages: OnceLock<u64>,
}

impl World {
    /// A world of `users` users with `lo..=hi` messages each, most of them with few. Made at once,
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
        Ok(Self {
            users,
            generator: Generator { seed, lo, hi },
            overlay: RwLock::default(),
            generated_messages: OnceLock::new(),
        })
    }

    /// The seed given at creation.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.generator.seed
    }

    /// The number of users given at creation.
    #[must_use]
    pub const fn users(&self) -> u64 {
        self.users
    }

    /// The least and the most messages generated for a user.
    #[must_use]
    pub const fn messages_per_user(&self) -> (u64, u64) {
        (self.generator.lo, self.generator.hi)
    }

    /// One instant of the world: nothing changes while it is held, so hold it briefly.
    pub fn view(&self) -> View<'_> {
        let overlay = self.overlay.read().unwrap_or_else(PoisonError::into_inner);
        View {
            users: self.users,
            generator: self.generator,
            overlay,
        }
    }

    fn change(&self) -> RwLockWriteGuard<'_, Overlay> {
        self.overlay.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many users there are now.
    #[must_use]
    pub fn total_users(&self) -> u64 {
        self.view().total_users()
    }

    /// How many messages there are now. The first call counts every generated user (about 10
    /// million a second); later ones are free.
    #[must_use]
    pub fn total_messages(&self) -> u64 {
        let generated = *self.generated_messages.get_or_init(|| {
            let Generator { seed, lo, hi } = self.generator;
            if lo == hi {
                return self.users * lo;
            }
            (0..self.users)
                .map(|index| shape::length(seed, index, lo, hi))
                .sum()
        });
        generated.saturating_add_signed(self.view().overlay.message_delta)
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

    /// Adds users at the end of the list and gives their ids. They are the generator's next rows
    /// and bring their own messages with them.
    ///
    /// # Errors
    /// `Argument` when the world would hold more than [`MAX_USERS`].
    pub fn add_users(&self, count: u64) -> Result<Vec<u64>, WorldError> {
        let Generator { seed, lo, hi } = self.generator;
        let mut overlay = self.change();
        let first = self.users + overlay.added_users;
        let end = first.saturating_add(count);
        if end > MAX_USERS {
            return Err(too_many_users(end));
        }
        let messages: u64 = (first..end)
            .map(|index| shape::length(seed, index, lo, hi))
            .sum();
        overlay.added_users += count;
        overlay.message_delta = overlay.message_delta.saturating_add_unsigned(messages);
        Ok((first..end)
            .map(|index| identity::user_id(seed, index))
            .collect())
    }

    /// Adds messages at the end of a user's list and gives their ids; the user's `updated_at` and
    /// `online_at` follow the last of them, unless they were set by hand.
    ///
    /// # Errors
    /// `NoUser`; `Argument` when the list would hold more than [`MAX_LIST`].
    pub fn add_messages(&self, user_id: u64, count: u64) -> Result<Vec<u64>, WorldError> {
        let Generator { seed, lo, hi } = self.generator;
        let mut overlay = self.change();
        let index = live_index(self.users, seed, &overlay, user_id)?;
        let change = overlay.users.entry(index).or_default();
        let first = shape::length(seed, index, lo, hi) + change.added;
        let end = first.saturating_add(count);
        if end > MAX_LIST {
            return Err(WorldError::Argument {
                argument: "count",
                problem: format!(
                    "user {user_id} would have {end} messages; {MAX_LIST} is the most"
                ),
            });
        }
        change.added += count;
        overlay.message_delta = overlay.message_delta.saturating_add_unsigned(count);
        Ok((first..end)
            .map(|position| identity::message_id(seed, index, position))
            .collect())
    }

    /// Removes a user with all messages; the id never comes back.
    ///
    /// # Errors
    /// `NoUser`.
    pub fn remove_user(&self, user_id: u64) -> Result<(), WorldError> {
        let Generator { seed, lo, hi } = self.generator;
        let mut overlay = self.change();
        let index = live_index(self.users, seed, &overlay, user_id)?;
        let (added, removed) = overlay
            .users
            .remove(&index)
            .map_or((0, 0), |change| (change.added, change.removed.len()));
        let messages = shape::length(seed, index, lo, hi) + added - removed;
        overlay.removed_users.take(index);
        overlay.message_delta = overlay.message_delta.saturating_sub_unsigned(messages);
        Ok(())
    }

    /// Removes a message; the id never comes back.
    ///
    /// # Errors
    /// `NoUser`, `NoMessage`.
    pub fn remove_message(&self, user_id: u64, message_id: u64) -> Result<(), WorldError> {
        let mut overlay = self.change();
        let (index, position) = self.live_place(&overlay, user_id, message_id)?;
        let change = overlay.users.entry(index).or_default();
        change.removed.take(position);
        change.messages.remove(&position);
        overlay.message_delta -= 1;
        Ok(())
    }

    /// Sets fields of a user to the given values, whatever they are: fields that the interface
    /// does not name are sent after the others. Fields set once stay so.
    ///
    /// # Errors
    /// `NoUser`; `Argument` for the field `id`, which rows are found by.
    pub fn edit_user(&self, user_id: u64, fields: Fields) -> Result<(), WorldError> {
        refuse_id(&fields)?;
        let mut overlay = self.change();
        let index = live_index(self.users, self.generator.seed, &overlay, user_id)?;
        if !fields.is_empty() {
            overlay
                .users
                .entry(index)
                .or_default()
                .fields
                .extend(fields);
        }
        Ok(())
    }

    /// Sets fields of a message, as [`World::edit_user`] does.
    ///
    /// # Errors
    /// `NoUser`, `NoMessage`; `Argument` for the field `id`.
    pub fn edit_message(
        &self,
        user_id: u64,
        message_id: u64,
        fields: Fields,
    ) -> Result<(), WorldError> {
        refuse_id(&fields)?;
        let mut overlay = self.change();
        let (index, position) = self.live_place(&overlay, user_id, message_id)?;
        if !fields.is_empty() {
            let change = overlay.users.entry(index).or_default();
            change.messages.entry(position).or_default().extend(fields);
        }
        Ok(())
    }

    /// Sixteen hexadecimal digits over the generator's version, the arguments and all changes:
    /// equal fingerprints serve equal rows.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut digest = draw::Digest::new();
        let Generator { seed, lo, hi } = self.generator;
        for number in [seed, self.users, lo, hi] {
            digest.number(number);
        }
        self.view().overlay.digest(&mut digest);
        digest.hex()
    }

    fn live_place(
        &self,
        overlay: &Overlay,
        user_id: u64,
        message_id: u64,
    ) -> Result<(u64, u64), WorldError> {
        let index = live_index(self.users, self.generator.seed, overlay, user_id)?;
        live_position(self.generator, overlay.users.get(&index), index, message_id)
            .map(|position| (index, position))
            .ok_or(WorldError::NoMessage {
                user_id,
                message_id,
            })
    }
}

fn refuse_id(fields: &Fields) -> Result<(), WorldError> {
    if fields.contains_key("id") {
        return Err(WorldError::Argument {
            argument: "id",
            problem: "rows are found by it, so it cannot be edited; remove the row instead".into(),
        });
    }
    Ok(())
}

fn too_many_users(users: u64) -> WorldError {
    WorldError::Argument {
        argument: "users",
        problem: format!("{users} are too many; {MAX_USERS} is the most that a world holds"),
    }
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
