//! Rows as JSON text, in the fields and the order of interface 2.1 and 2.2.

use super::calendar::{DAY, HOUR, MINUTE, SECOND, write_timestamp};
use super::draw::{Draw, Stream};
use super::identity;
use super::locale::{self, Locale, Name, NameOrder};
use super::shape::{self, Beat, Conversation, Moments, Turn};
use super::text;

/// How many people answer in a world.
const OPERATORS: u64 = 12;
const OPERATOR_BASE: u64 = 301;

/// The generator of one world: a pure function from row numbers to JSON.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    pub seed: u64,
    /// The least and the most messages of a user.
    pub lo: u64,
    pub hi: u64,
}

/// Who a user is.
struct Person {
    locale: &'static Locale,
    given: Name,
    family: Name,
    mailbox: u64,
    order: u64,
}

/// One user's messages, as they are written.
pub struct Chat<'conversation> {
    generator: Generator,
    index: u64,
    conversation: &'conversation Conversation,
    moments: Moments<'conversation>,
    person: Person,
    user_sender: Vec<u8>,
    usual_sender: Vec<u8>,
}

impl Generator {
    /// How many messages the user in row `index` has.
    pub const fn length(&self, index: u64) -> u64 {
        shape::length(self.seed, index, self.lo, self.hi)
    }

    /// The id of the user in row `index`.
    pub const fn user_id(&self, index: u64) -> u64 {
        identity::user_id(self.seed, index)
    }

    /// The row of the user with this id.
    pub fn user_index(&self, id: u64) -> Option<u64> {
        identity::user_index(self.seed, id)
    }

    /// The id of message `position` of the user in row `index`.
    pub const fn message_id(&self, index: u64, position: u64) -> u64 {
        identity::message_id(self.seed, index, position)
    }

    /// The position of the message with this id, if it is one of the user in row `index`.
    pub fn message_position(&self, index: u64, id: u64) -> Option<u64> {
        let (owner, position) = identity::message_place(self.seed, id)?;
        (owner == index).then_some(position)
    }

    /// The generated conversation of the user in row `index`.
    #[must_use]
    pub fn conversation(&self, index: u64) -> Conversation {
        Conversation::new(self.seed, index, self.lo, self.hi)
    }

    fn person(&self, index: u64) -> Person {
        let mut draw = Draw::new(self.seed, Stream::Person, index, 0);
        let locale = locale::choose(&mut draw);
        Person {
            locale,
            given: locale::choose_name(&mut draw, locale.given),
            family: locale::choose_name(&mut draw, locale.family),
            mailbox: draw.bits(),
            order: 10_000 + draw.below(9_990_000),
        }
    }

    /// Writes the user in row `index`, of whom `added` messages came after the generated ones.
    pub fn write_user(&self, index: u64, added: u64, out: &mut Vec<u8>) {
        let person = self.person(index);
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

    /// The messages of the user in row `index`, to be written one by one.
    #[must_use]
    pub fn chat<'conversation>(
        &self,
        index: u64,
        conversation: &'conversation Conversation,
    ) -> Chat<'conversation> {
        let person = self.person(index);
        let mut user_sender = b",\"sender_type\":\"user\",\"sender\":{\"id\":".to_vec();
        text::number(self.user_id(index), &mut user_sender);
        user_sender.extend_from_slice(b",\"name\":\"");
        write_name(&person, &mut user_sender);
        user_sender.extend_from_slice(b"\",\"email\":\"");
        write_email(&person, &mut user_sender);
        user_sender.extend_from_slice(b"\"}}");
        let usual_operator = Draw::new(self.seed, Stream::Operator, index, 0).below(OPERATORS);
        let mut usual_sender = Vec::with_capacity(256);
        write_operator_sender(self.seed, usual_operator, &mut usual_sender);
        Chat {
            generator: *self,
            index,
            conversation,
            moments: Moments::new(conversation),
            person,
            user_sender,
            usual_sender,
        }
    }
}

impl Chat<'_> {
    /// Writes message `position`; the cheapest order is the list's.
    pub fn write_message(&mut self, position: u64, out: &mut Vec<u8>) {
        let seed = self.generator.seed;
        let turn = self.conversation.turn(position);
        let mut draw = Draw::new(seed, Stream::Text, self.index, position);
        out.extend_from_slice(b"{\"id\":");
        text::number(self.generator.message_id(self.index, position), out);
        out.extend_from_slice(b",\"body\":\"");
        write_body(&self.person, turn, &mut draw, out);
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
}

