//! The generator of one world: ids and conversations, from row numbers.

use super::calendar::Calendar;
use super::conversation::{self, Conversation};
use super::ids;

/// The generator of one world: a pure function of row numbers.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    pub seed: u64,
    /// The least and the most messages of a user.
    pub lo: u64,
    pub hi: u64,
    pub calendar: Calendar,
    /// Generated ids are above these, and so above those of given rows.
    pub users_from: u64,
    pub messages_from: u64,
}

impl Generator {
    /// How many messages the user in row `index` has.
    pub const fn length(&self, index: u64) -> u64 {
        conversation::length(self.seed, index, self.lo, self.hi)
    }

    /// The id of the user in row `index`.
    pub const fn user_id(&self, index: u64) -> u64 {
        self.users_from + ids::user_id(self.seed, index)
    }

    /// The row of the user with this id.
    pub fn user_index(&self, id: u64) -> Option<u64> {
        ids::user_index(self.seed, id.checked_sub(self.users_from)?)
    }

    /// The id of message `position` of the user in row `index`.
    pub const fn message_id(&self, index: u64, position: u64) -> u64 {
        self.messages_from + ids::message_id(self.seed, index, position)
    }

    /// The position of the message with this id, if it is one of the user in row `index`.
    pub fn message_position(&self, index: u64, id: u64) -> Option<u64> {
        let id = id.checked_sub(self.messages_from)?;
        let (owner, position) = ids::message_place(self.seed, id)?;
        (owner == index).then_some(position)
    }

    /// The generated conversation of the user in row `index`.
    #[must_use]
    pub fn conversation(&self, index: u64) -> Conversation {
        let length = self.length(index);
        Conversation::new(self.seed, index, length, &self.calendar)
    }
}
