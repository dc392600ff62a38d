//! The initial rows of a world, and those that come when it grows: never changed, only hidden or
//! overridden.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::Value;

use super::MAX_GENERATED;
use super::block::{Block, span};
use super::cache::{Blocks, Key};
use super::calendar::{Calendar, write_timestamp};
use super::conversation::Conversation;
use super::generator::Generator;
use super::json_object::with_fields;
use super::jsonl_rows::{FixedRows, JsonlRows};
use super::messages::Messages;
use super::overlay::{Activity, Fields};
use super::schema::{self, USER};
use super::user::UserRow;

/// All rows of a world and of its copies. Users are addressed by index, messages by index and
/// position; both continue past the initial rows.
#[derive(Debug)]
pub struct Rows {
    /// The initial number of users.
    pub users: u64,
    /// The rows from JSON lines, which come first; all others are generated.
    pub fixed: JsonlRows,
    pub generator: Generator,
    rendered: Blocks,
    messages: OnceLock<u64>,
}

impl Rows {
    /// `users` generated users with `lo..=hi` messages each.
    pub fn generated(users: u64, seed: u64, lo: u64, hi: u64, calendar: Calendar) -> Self {
        Self {
            users,
            fixed: JsonlRows::default(),
            generator: Generator {
                seed,
                lo,
                hi,
                calendar,
                users_from: 0,
                messages_from: 0,
            },
            rendered: Blocks::default(),
            messages: OnceLock::new(),
        }
    }

    /// Rows from JSON lines; users added later get as many messages as these have.
    pub fn fixed(fixed: JsonlRows) -> Self {
        let lengths = || fixed.messages.iter().map(|messages| messages.rows.len());
        let message_ids = fixed
            .messages
            .iter()
            .map(|messages| messages.rows.largest_id());
        let generator = Generator {
            seed: 0,
            lo: lengths().min().unwrap_or(0).min(MAX_GENERATED),
            hi: lengths().max().unwrap_or(0).min(MAX_GENERATED),
            calendar: Calendar::default(),
            users_from: fixed.users.largest_id().map_or(0, |id| id + 1),
            messages_from: message_ids.max().flatten().map_or(0, |id| id + 1),
        };
        Self {
            users: fixed.users.len(),
            generator,
            rendered: Blocks::default(),
            messages: OnceLock::from(lengths().sum::<u64>()),
            fixed,
        }
    }

    /// Whether ids above those of the JSON lines stay within 63 bits.
    pub const fn has_room(&self) -> bool {
        const MOST: u64 = 1 << 62;
        self.generator.users_from <= MOST && self.generator.messages_from <= MOST
    }

    /// The initial number of messages. The first call counts them; later ones are free.
    pub fn messages(&self) -> u64 {
        *self.messages.get_or_init(|| {
            if self.generator.lo == self.generator.hi {
                return self.users * self.generator.lo;
            }
            (0..self.users).map(|index| self.length(index)).sum()
        })
    }

    /// The initial number of messages of a user.
    pub fn length(&self, index: u64) -> u64 {
        match self.fixed.messages_of(index) {
            Some(messages) => messages.rows.len(),
            None => self.generator.length(index),
        }
    }

    pub fn user_id(&self, index: u64) -> u64 {
        let fixed = self.fixed.users.id(index);
        fixed.unwrap_or_else(|| self.generator.user_id(index))
    }

    /// The index of the user with this id, even if it was not added yet.
    pub fn user_index(&self, id: u64) -> Option<u64> {
        self.fixed.users.place(id).or_else(|| {
            let index = self.generator.user_index(id)?;
            (index >= self.fixed.users.len()).then_some(index)
        })
    }

    pub fn message_id(&self, index: u64, position: u64) -> u64 {
        let fixed = self.fixed.messages_of(index);
        fixed
            .and_then(|messages| messages.rows.id(position))
            .unwrap_or_else(|| self.generator.message_id(index, position))
    }

