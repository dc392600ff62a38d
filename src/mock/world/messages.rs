//! The messages of one user, as they are generated.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use super::block::BlockBuilder;
use super::conversation::{Beat, Conversation, Turn};
use super::draw::{Draw, Stream};
use super::generator::Generator;
use super::json_object::{Entries, string};
use super::row::{Json, Moment, Raw, write_object};
use super::user::{Person, write_operator};
use crate::page::ELSEWHERE;

/// The number of operators in a world.
const OPERATORS: u64 = 12;

/// The messages of the user in row `index`.
pub struct Messages<'world> {
    generator: &'world Generator,
    index: u64,
    conversation: Conversation,
    person: Person,
    /// How operators address the user.
    first_name: Cow<'static, str>,
    /// Senders as JSON.
    user: Vec<u8>,
    usual_operator: Vec<u8>,
}

impl<'world> Messages<'world> {
    /// The messages of a generated user, or of the one in `given`.
    pub fn new(
        generator: &'world Generator,
        index: u64,
        conversation: Conversation,
        given: Option<&[u8]>,
    ) -> Self {
        let seed = generator.seed;
        let person = Person::new(seed, index);
        let mut first_name = Cow::Borrowed(&*person.given.0);
        let mut user = Vec::new();
        match given.and_then(|row| Entries::read(row).ok()) {
            Some(row) => {
                let value = |name| row.get(name).unwrap_or(RawValue::NULL);
                let raw = |name| Raw(value(name).get().as_bytes());
                if let Some(name) = string(value("name")) {
                    first_name = Cow::Owned(name.into_owned());
                }
                let user = &mut user;
                write_object!(user, id: raw("id"), name: raw("name"), email: raw("email"));
            }
            None => {
                let (id, user) = (generator.id(None, index), &mut user);
                write_object!(user, id: id, name: person.name(), email: person.email());
            }
        }
        let mut usual_operator = Vec::new();
        let usual = Draw::new(seed, Stream::Operator, index, 0).below(OPERATORS);
        write_operator(seed, usual, &mut usual_operator);
        Self {
            generator,
            index,
            conversation,
            person,
            first_name,
            user,
            usual_operator,
        }
    }

    /// Adds the messages at these positions.
    pub fn write(&self, positions: Range<u64>, block: &mut BlockBuilder) {
        let moments = self.conversation.moments(positions.start);
        for (position, moment) in positions.zip(moments) {
            block.push(|out| self.write_one(position, Moment(moment), out));
        }
    }

    fn write_one(&self, position: u64, created_at: Moment, out: &mut Vec<u8>) {
        let seed = self.generator.seed;
        let turn = self.conversation.turn(position);
        let mut draw = Draw::new(seed, Stream::Text, self.index, position);
        let mut operators = Draw::new(seed, Stream::Operator, self.index, 1 + position);
        let mut colleague = Vec::new();
        let (sender_type, sender) = if turn.by_user {
            ("user", &self.user)
        } else if operators.chance(80) {
            write_operator(seed, operators.below(OPERATORS), &mut colleague);
            ("operator", &colleague)
        } else {
            ("operator", &self.usual_operator)
        };
        write_object!(
            out,
            id: self.generator.id(Some(self.index), position),
            body: self.body(turn, &mut draw),
            read_by_user: turn.read_by_user,
            read_by_operator: turn.read_by_operator,
            created_at: created_at,
            file_url: file_url(turn, &mut draw),
            auto_invitation: turn.auto_invitation,
            sender_type: sender_type,
            sender: Raw(sender),
        );
    }

    fn body(&self, turn: Turn, draw: &mut Draw) -> String {
        const EMOJI: [&str; 10] = ["🙂", "👍", "🙏", "😕", "🎉", "❤️", "👩🏽‍💻", "📦", "🇪🇺", "😂😂"];
        let locale = self.person.locale;
        let lines = match (turn.auto_invitation, turn.by_user, turn.beat) {
            (true, _, _) => &locale.invitation,
            (_, true, Beat::Opening) => &locale.user_opening,
            (_, true, Beat::Middle) => &locale.user_middle,
            (_, true, Beat::Closing) => &locale.user_closing,
            (_, false, Beat::Opening) => &locale.operator_opening,
            (_, false, Beat::Middle) => &locale.operator_middle,
            (_, false, Beat::Closing) => &locale.operator_closing,
        };
        let sentences = match draw.below(100) {
            0..78 => 1,
            78..96 => 2,
            _ => lines.len(),
        };
        let separator = if draw.chance(250) { '\n' } else { ' ' };
        let first = draw.below(lines.len() as u64) as usize;
        let mut body = String::with_capacity(96);
        let lines = lines
            .iter()
            .cycle()
            .skip(first)
            .take(sentences.min(lines.len()));
        for (number, line) in lines.enumerate() {
            if number > 0 {
                body.push(separator);
            }
            self.fill_in(line, &mut body);
        }
        if draw.chance(120) {
            body.push(' ');
            body.push_str(draw.pick(&EMOJI));
        }
        body
    }

    /// Appends a line with an order number and a name for its marks.
    fn fill_in(&self, line: &str, body: &mut String) {
        let mut rest = line;
        while let Some((before, marked)) = rest.split_once('{') {
            body.push_str(before);
            let (mark, after) = marked.split_once('}').unwrap_or((marked, ""));
            match mark {
                "n" => body.push_str(&self.person.order),
                _ => body.push_str(&self.first_name),
            }
            rest = after;
        }
        body.push_str(rest);
    }
}

fn file_url(turn: Turn, draw: &mut Draw) -> Option<String> {
    const FILES: [&str; 5] = [
        "screenshot.png",
        "IMG_2041.jpg",
        "invoice.pdf",
        "r%C3%A9sum%C3%A9.docx",
        "video.mp4",
    ];
    if turn.auto_invitation || !draw.chance(45) {
        return None;
    }
    let (folder, file) = (draw.bits() >> 16, draw.pick(&FILES));
    Some(format!("{ELSEWHERE}/chat/{folder:012x}/{file}"))
}
