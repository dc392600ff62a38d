//! The messages of one user, as they are generated.

use std::borrow::Cow;
use std::ops::Deref;

use serde_json::value::RawValue;

use super::conversation::{Beat, Conversation, Turn};
use super::draw::{Draw, Stream};
use super::generator::Generator;
use super::json_object::{Entries, string};
use super::row::{Message, Moment, UserSender, raw};
use super::user::{Person, operator};

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
    user: Box<RawValue>,
    usual_operator: Box<RawValue>,
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
        let user = match given.and_then(|row| Entries::read(row).ok()) {
            Some(row) => {
                let value = |name| row.get(name).unwrap_or(RawValue::NULL);
                if let Some(name) = string(value("name")) {
                    first_name = Cow::Owned(name.into_owned());
                }
                raw(&UserSender {
                    id: value("id"),
                    name: value("name"),
                    email: value("email"),
                })
            }
            None => raw(&UserSender {
                id: &raw(&generator.id(None, index)),
                name: &raw(&person.name()),
                email: &raw(&person.email()),
            }),
        };
        let usual = Draw::new(seed, Stream::Operator, index, 0).below(OPERATORS);
        Self {
            generator,
            index,
            conversation,
            person,
            first_name,
            user,
            usual_operator: raw(&operator(seed, usual)),
        }
    }

    /// Writes message `position`.
    pub fn write(&self, position: u64, out: &mut Vec<u8>) {
        let seed = self.generator.seed;
        let turn = self.conversation.turn(position);
        let mut draw = Draw::new(seed, Stream::Text, self.index, position);
        let mut operators = Draw::new(seed, Stream::Operator, self.index, 1 + position);
        let colleague = (!turn.by_user && operators.chance(80))
            .then(|| raw(&operator(seed, operators.below(OPERATORS))));
        let (sender_type, sender) = match &colleague {
            _ if turn.by_user => ("user", &self.user),
            colleague => (
                "operator",
                colleague.as_ref().unwrap_or(&self.usual_operator),
            ),
        };
        let message = Message {
            id: self.generator.id(Some(self.index), position),
            body: self.body(turn, &mut draw),
            read_by_user: turn.read_by_user,
            read_by_operator: turn.read_by_operator,
            created_at: Moment(self.conversation.moment(position)),
            file_url: file_url(turn, &mut draw),
            auto_invitation: turn.auto_invitation,
            sender_type,
            sender: sender.deref(),
        };
        // A vector accepts everything.
        let _ = serde_json::to_writer(out, &message);
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
                "n" => body.push_str(&self.person.order.to_string()),
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
    Some(format!(
        "https://files.example.com/chat/{folder:012x}/{file}"
    ))
}