    /// The position of a message of this user, even if it was not added yet.
    pub fn message_position(&self, index: u64, id: u64) -> Option<u64> {
        let fixed = self.fixed.messages_of(index).map(|messages| &messages.rows);
        fixed.and_then(|fixed| fixed.place(id)).or_else(|| {
            let position = self.generator.message_position(index, id)?;
            (position >= fixed.map_or(0, FixedRows::len)).then_some(position)
        })
    }

    /// One user, whose hints show this activity.
    pub fn user(&self, index: u64, activity: Activity) -> Bytes {
        if let Some(row) = self.fixed.users.row(index) {
            return self.with_activity(index, row, activity);
        }
        if activity == Activity::default() {
            let rows = span(index, self.users);
            let key = Key::Users { first: rows.start };
            if let Some(block) = self.rendered.get(key) {
                return block.row(index - rows.start);
            }
        }
        let mut row = Vec::new();
        self.write_user(index, activity, &mut row);
        Bytes::from(row)
    }

    /// One message.
    pub fn message(&self, index: u64, position: u64) -> Bytes {
        let fixed = self.fixed.messages_of(index);
        if let Some(row) = fixed.and_then(|messages| messages.rows.row(position)) {
            return row;
        }
        let rows = span(position, self.length(index));
        let first = rows.start;
        if let Some(block) = self.rendered.get(Key::Messages { index, first }) {
            return block.row(position - first);
        }
        let mut row = Vec::new();
        let conversation = self.conversation(index);
        self.writer(index, &conversation).write(position, &mut row);
        Bytes::from(row)
    }

    /// The block of users around `index`, and their indexes.
    pub fn user_block(&self, index: u64) -> (Range<u64>, Block) {
        let rows = span(index, self.users);
        if let Some(block) = self.fixed.users.block(index) {
            return (rows, block.clone());
        }
        let key = Key::Users { first: rows.start };
        let block = self.rendered.get_or_render(key, || {
            Block::written(rows.clone(), |index, out| {
                self.write_user(index, Activity::default(), out)
            })
        });
        (rows, block)
    }

    /// The block of messages around `position`, and their positions.
    pub fn message_block(&self, index: u64, position: u64) -> (Range<u64>, Block) {
        let rows = span(position, self.length(index));
        let fixed = self.fixed.messages_of(index);
        if let Some(block) = fixed.and_then(|messages| messages.rows.block(position)) {
            return (rows, block.clone());
        }
        let first = rows.start;
        let block = self
            .rendered
            .get_or_render(Key::Messages { index, first }, || {
                let conversation = self.conversation(index);
                let mut writer = self.writer(index, &conversation);
                Block::written(rows.clone(), |position, out| writer.write(position, out))
            });
        (rows, block)
    }

    fn write_user(&self, index: u64, activity: Activity, out: &mut Vec<u8>) {
        let mut user = UserRow::new(self.generator, index, activity);
        schema::write(USER, &mut user, out);
    }

    fn conversation(&self, index: u64) -> Conversation {
        let Generator { seed, calendar, .. } = self.generator;
        match self.fixed.messages_of(index) {
            Some(messages) => {
                let last = messages
                    .last
                    .unwrap_or_else(|| calendar.arrival(seed, index));
                Conversation::following(seed, index, messages.rows.len(), last)
            }
            None => self.generator.conversation(index),
        }
    }

    fn writer<'conversation>(
        &self,
        index: u64,
        conversation: &'conversation Conversation,
    ) -> Messages<'conversation> {
        let writer = Messages::new(self.generator, index, conversation);
        match self.fixed.users.row(index) {
            Some(row) => writer.with_user(&row),
            None => writer,
        }
    }

    /// A user from JSON lines, last seen when the messages last changed.
    fn with_activity(&self, index: u64, row: Bytes, activity: Activity) -> Bytes {
        if activity == Activity::default() {
            return row;
        }
        let conversation = self.conversation(index);
        let mut stamp = Vec::new();
        let last = conversation.last_change(activity);
        write_timestamp(last, &mut stamp);
        let stamp = Value::from(String::from_utf8_lossy(&stamp));
        let fields = schema::activity().map(|name| (name.to_owned(), stamp.clone()));
        Bytes::from(with_fields(&row, &Fields::from_iter(fields)))
    }
}
