//! Messages as JSON text, in the fields and the order of interface 2.2.

use serde_json::value::RawValue;

use super::calendar::write_timestamp;
use super::draw::{Draw, Stream};
use super::identity;
use super::object::Entries;
use super::person::{Person, write_email, write_name};
use super::render::Generator;
use super::shape::{Beat, Conversation, Moments, Turn};
use super::text;
use super::{locale, locales};

/// The number of operators in a world.
const OPERATORS: u64 = 12;
const OPERATOR_BASE: u64 = 301;
/// The end of a user's message, up to the user's id.
const USER_SENDER: &[u8] = b",\"sender_type\":\"user\",\"sender\":{\"id\":";

/// One user's messages, as they are written.
pub struct Chat<'conversation> {
    generator: Generator,
    index: u64,
    conversation: &'conversation Conversation,
    moments: Moments<'conversation>,
    person: Person,
    /// How the user is addressed, as the content of a JSON string.
    called: Vec<u8>,
    user_sender: Vec<u8>,
    usual_sender: Vec<u8>,
}

impl<'conversation> Chat<'conversation> {
    /// The messages of the user in row `index`, to be written one by one.
    pub fn new(
        generator: Generator,
        index: u64,
        conversation: &'conversation Conversation,
    ) -> Self {
        let seed = generator.seed;
        let person = Person::new(seed, index);
        let mut called = Vec::new();
        text::escaped(person.given.0, &mut called);
        let mut user_sender = USER_SENDER.to_vec();
        text::number(generator.user_id(index), &mut user_sender);
        user_sender.extend_from_slice(b",\"name\":\"");
        write_name(&person, &mut user_sender);
        user_sender.extend_from_slice(b"\",\"email\":\"");
        write_email(&person, &mut user_sender);
        user_sender.extend_from_slice(b"\"}}");
        let usual_operator = Draw::new(seed, Stream::Operator, index, 0).below(OPERATORS);
        let mut usual_sender = Vec::with_capacity(256);
        write_operator_sender(seed, usual_operator, &mut usual_sender);
        Self {
            generator,
            index,
            conversation,
            moments: Moments::new(conversation),
            person,
            called,
            user_sender,
            usual_sender,
        }
    }

    /// The same, with the user as in `row`.
    pub fn with_user(mut self, row: &[u8]) -> Self {
        let Ok(row) = Entries::read(row) else {
            return self;
        };
        let value = |name| row.get(name).map_or("null", RawValue::get);
        let name = value("name");
        if let Some(name) = name
            .strip_prefix('"')
            .and_then(|name| name.strip_suffix('"'))
        {
            self.called = name.as_bytes().to_vec();
        }
        let (id, email) = (value("id"), value("email"));
        let sender = format!("{id},\"name\":{name},\"email\":{email}}}}}");
        self.user_sender = [USER_SENDER, sender.as_bytes()].concat();
        self
    }
}

