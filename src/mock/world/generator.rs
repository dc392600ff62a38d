//! The generator of one world: ids and conversations, from row numbers. A list is that of the users,
//! or the messages of the user in row `owner`.

use super::calendar::Calendar;
use super::conversation::{self, Conversation};
use super::draw::{Draw, Stream};

/// The id of the first user of every world, which the documentation's examples use.
const FIRST_USER: u64 = 42;
const USER_STRIDE: u64 = 8;

/// The most messages of a user, including those added later.
pub const MAX_LIST: u64 = 1 << 20;
/// The most users in a world, including those added later; ids stay below 2^53, which every JSON
/// parser represents exactly.
pub const MAX_USERS: u64 = 1 << 31;

const MESSAGE_STRIDE: u64 = 4;
const USER_SPAN: u64 = MAX_LIST * MESSAGE_STRIDE;

/// A pure function of row numbers.
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
    /// A generator of users with `lo..=hi` messages each, whose ids begin at the lowest.
    pub fn new(seed: u64, lo: u64, hi: u64) -> Self {
        Self {
            seed,
            lo,
            hi,
            calendar: Calendar::default(),
            users_from: 0,
            messages_from: 0,
        }
    }

    /// How many messages the user in row `index` has.
    pub const fn length(&self, index: u64) -> u64 {
        conversation::length(self.seed, index, self.lo, self.hi)
    }

    /// The conversation of the user in row `index`.
    pub fn conversation(&self, index: u64) -> Conversation {
        let length = self.length(index);
        Conversation::new(self.seed, index, length, &self.calendar)
    }

    /// The id of a row: irregular and ascending; a message's is unique over all users.
    pub const fn id(&self, owner: Option<u64>, row: u64) -> u64 {
        match owner {
            None if row == 0 => self.users_from + FIRST_USER,
            None => {
                let uneven = Draw::new(self.seed, Stream::UserId, row, 0).below(USER_STRIDE);
                self.users_from + FIRST_USER + row * USER_STRIDE + uneven
            }
            Some(index) => {
                let mut draw = Draw::new(self.seed, Stream::MessageId, index, row);
                let uneven = 1 + draw.below(MESSAGE_STRIDE - 1);
                self.messages_from + index * USER_SPAN + row * MESSAGE_STRIDE + uneven
            }
        }
    }

    /// The row with this id, or `None` for an id that no list of this seed has.
    pub fn row(&self, owner: Option<u64>, id: u64) -> Option<u64> {
        let (row, most) = match owner {
            None => {
                let above = id.checked_sub(self.users_from + FIRST_USER)?;
                (above / USER_STRIDE, MAX_USERS)
            }
            Some(index) => {
                let above = id.checked_sub(self.messages_from + index * USER_SPAN)?;
                (above / MESSAGE_STRIDE, MAX_LIST)
            }
        };
        (row < most && self.id(owner, row) == id).then_some(row)
    }
}