/// Writes the end of a message that operator `number` sent.
fn write_operator_sender(seed: u64, number: u64, out: &mut Vec<u8>) {
    // Operators have rows of their own, past those of all users.
    let mut draw = Draw::new(seed, Stream::Operator, identity::MAX_USERS + number, 0);
    let locale = locale::choose(&mut draw);
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

fn write_name(person: &Person, out: &mut Vec<u8>) {
    let (first, second, space) = match person.locale.full_name {
        NameOrder::GivenFamily => (person.given.0, person.family.0, true),
        NameOrder::FamilyGiven => (person.family.0, person.given.0, true),
        NameOrder::FamilyGivenJoined => (person.family.0, person.given.0, false),
    };
    text::escaped(first, out);
    if space {
        out.push(b' ');
    }
    text::escaped(second, out);
}

fn write_email(person: &Person, out: &mut Vec<u8>) {
    // Reserved by RFC 2606, so that no row names a real mailbox.
    const DOMAINS: [&[u8]; 4] = [
        b"@example.com",
        b"@example.org",
        b"@example.net",
        b"@mail.example.com",
    ];
    out.extend_from_slice(person.given.1.as_bytes());
    if person.mailbox & 1 == 0 {
        out.push(b'.');
    }
    out.extend_from_slice(person.family.1.as_bytes());
    text::number((person.mailbox >> 1) % 1000, out);
    let domain = DOMAINS.get((person.mailbox >> 40) as usize % DOMAINS.len());
    out.extend_from_slice(domain.copied().unwrap_or(b"@example.com"));
}

fn write_reference(person: &Person, index: u64, out: &mut Vec<u8>) {
    match person.mailbox >> 60 {
        0..8 => {
            out.extend_from_slice(b"C-");
            text::number(100_000 + index, out);
        }
        8..13 => {
            out.extend_from_slice(b"order/");
            text::number(person.order, out);
        }
        _ => {
            out.extend_from_slice(b"crm:");
            out.extend_from_slice(person.locale.tag.as_bytes());
            out.push(b':');
            text::hexadecimal(person.mailbox >> 24, 10, out);
        }
    }
}

fn write_last_url(person: &Person, draw: &mut Draw, out: &mut Vec<u8>) {
    const PAGES: [&str; 8] = [
        "/",
        "/cart",
        "/checkout/payment",
        "/account/orders",
        "/help/returns?from=footer",
        "/products/linen-shirt?colour=blue&size=m",
        "/products/walnut-desk#reviews",
        "/search?q=",
    ];
    out.extend_from_slice(b"https://shop.example.com/");
    out.extend_from_slice(person.locale.tag.as_bytes());
    let page = draw.pick(&PAGES);
    out.extend_from_slice(page.as_bytes());
    if page.ends_with('=') {
        text::number(person.order, out);
    }
}

fn write_attributes(person: &Person, draw: &mut Draw, out: &mut Vec<u8>) {
    const NAMES: [&str; 8] = [
        "plan",
        "language",
        "city",
        "cart_value",
        "last_order",
        "newsletter",
        "segment",
        "note",
    ];
    let count = draw.below(5);
    let first = draw.below(NAMES.len() as u64);
    for number in 0..count {
        // An odd step over eight names repeats none of them.
        let name = NAMES
            .get(((first + number * 3) % 8) as usize)
            .copied()
            .unwrap_or_default();
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"name\":\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\",\"value\":\"");
        match name {
            "plan" => text::escaped(draw.pick(&["free", "basic", "plus", "business"]), out),
            "language" => text::escaped(person.locale.tag, out),
            "city" => text::escaped(draw.pick(person.locale.cities), out),
            "cart_value" => {
                text::number(draw.below(400), out);
                out.push(b'.');
                text::padded(draw.below(100), 2, out);
            }
            "last_order" => text::number(person.order, out),
            "newsletter" => text::boolean(draw.chance(400), out),
            "segment" => text::escaped(draw.pick(&["new", "returning", "VIP ⭐", "at risk"]), out),
            _ => text::escaped(
                draw.pick(&[
                    "",
                    "called on Monday",
                    "prefers e-mail",
                    "\"gold\" customer",
                    "☎ ok",
                ]),
                out,
            ),
        }
        out.extend_from_slice(b"\"}");
    }
}

fn write_body(person: &Person, turn: Turn, draw: &mut Draw, out: &mut Vec<u8>) {
    const EMOJI: [&str; 10] = ["🙂", "👍", "🙏", "😕", "🎉", "❤️", "👩🏽‍💻", "📦", "🇪🇺", "😂😂"];
    let locale = person.locale;
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
        write_line(line, person, out);
    }
    if draw.chance(120) {
        out.push(b' ');
        out.extend_from_slice(draw.pick(&EMOJI).as_bytes());
    }
}

fn write_line(line: &str, person: &Person, out: &mut Vec<u8>) {
    let mut rest = line;
    while let Some((before, marked)) = rest.split_once('{') {
        text::escaped(before, out);
        let (mark, after) = marked.split_once('}').unwrap_or((marked, ""));
        match mark {
            "n" => text::number(person.order, out),
            _ => text::escaped(person.given.0, out),
        }
        rest = after;
    }
    text::escaped(rest, out);
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