impl Chat<'_> {
    /// Writes message `position`; cheapest in the order of the list.
    pub fn write_message(&mut self, position: u64, out: &mut Vec<u8>) {
        let seed = self.generator.seed;
        let turn = self.conversation.turn(position);
        let mut draw = Draw::new(seed, Stream::Text, self.index, position);
        out.extend_from_slice(b"{\"id\":");
        text::number(self.generator.message_id(self.index, position), out);
        out.extend_from_slice(b",\"body\":\"");
        self.write_body(turn, &mut draw, out);
        out.extend_from_slice(b"\",\"read_by_user\":");
        text::boolean(turn.read_by_user, out);
        out.extend_from_slice(b",\"read_by_operator\":");
        text::boolean(turn.read_by_operator, out);
        out.extend_from_slice(b",\"created_at\":\"");
        write_timestamp(self.moments.at(position), out);
        out.extend_from_slice(b"\",\"file_url\":");
        write_file_url(turn, &mut draw, out);
        out.extend_from_slice(b",\"auto_invitation\":");
        text::boolean(turn.auto_invitation, out);
        if turn.by_user {
            return out.extend_from_slice(&self.user_sender);
        }
        let mut operator = Draw::new(seed, Stream::Operator, self.index, 1 + position);
        if operator.chance(80) {
            write_operator_sender(seed, operator.below(OPERATORS), out);
        } else {
            out.extend_from_slice(&self.usual_sender);
        }
    }

    fn write_body(&self, turn: Turn, draw: &mut Draw, out: &mut Vec<u8>) {
        const EMOJI: [&str; 10] = ["🙂", "👍", "🙏", "😕", "🎉", "❤️", "👩🏽‍💻", "📦", "🇪🇺", "😂😂"];
        let locale = self.person.locale;
        let lines = match (turn.auto_invitation, turn.by_user, turn.beat) {
            (true, _, _) => locale.invitation,
            (_, true, Beat::Opening) => locale.user_opening,
            (_, true, Beat::Middle) => locale.user_middle,
            (_, true, Beat::Closing) => locale.user_closing,
            (_, false, Beat::Opening) => locale.operator_opening,
            (_, false, Beat::Middle) => locale.operator_middle,
            (_, false, Beat::Closing) => locale.operator_closing,
        };
        let sentences = match draw.below(100) {
            0..78 => 1,
            78..96 => 2,
            _ => lines.len(),
        };
        let sentences = sentences.min(lines.len());
        let separator: &[u8] = if draw.chance(250) { b"\\n" } else { b" " };
        let first = draw.below(lines.len() as u64) as usize;
        for (number, line) in lines.iter().cycle().skip(first).take(sentences).enumerate() {
            if number > 0 {
                out.extend_from_slice(separator);
            }
            self.write_line(line, out);
        }
        if draw.chance(120) {
            out.push(b' ');
            out.extend_from_slice(draw.pick(&EMOJI).as_bytes());
        }
    }

    fn write_line(&self, line: &str, out: &mut Vec<u8>) {
        let mut rest = line;
        while let Some((before, marked)) = rest.split_once('{') {
            text::escaped(before, out);
            let (mark, after) = marked.split_once('}').unwrap_or((marked, ""));
            match mark {
                "n" => text::number(self.person.order, out),
                _ => out.extend_from_slice(&self.called),
            }
            rest = after;
        }
        text::escaped(rest, out);
    }
}

/// Writes the end of a message by operator `number`.
fn write_operator_sender(seed: u64, number: u64, out: &mut Vec<u8>) {
    // Operators have their own rows, after those of all users.
    let mut draw = Draw::new(seed, Stream::Operator, identity::MAX_USERS + number, 0);
    let locale = locales::choose(&mut draw);
    let given = locale::choose_name(&mut draw, locale.given);
    let family = locale::choose_name(&mut draw, locale.family);
    out.extend_from_slice(b",\"sender_type\":\"operator\",\"sender\":{\"id\":");
    text::number(OPERATOR_BASE + number * 3, out);
    out.extend_from_slice(b",\"forename\":\"");
    text::escaped(given.0, out);
    out.extend_from_slice(b"\",\"surname\":\"");
    text::escaped(family.0, out);
    out.extend_from_slice(b"\",\"email\":\"");
    out.extend_from_slice(given.1.as_bytes());
    out.push(b'.');
    out.extend_from_slice(family.1.as_bytes());
    out.extend_from_slice(b"@support.example.com\",\"picture_thumb_url\":");
    if number.is_multiple_of(3) {
        out.extend_from_slice(b"null}}");
    } else {
        out.extend_from_slice(b"\"https://cdn.example.net/operators/");
        text::number(OPERATOR_BASE + number * 3, out);
        out.extend_from_slice(b"/thumb.png\"}}");
    }
}
fn write_file_url(turn: Turn, draw: &mut Draw, out: &mut Vec<u8>) {
    if turn.auto_invitation || !draw.chance(45) {
        out.extend_from_slice(b"null");
        return;
    }
    const FILES: [&str; 5] = [
        "screenshot.png",
        "IMG_2041.jpg",
        "invoice.pdf",
        "r%C3%A9sum%C3%A9.docx",
        "video.mp4",
    ];
    out.extend_from_slice(b"\"https://files.example.com/chat/");
    text::hexadecimal(draw.bits() >> 16, 12, out);
    out.push(b'/');
    out.extend_from_slice(draw.pick(&FILES).as_bytes());
    out.push(b'"');
}
