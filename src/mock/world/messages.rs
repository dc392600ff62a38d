//! The messages of one user, as they are written.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::conversation::{Conversation, Moments, Turn};
use super::draw::{Draw, Stream};
use super::generator::Generator;
use super::json_object::Entries;
use super::message::MessageRow;
use super::schema::{self, MESSAGE, OPERATOR_SENDER, USER_SENDER};
use super::user::{OperatorRow, Person};

/// The number of operators in a world.
const OPERATORS: u64 = 12;

/// The writer of one user's messages.
pub struct Messages<'conversation> {
    generator: Generator,
    index: u64,
    conversation: &'conversation Conversation,
    moments: Moments<'conversation>,
    person: Person,
    /// How operators address the user, as the content of a JSON string.
    first_name: Vec<u8>,
    user: Vec<u8>,
    usual_operator: Vec<u8>,
}

impl<'conversation> Messages<'conversation> {
    /// The messages of the user in row `index`, to be written one by one.
    pub fn new(
        generator: Generator,
        index: u64,
        conversation: &'conversation Conversation,
    ) -> Self {
        let seed = generator.seed;
        let mut person = Person::new(generator, index);
        let first_name = person.given.0.as_bytes().to_vec();
        let mut user = Vec::new();
        schema::write(USER_SENDER, &mut person, &mut user);
        let usual = Draw::new(seed, Stream::Operator, index, 0).below(OPERATORS);
        Self {
            generator,
            index,
            conversation,
            moments: Moments::new(conversation),
            person,
            first_name,
            user,
            usual_operator: operator_row(seed, usual),
        }
    }

    /// The same, with the user as in `row`.
    pub fn with_user(mut self, row: &[u8]) -> Self {
        let Ok(row) = Entries::read(row) else {
            return self;
        };
        let value = |name| row.get(name).map_or("null", RawValue::get);
        let name = value("name").strip_prefix('"');
        if let Some(name) = name.and_then(|name| name.strip_suffix('"')) {
            self.first_name = name.as_bytes().to_vec();
        }
        self.user.clear();
        schema::write_values(USER_SENDER, &mut self.user, |field, out| {
            out.extend_from_slice(value(field.name).as_bytes());
        });
        self
    }

    /// Writes message `position`; cheapest in the order of the list.
    pub fn write(&mut self, position: u64, out: &mut Vec<u8>) {
        let moment = self.moments.at(position);
        let turn = self.conversation.turn(position);
        let mut row = MessageRow {
            id: self.generator.message_id(self.index, position),
            turn,
            moment,
            sender: self.sender(turn, position),
            person: &self.person,
            first_name: &self.first_name,
            draw: Draw::new(self.generator.seed, Stream::Text, self.index, position),
        };
        schema::write(MESSAGE, &mut row, out);
    }

    fn sender(&self, turn: Turn, position: u64) -> Cow<'_, [u8]> {
        if turn.by_user {
            return Cow::Borrowed(&self.user);
        }
        let seed = self.generator.seed;
        let mut operator = Draw::new(seed, Stream::Operator, self.index, 1 + position);
        if operator.chance(80) {
            Cow::Owned(operator_row(seed, operator.below(OPERATORS)))
        } else {
            Cow::Borrowed(&self.usual_operator)
        }
    }
}

fn operator_row(seed: u64, number: u64) -> Vec<u8> {
    let mut row = Vec::with_capacity(256);
    schema::write(
        OPERATOR_SENDER,
        &mut OperatorRow::new(seed, number),
        &mut row,
    );
    row
}
