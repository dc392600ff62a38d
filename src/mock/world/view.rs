//! One instant of a world: its rows, their order, and how they are written.

use std::ops::Range;
use std::sync::Arc;
use tokio::time::Instant;

use bytes::Bytes;

use super::WorldError;
use super::block::Block;
use super::json_object::with_fields;
use super::overlay::{Activity, Fields, Overlay, UserChange};
use super::remaining_rows::RemainingRows;
use super::rows::Rows;
use crate::chunks::Chunks;

/// A read-only view of one instant of a world. Cheap to copy; later changes of the world do not
/// show.
#[derive(Clone, Debug)]
pub struct View {
    pub(super) rows: Arc<Rows>,
    pub(super) overlay: Arc<Overlay>,
    /// The time by the world's clock, which decides what the hints show.
    pub(super) now: Instant,
}

impl View {
    /// Whether the other view is of the same instant, with no change in between. Views of copies of
    /// a world are the same until one of them is changed.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rows, &other.rows) && Arc::ptr_eq(&self.overlay, &other.overlay)
    }

    /// How many users there are.
    #[must_use]
    pub fn total_users(&self) -> u64 {
        self.users().len()
    }

    /// How many messages a user has, or `None` if there is no such user.
    #[must_use]
    pub fn total_messages(&self, user_id: u64) -> Option<u64> {
        Some(self.chat(user_id)?.list().len())
    }

    /// All user ids, in the order of the list.
    #[must_use]
    pub fn user_ids(&self) -> Vec<u64> {
        let rows = self.users().rows();
        rows.map(|index| self.rows.user_id(index)).collect()
    }

    /// All ids of a user's messages, in the order of the list, or `None` if there is no such user.
    #[must_use]
    pub fn message_ids(&self, user_id: u64) -> Option<Vec<u64>> {
        let chat = self.chat(user_id)?;
        let rows = chat.list().rows();
        Some(
            rows.map(|row| self.rows.message_id(chat.index, row))
                .collect(),
        )
    }

    /// The id of the user at a position in the list.
    #[must_use]
    pub fn user_id_at(&self, position: u64) -> Option<u64> {
        let index = self.users().row(position)?;
        Some(self.rows.user_id(index))
    }

    /// The id of the message at a position in the user's list.
    #[must_use]
    pub fn message_id_at(&self, user_id: u64, position: u64) -> Option<u64> {
        let chat = self.chat(user_id)?;
        let row = chat.list().row(position)?;
        Some(self.rows.message_id(chat.index, row))
    }

    /// The position of a user in the list.
    #[must_use]
    pub fn user_position(&self, user_id: u64) -> Option<u64> {
        self.users().position(self.rows.user_index(user_id)?)
    }

    /// The position of a message in the user's list.
    #[must_use]
    pub fn message_position(&self, user_id: u64, message_id: u64) -> Option<u64> {
        let chat = self.chat(user_id)?;
        let row = self.rows.message_position(chat.index, message_id)?;
        chat.list().position(row)
    }

    /// The user at a position in the list, as the service sends it.
    #[must_use]
    pub fn user_row(&self, position: u64) -> Option<Bytes> {
        Some(self.user_text(self.users().row(position)?))
    }

    /// The message at a position in the user's list, as the service sends it.
    #[must_use]
    pub fn message_row(&self, user_id: u64, position: u64) -> Option<Bytes> {
        let chat = self.chat(user_id)?;
        Some(self.message_text(chat, chat.list().row(position)?))
    }

    /// Writes the user; false if it does not exist.
    pub fn write_user(&self, user_id: u64, out: &mut Vec<u8>) -> bool {
        let index = self.index(user_id).ok();
        if let Some(index) = index {
            out.extend_from_slice(&self.user_text(index));
        }
        index.is_some()
    }

    /// Writes the message; false if it does not exist.
    pub fn write_message(&self, user_id: u64, message_id: u64, out: &mut Vec<u8>) -> bool {
        let place = self.place(user_id, message_id).ok();
        if let Some((chat, row)) = place {
            out.extend_from_slice(&self.message_text(chat, row));
        }
        place.is_some()
    }

    /// Adds up to `limit` users from `offset` on, separated by commas.
    pub fn write_users(&self, offset: u64, limit: usize, out: &mut Chunks) {
        let page = Page {
            list: self.users(),
            block: |index| self.rows.user_block(index),
            first_changed: |indexes| {
                let mut changes = self.overlay.users.range(indexes);
                let changed = changes.find(|(_, change)| change.changes_row());
                changed.map(|(index, _)| index)
            },
            changed: |index| self.user_text(index),
        };
        page.write(offset, limit, out);
    }

    /// Adds up to `limit` messages of a user from `offset` on, separated by commas.
    pub fn write_messages(&self, user_id: u64, offset: u64, limit: usize, out: &mut Chunks) {
        let Some(chat) = self.chat(user_id) else {
            return;
        };
        let page = Page {
            list: chat.list(),
            block: |row| self.rows.message_block(chat.index, row),
            first_changed: |rows| {
                let mut changes = chat.change?.messages.range(rows);
                changes.next().map(|(row, _)| row)
            },
            changed: |row| self.message_text(chat, row),
        };
        page.write(offset, limit, out);
    }

    fn users(&self) -> RemainingRows<'_> {
        RemainingRows {
            removed: Some(&self.overlay.removed_users),
            end: self.rows.users + self.overlay.added_users,
        }
    }

    fn chat(&self, user_id: u64) -> Option<MessageList<'_>> {
        self.index(user_id).ok().map(|index| self.chat_at(index))
    }

    pub(super) fn chat_at(&self, index: u64) -> MessageList<'_> {
        MessageList {
            index,
            length: self.rows.length(index),
            change: self.overlay.users.get(index).map(Arc::as_ref),
        }
    }

    /// The index of an existing user.
    pub(super) fn index(&self, user_id: u64) -> Result<u64, WorldError> {
        let index = self.rows.user_index(user_id);
        index
            .filter(|index| self.users().has(*index))
            .ok_or(WorldError::NoUser { user_id })
    }

    /// The place of an existing message, counting removed rows.
    pub(super) fn place(
        &self,
        user_id: u64,
        message_id: u64,
    ) -> Result<(MessageList<'_>, u64), WorldError> {
        let chat = self.chat_at(self.index(user_id)?);
        let row = self.rows.message_position(chat.index, message_id);
        row.filter(|row| chat.list().has(*row))
            .map(|row| (chat, row))
            .ok_or(WorldError::NoMessage {
                user_id,
                message_id,
            })
    }

    fn user_text(&self, index: u64) -> Bytes {
        let change = self.overlay.users.get(index);
        let row = self.rows.user(
            index,
            change.map_or_else(Activity::default, |change| change.activity(self.now)),
        );
        edited(row, change.map(|change| &change.fields))
    }

    fn message_text(&self, chat: MessageList<'_>, row: u64) -> Bytes {
        edited(self.rows.message(chat.index, row), chat.fields(row))
    }
}

