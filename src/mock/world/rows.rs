//! The initial rows of a world, and those that come when it grows: never changed, only hidden or
//! overridden. A list is that of the users, or the messages of the user in row `owner`.

use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use super::MAX_GENERATED;
use super::block::{BLOCK, Block, BlockBuilder, Blocks};
use super::changes::{Activity, Fields};
use super::conversation::Conversation;
use super::generator::Generator;
use super::json_object::with_fields;
use super::jsonl::Given;
use super::messages::Messages;
use super::row::{ACTIVITY, Json, Moment};
use super::user::write_user;

/// All rows of a world and of its copies.
#[derive(Debug)]
pub struct Rows {
    /// The initial number of users.
    pub users: u64,
    /// The rows from JSON lines, which come first; all others are generated.
    pub given: Given,
    pub generator: Generator,
    rendered: Blocks,
}

impl Rows {
    /// `users` generated users.
    pub fn generated(users: u64, generator: Generator) -> Self {
        Self {
            users,
            given: Given::default(),
            generator,
            rendered: Blocks::default(),
        }
    }

    /// Rows from JSON lines; users added later get as many messages as these have.
    pub fn given(given: Given) -> Self {
        let lengths = || given.messages.iter().map(|messages| messages.rows.len());
        let above = |ids: &[u64]| ids.iter().max().map_or(0, |id| id + 1);
        let message_ids = given.messages.iter();
        let messages_from = message_ids.map(|messages| above(&messages.rows.ids)).max();
        let (lo, hi) = (lengths().min(), lengths().max());
        let [lo, hi] = [lo, hi].map(|length| length.unwrap_or(0).min(MAX_GENERATED));
        let generator = Generator {
            users_from: above(&given.users.ids),
            messages_from: messages_from.unwrap_or(0),
            ..Generator::new(0, lo, hi)
        };
        Self {
            users: given.users.len(),
            given,
            generator,
            rendered: Blocks::default(),
        }
    }

    /// The initial number of rows of a list.
    pub fn length(&self, owner: Option<u64>) -> u64 {
        match (owner, self.given.list(owner)) {
            (None, _) => self.users,
            (_, Some(given)) => given.len(),
            (Some(index), None) => self.generator.length(index),
        }
    }

    pub fn id(&self, owner: Option<u64>, row: u64) -> u64 {
        let given = self.given.list(owner);
        let given = given.and_then(|given| given.ids.get(row as usize).copied());
        given.unwrap_or_else(|| self.generator.id(owner, row))
    }

    /// The row with this id, even if it was not added yet.
    pub fn row(&self, owner: Option<u64>, id: u64) -> Option<u64> {
        let given = self.given.list(owner);
        given.and_then(|given| given.place(id)).or_else(|| {
            let row = self.generator.row(owner, id)?;
            given.is_none_or(|given| row >= given.len()).then_some(row)
        })
    }

    /// The text of one row; a user's hints show this activity.
    pub fn text(&self, owner: Option<u64>, row: u64, activity: Activity) -> Bytes {
        let first = row - row % BLOCK;
        let one = row..row + 1;
        if let Some(block) = self.given_block(owner, row) {
            return self.with_activity(row, block.rows(one), activity);
        }
        if activity == Activity::default()
            && row < self.length(owner)
            && let Some(block) = self.rendered.get((owner, first))
        {
            return block.rows(row - first..one.end - first);
        }
        self.render(owner, one, activity).rows(0..1)
    }

    /// A block that has the first of these rows, and the rows of the block.
    pub fn block(&self, owner: Option<u64>, rows: Range<u64>) -> (Range<u64>, Block) {
        let length = self.length(owner);
        if let Some(block) = self.given_block(owner, rows.start) {
            return (0..length, block.clone());
        }
        if rows.start >= length {
            let block = self.render(owner, rows.clone(), Activity::default());
            return (rows, block);
        }
        let first = rows.start - rows.start % BLOCK;
        let rows = first..length.min(first + BLOCK);
        let render = || self.render(owner, rows.clone(), Activity::default());
        let block = self.rendered.get_or_render((owner, first), render);
        (rows, block)
    }

    fn given_block(&self, owner: Option<u64>, row: u64) -> Option<&Block> {
        let given = self.given.list(owner)?;
        (row < given.len()).then_some(&given.block)
    }

    fn render(&self, owner: Option<u64>, rows: Range<u64>, activity: Activity) -> Block {
        let mut block = BlockBuilder::with_room(rows.end - rows.start);
        match owner {
            None => {
                for index in rows {
                    block.push(|out| write_user(&self.generator, index, activity, out));
                }
            }
            Some(index) => {
                let conversation = self.conversation(index);
                let user = self.given_block(None, index);
                let user = user.map(|block| block.rows(index..index + 1));
                let given = user.as_deref();
                let messages = Messages::new(&self.generator, index, conversation, given);
                messages.write(rows, &mut block);
            }
        }
        block.finish()
    }

    fn conversation(&self, index: u64) -> Conversation {
        let Generator { seed, calendar, .. } = &self.generator;
        match self.given.messages.get(index as usize) {
            Some(given) => {
                let length = given.rows.len();
                Conversation::new(*seed, index, length, calendar).after(given.last)
            }
            None => self.generator.conversation(index),
        }
    }

    /// A user from JSON lines, last seen when the messages last changed.
    fn with_activity(&self, index: u64, row: Bytes, activity: Activity) -> Bytes {
        if activity == Activity::default() {
            return row;
        }
        let last = Moment(self.conversation(index).last_change(activity));
        let mut text = Vec::new();
        last.write(&mut text);
        let last = serde_json::from_slice(&text).unwrap_or(Value::Null);
        let fields = ACTIVITY.map(|name| (name.to_owned(), last.clone()));
        Bytes::from(with_fields(&row, &Fields::from_iter(fields)))
    }
}
