//! The rows that a world starts with, and those that come when it grows: never changed, only hidden
//! or written over.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;

use super::block::{Block, span};
use super::cache::{Blocks, Key};
use super::render::Generator;

/// All rows of a world and of its copies. Users go by index, and messages by index and position;
/// both go on past what is there at first.
#[derive(Debug)]
pub struct Rows {
    /// How many users there are at first.
    pub users: u64,
    pub generator: Generator,
    rendered: Blocks,
    messages: OnceLock<u64>,
}

impl Rows {
    /// `users` rows of a generator.
    pub fn generated(users: u64, generator: Generator) -> Self {
        Self {
            users,
            generator,
            rendered: Blocks::default(),
            messages: OnceLock::new(),
        }
    }

    /// How many messages there are at first. The first call counts; later ones are free.
    pub fn messages(&self) -> u64 {
        *self.messages.get_or_init(|| {
            if self.generator.lo == self.generator.hi {
                return self.users * self.generator.lo;
            }
            (0..self.users).map(|index| self.length(index)).sum()
        })
    }

    /// How many messages a user has at first.
    pub fn length(&self, index: u64) -> u64 {
        self.generator.length(index)
    }

    pub fn user_id(&self, index: u64) -> u64 {
        self.generator.user_id(index)
    }

    /// The index of the user with this id, whether it came already or not.
    pub fn user_index(&self, id: u64) -> Option<u64> {
        self.generator.user_index(id)
    }

    pub fn message_id(&self, index: u64, position: u64) -> u64 {
        self.generator.message_id(index, position)
    }

    /// The position of a message of this user, whether it came already or not.
    pub fn message_position(&self, index: u64, id: u64) -> Option<u64> {
        self.generator.message_position(index, id)
    }

    /// When the user came, in milliseconds since 1970.
    pub fn user_moment(&self, index: u64) -> Option<u64> {
        Some(self.generator.conversation(index).arrival)
    }

    /// When the message was written, in milliseconds since 1970.
    pub fn message_moment(&self, index: u64, position: u64) -> Option<u64> {
        Some(self.generator.conversation(index).moment(position))
    }

    /// One user, to whom `added` messages came.
    pub fn user(&self, index: u64, added: u64) -> Bytes {
        if added == 0 {
            let rows = span(index, self.users);
            let key = Key::Users { first: rows.start };
            if let Some(block) = self.rendered.get(key) {
                return block.row(index - rows.start);
            }
        }
        let mut row = Vec::new();
        self.generator.write_user(index, added, &mut row);
        Bytes::from(row)
    }

    /// One message.
    pub fn message(&self, index: u64, position: u64) -> Bytes {
        let rows = span(position, self.length(index));
        let first = rows.start;
        if let Some(block) = self.rendered.get(Key::Messages { index, first }) {
            return block.row(position - first);
        }
        let mut row = Vec::new();
        let conversation = self.generator.conversation(index);
        let mut chat = self.generator.chat(index, &conversation);
        chat.write_message(position, &mut row);
        Bytes::from(row)
    }

    /// The users that stand together with the one at `index`, and their indexes.
    pub fn user_block(&self, index: u64) -> (Range<u64>, Block) {
        let rows = span(index, self.users);
        let key = Key::Users { first: rows.start };
        let block = self.rendered.get_or_render(key, || {
            Block::written(rows.clone(), |index, out| {
                self.generator.write_user(index, 0, out);
            })
        });
        (rows, block)
    }

    /// The messages that stand together with the one at `position`, and their positions.
    pub fn message_block(&self, index: u64, position: u64) -> (Range<u64>, Block) {
        let rows = span(position, self.length(index));
        let first = rows.start;
        let block = self
            .rendered
            .get_or_render(Key::Messages { index, first }, || {
                let conversation = self.generator.conversation(index);
                let mut chat = self.generator.chat(index, &conversation);
                Block::written(rows.clone(), |position, out| {
                    chat.write_message(position, out);
                })
            });
        (rows, block)
    }
}