/// One user's messages at that instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageList<'view> {
    pub index: u64,
    length: u64,
    change: Option<&'view UserChange>,
}

impl<'view> MessageList<'view> {
    fn fields(self, row: u64) -> Option<&'view Fields> {
        Some(self.change?.messages.get(row)?)
    }

    pub fn list(self) -> RemainingRows<'view> {
        RemainingRows {
            removed: self.change.map(|change| &change.removed),
            end: self.length + self.change.map_or(0, |change| change.done.added),
        }
    }
}

/// How the rows of a list are found and written.
struct Page<'view, Find, Changed, Write> {
    list: RemainingRows<'view>,
    /// The block of a row.
    block: Find,
    /// The first row of a range that differs from its block.
    first_changed: Changed,
    /// Renders such a row.
    changed: Write,
}

impl<Find, Changed, Write> Page<'_, Find, Changed, Write>
where
    Find: Fn(u64) -> (Range<u64>, Block),
    Changed: Fn(Range<u64>) -> Option<u64>,
    Write: Fn(u64) -> Bytes,
{
    fn write(&self, offset: u64, limit: usize, out: &mut Chunks) {
        const COMMA: Bytes = Bytes::from_static(b",");
        let before = out.length();
        let (mut position, mut left) = (offset, limit as u64);
        let mut reached: Option<(Range<u64>, Block)> = None;
        while let Some(run) = self.list.run(position, left) {
            let changed = (self.first_changed)(run.clone());
            let done = if changed == Some(run.start) {
                out.push((self.changed)(run.start));
                out.push(COMMA);
                1
            } else {
                let (rows, block) = reached
                    .take_if(|(rows, _)| rows.contains(&run.start))
                    .unwrap_or_else(|| (self.block)(run.start));
                let end = changed.unwrap_or(run.end).min(rows.end);
                out.push(block.rows(run.start - rows.start..end - rows.start));
                reached = Some((rows, block));
                end - run.start
            };
            position += done;
            left -= done;
        }
        if out.length() > before {
            out.drop_last_byte();
        }
    }
}

fn edited(row: Bytes, fields: Option<&Fields>) -> Bytes {
    match fields.filter(|fields| !fields.is_empty()) {
        Some(fields) => Bytes::from(with_fields(&row, fields)),
        None => row,
    }
}
