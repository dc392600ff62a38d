//! Ids: irregular, ascending, and mapped back to their row without a table.

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

/// The id of the user in row `index`.
#[must_use]
pub const fn user_id(seed: u64, index: u64) -> u64 {
    if index == 0 {
        return FIRST_USER;
    }
    FIRST_USER + index * USER_STRIDE + Draw::new(seed, Stream::UserId, index, 0).below(USER_STRIDE)
}

/// The row of the user with this id, or `None` for an id that no world of this seed has.
#[must_use]
pub fn user_index(seed: u64, id: u64) -> Option<u64> {
    let index = id.checked_sub(FIRST_USER)? / USER_STRIDE;
    (index < MAX_USERS && user_id(seed, index) == id).then_some(index)
}

/// The id of message `position` of the user in row `index`; unique over all users.
#[must_use]
pub const fn message_id(seed: u64, index: u64, position: u64) -> u64 {
    let uneven = 1 + Draw::new(seed, Stream::MessageId, index, position).below(MESSAGE_STRIDE - 1);
    index * USER_SPAN + position * MESSAGE_STRIDE + uneven
}

/// The user's row and the position of the message with this id, or `None`.
#[must_use]
pub fn message_place(seed: u64, id: u64) -> Option<(u64, u64)> {
    let index = id / USER_SPAN;
    let position = (id % USER_SPAN) / MESSAGE_STRIDE;
    (index < MAX_USERS && message_id(seed, index, position) == id).then_some((index, position))
}
