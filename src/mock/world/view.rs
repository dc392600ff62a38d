//! One instant of a world: what is in it, in which order, and how it is written.

use std::sync::RwLockReadGuard;

use serde_json::Value;

use super::WorldError;
use super::identity;
use super::overlay::{Fields, Gaps, Overlay, UserChange};
use super::render::{Chat, Generator};
use super::shape;

/// One instant of a world, to read from.
#[derive(Debug)]
pub struct View<'world> {
    pub(super) users: u64,
    pub(super) generator: Generator,
    pub(super) overlay: RwLockReadGuard<'world, Overlay>,
}

impl View<'_> {
    /// How many users there are.
    #[must_use]
    pub fn total_users(&self) -> u64 {
        self.users + self.overlay.added_users - self.overlay.removed_users.len()
    }

    /// How many messages a user has, or `None` if there is no such user.
    #[must_use]
    pub fn total_messages(&self, user_id: u64) -> Option<u64> {
        let (index, change) = self.user(user_id)?;
        let Generator { seed, lo, hi } = self.generator;
        let (added, removed) = change.map_or((0, 0), |change| (change.added, change.removed.len()));
        Some(shape::length(seed, index, lo, hi) + added - removed)
    }

    /// All ids of users, in the order of the list: ascending.
    #[must_use]
    pub fn user_ids(&self) -> Vec<u64> {
        self.user_rows(0)
            .map(|index| identity::user_id(self.generator.seed, index))
            .collect()
    }

    /// All ids of a user's messages, in the order of the list (oldest first, ascending), or `None`
    /// if there is no such user.
    #[must_use]
    pub fn message_ids(&self, user_id: u64) -> Option<Vec<u64>> {
        let (index, change) = self.user(user_id)?;
        let end = self.generator.conversation(index).length + change.map_or(0, |it| it.added);
        let none = Gaps::default();
        let ids = change
            .map_or(&none, |it| &it.removed)
            .left(0, end)
            .map(|position| identity::message_id(self.generator.seed, index, position));
        Some(ids.collect())
    }

    /// Writes the user; false if there is none.
    pub fn write_user(&self, user_id: u64, out: &mut Vec<u8>) -> bool {
        let found = self.user(user_id);
        if let Some((index, _)) = found {
            self.write_user_row(index, out);
        }
        found.is_some()
    }

    /// Writes the message; false if there is none.
    pub fn write_message(&self, user_id: u64, message_id: u64, out: &mut Vec<u8>) -> bool {
        let Some((index, change)) = self.user(user_id) else {
            return false;
        };
        let position = live_position(self.generator, change, index, message_id);
        if let Some(position) = position {
            let conversation = self.generator.conversation(index);
            write_row(
                &mut self.generator.chat(index, &conversation),
                change,
                position,
                out,
            );
        }
        position.is_some()
    }

    /// Writes up to `limit` users from `offset` on, separated by commas.
    pub fn write_users(&self, offset: u64, limit: usize, out: &mut Vec<u8>) {
        for (number, index) in self.user_rows(offset).take(limit).enumerate() {
            if number > 0 {
                out.push(b',');
            }
            self.write_user_row(index, out);
        }
    }

    /// Writes up to `limit` messages of a user from `offset` on, separated by commas.
    pub fn write_messages(&self, user_id: u64, offset: u64, limit: usize, out: &mut Vec<u8>) {
        let Some((index, change)) = self.user(user_id) else {
            return;
        };
        let conversation = self.generator.conversation(index);
        let end = conversation.length + change.map_or(0, |it| it.added);
        let none = Gaps::default();
        let rows = change.map_or(&none, |it| &it.removed).left(offset, end);
        let mut chat = self.generator.chat(index, &conversation);
        for (number, position) in rows.take(limit).enumerate() {
            if number > 0 {
                out.push(b',');
            }
            write_row(&mut chat, change, position, out);
        }
    }

    fn user(&self, user_id: u64) -> Option<(u64, Option<&UserChange>)> {
        let index = live_index(self.users, self.generator.seed, &self.overlay, user_id).ok()?;
        Some((index, self.overlay.users.get(&index)))
    }

    fn user_rows(&self, offset: u64) -> impl Iterator<Item = u64> {
        self.overlay
            .removed_users
            .left(offset, self.users + self.overlay.added_users)
    }

    fn write_user_row(&self, index: u64, out: &mut Vec<u8>) {
        let Some(change) = self.overlay.users.get(&index) else {
            return self.generator.write_user(index, 0, out);
        };
        let start = out.len();
        self.generator.write_user(index, change.added, out);
        rewrite(out, start, &change.fields);
    }
}

fn write_row(chat: &mut Chat<'_>, change: Option<&UserChange>, position: u64, out: &mut Vec<u8>) {
    let start = out.len();
    chat.write_message(position, out);
    if let Some(fields) = change.and_then(|change| change.messages.get(&position)) {
        rewrite(out, start, fields);
    }
}

/// The row of a user that is there now.
///
/// # Errors
/// `NoUser`.
pub fn live_index(
    users: u64,
    seed: u64,
    overlay: &Overlay,
    user_id: u64,
) -> Result<u64, WorldError> {
    identity::user_index(seed, user_id)
        .filter(|index| *index < users + overlay.added_users)
        .filter(|index| !overlay.removed_users.has(*index))
        .ok_or(WorldError::NoUser { user_id })
}

/// The position of a message that is there now, in the list of the user in row `index`.
pub fn live_position(
    generator: Generator,
    change: Option<&UserChange>,
    index: u64,
    message_id: u64,
) -> Option<u64> {
    let Generator { seed, lo, hi } = generator;
    let (owner, position) = identity::message_place(seed, message_id)?;
    let end = shape::length(seed, index, lo, hi) + change.map_or(0, |change| change.added);
    let removed = change.is_some_and(|change| change.removed.has(position));
    (owner == index && position < end && !removed).then_some(position)
}

/// Sets fields of the JSON object that `out` holds from `start` on.
fn rewrite(out: &mut Vec<u8>, start: usize, fields: &Fields) {
    let row = out
        .get(start..)
        .and_then(|row| serde_json::from_slice::<Fields>(row).ok());
    let Some(mut row) = row.filter(|_| !fields.is_empty()) else {
        return;
    };
    row.extend(fields.clone());
    out.truncate(start);
    out.extend_from_slice(Value::Object(row).to_string().as_bytes());
}
