//! Users as JSON text, in the fields and the order of interface 2.1, and the ids of all rows.

use super::calendar::{DAY, HOUR, MINUTE, SECOND, write_timestamp};
use super::draw::{Draw, Stream};
use super::identity;
use super::person::{
    Person, write_attributes, write_email, write_last_url, write_name, write_reference,
};
use super::shape::{self, Conversation};
use super::text;

/// The generator of one world: a pure function from row numbers to JSON.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    pub seed: u64,
    /// The least and the most messages of a user.
    pub lo: u64,
    pub hi: u64,
    /// Generated ids are above these, and so above those of given rows.
    pub users_from: u64,
    pub messages_from: u64,
}
impl Generator {
    /// How many messages the user in row `index` has.
    pub const fn length(&self, index: u64) -> u64 {
        shape::length(self.seed, index, self.lo, self.hi)
    }

    /// The id of the user in row `index`.
    pub const fn user_id(&self, index: u64) -> u64 {
        self.users_from + identity::user_id(self.seed, index)
    }

    /// The row of the user with this id.
    pub fn user_index(&self, id: u64) -> Option<u64> {
        identity::user_index(self.seed, id.checked_sub(self.users_from)?)
    }

    /// The id of message `position` of the user in row `index`.
    pub const fn message_id(&self, index: u64, position: u64) -> u64 {
        self.messages_from + identity::message_id(self.seed, index, position)
    }

    /// The position of the message with this id, if it is one of the user in row `index`.
    pub fn message_position(&self, index: u64, id: u64) -> Option<u64> {
        let id = id.checked_sub(self.messages_from)?;
        let (owner, position) = identity::message_place(self.seed, id)?;
        (owner == index).then_some(position)
    }

    /// The generated conversation of the user in row `index`.
    #[must_use]
    pub fn conversation(&self, index: u64) -> Conversation {
        Conversation::new(self.seed, index, self.lo, self.hi)
    }

    /// Writes the user in row `index`, who has `added` messages after the generated ones.
    pub fn write_user(&self, index: u64, added: u64, out: &mut Vec<u8>) {
        let person = Person::new(self.seed, index);
        let conversation = self.conversation(index);
        let last = conversation.last_moment(conversation.length + added);
        let mut presence = Draw::new(self.seed, Stream::Presence, index, 0);
        let online = last + 2 * SECOND + presence.below(10 * MINUTE);
        let updated = match presence.below(10) {
            0..6 => online,
            6..9 => last + SECOND + presence.below(SECOND),
            _ => online + HOUR + presence.below(20 * DAY),
        };
        out.extend_from_slice(b"{\"id\":");
        text::number(self.user_id(index), out);
        out.extend_from_slice(b",\"name\":\"");
        write_name(&person, out);
        out.extend_from_slice(b"\",\"email\":\"");
        write_email(&person, out);
        out.extend_from_slice(b"\",\"reference\":\"");
        write_reference(&person, index, out);
        out.extend_from_slice(b"\",\"created_at\":\"");
        write_timestamp(conversation.arrival, out);
        out.extend_from_slice(b"\",\"updated_at\":\"");
        write_timestamp(updated, out);
        out.extend_from_slice(b"\",\"online_at\":\"");
        write_timestamp(online, out);
        let mut profile = Draw::new(self.seed, Stream::Profile, index, 0);
        out.extend_from_slice(b"\",\"last_url\":\"");
        write_last_url(&person, &mut profile, out);
        out.extend_from_slice(b"\",\"user_attributes\":[");
        write_attributes(&person, &mut profile, out);
        out.extend_from_slice(b"]}");
    }
}
