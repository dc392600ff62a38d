//! People: a user's row, and how the values in it and in an operator are written.

use super::calendar::{DAY, HOUR, MINUTE, SECOND};
use super::draw::{Draw, Stream};
use super::generator::Generator;
use super::ids;
use super::locale::{self, Locale, NameOrder};
use super::overlay::Activity;
use super::text;

/// A name in its own script, escaped, and in letters that an e-mail address can have.
type Name = (&'static str, &'static str);

/// The lowest id of an operator.
const OPERATOR_BASE: u64 = 301;

/// A user's identity.
#[derive(Debug)]
pub struct Person {
    pub id: u64,
    pub locale: &'static Locale,
    pub given: Name,
    family: Name,
    mailbox: u64,
    /// The number of an order, to talk about.
    pub order: u64,
}

impl Person {
    /// The user in row `index`.
    pub fn new(generator: Generator, index: u64) -> Self {
        let mut draw = Draw::new(generator.seed, Stream::Person, index, 0);
        let locale = locale::choose(&mut draw);
        Self {
            id: generator.user_id(index),
            locale,
            given: locale::choose_name(&mut draw, &locale.given),
            family: locale::choose_name(&mut draw, &locale.family),
            mailbox: draw.bits(),
            order: 10_000 + draw.below(9_990_000),
        }
    }

    /// Writes the full name, in the language's order.
    pub fn write_name(&self, out: &mut Vec<u8>) {
        let (given, family) = (self.given.0, self.family.0);
        let (first, space, second) = match self.locale.full_name {
            NameOrder::GivenFamily => (given, " ", family),
            NameOrder::FamilyGiven => (family, " ", given),
            NameOrder::FamilyGivenJoined => (family, "", given),
        };
        out.push(b'"');
        for part in [first, space, second] {
            out.extend_from_slice(part.as_bytes());
        }
        out.push(b'"');
    }

    /// Writes the e-mail address.
    pub fn write_email(&self, out: &mut Vec<u8>) {
        // Reserved by RFC 2606, so that no row names a real mailbox.
        const DOMAINS: [&str; 4] = [
            "example.com",
            "example.org",
            "example.net",
            "mail.example.com",
        ];
        let domain = DOMAINS.get((self.mailbox >> 40) as usize % DOMAINS.len());
        out.push(b'"');
        out.extend_from_slice(self.given.1.as_bytes());
        if self.mailbox & 1 == 0 {
            out.push(b'.');
        }
        out.extend_from_slice(self.family.1.as_bytes());
        text::number((self.mailbox >> 1) % 1000, out);
        out.push(b'@');
        out.extend_from_slice(domain.copied().unwrap_or("example.com").as_bytes());
        out.push(b'"');
    }
}

/// A user's row while it is written.
#[derive(Debug)]
pub struct UserRow {
    pub person: Person,
    index: u64,
    /// The times, in milliseconds since 1970.
    pub arrived: u64,
    pub updated: u64,
    pub online: u64,
    profile: Draw,
}

impl UserRow {
    /// The user in row `index`, whose hints show this activity.
    pub fn new(generator: Generator, index: u64, activity: Activity) -> Self {
        let conversation = generator.conversation(index);
        let last = conversation.last_change(activity);
        let mut presence = Draw::new(generator.seed, Stream::Presence, index, 0);
        let online = last + 2 * SECOND + presence.below(10 * MINUTE);
        let updated = match presence.below(10) {
            0..6 => online,
            6..9 => last + SECOND + presence.below(SECOND),
            _ => Some(online + HOUR + presence.below(20 * DAY))
                .filter(|later| !generator.calendar.is_over(*later))
                .unwrap_or(online),
        };
        Self {
            person: Person::new(generator, index),
            index,
            arrived: conversation.arrival,
            updated,
            online,
            profile: Draw::new(generator.seed, Stream::Profile, index, 0),
        }
    }

    /// Writes the reference value, which is of one of three kinds.
    pub fn write_reference(&self, out: &mut Vec<u8>) {
        let Person {
            mailbox,
            order,
            locale,
            ..
        } = &self.person;
        match mailbox >> 60 {
            0..8 => {
                out.extend_from_slice(b"\"C-");
                text::number(100_000 + self.index, out);
                out.push(b'"');
            }
            8..13 => {
                out.extend_from_slice(b"\"order/");
                text::number(*order, out);
                out.push(b'"');
            }
            _ => {
                let digits = (mailbox >> 24) & 0xff_ffff_ffff;
                text::formatted(format_args!("\"crm:{}:{digits:010x}\"", locale.tag), out);
            }
        }
    }

    /// Writes the URL of the last page visited.
    pub fn write_last_url(&mut self, out: &mut Vec<u8>) {
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
        let page = self.profile.pick(&PAGES);
        out.extend_from_slice(b"\"https://shop.example.com/");
        out.extend_from_slice(self.person.locale.tag.as_bytes());
        out.extend_from_slice(page.as_bytes());
        if page.ends_with('=') {
            text::number(self.person.order, out);
        }
        out.push(b'"');
    }

    /// Writes the custom properties, none to four.
    pub fn write_attributes(&mut self, out: &mut Vec<u8>) {
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
        const NOTES: [&str; 5] = [
            "",
            "called on Monday",
            "prefers e-mail",
            "\\\"gold\\\" customer",
            "☎ ok",
        ];
        let (person, draw) = (&self.person, &mut self.profile);
        let count = draw.below(5);
        let first = draw.below(NAMES.len() as u64);
        out.push(b'[');
        for number in 0..count {
            // An odd step over eight names repeats none of them.
            let name = NAMES.get(((first + number * 3) % 8) as usize);
            let name = name.copied().unwrap_or_default();
            if number > 0 {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"name\":\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\",\"value\":\"");
            // All of these texts are escaped already.
            let text = match name {
                "plan" => draw.pick(&["free", "basic", "plus", "business"]),
                "language" => &person.locale.tag,
                "city" => draw.pick(&person.locale.cities),
                "cart_value" => {
                    text::number(draw.below(400), out);
                    let cents = draw.below(100);
                    out.extend_from_slice(if cents < 10 { b".0" } else { b"." });
                    text::number(cents, out);
                    ""
                }
                "last_order" => {
                    text::number(person.order, out);
                    ""
                }
                "newsletter" => {
                    text::boolean(draw.chance(400), out);
                    ""
                }
                "segment" => draw.pick(&["new", "returning", "VIP ⭐", "at risk"]),
                _ => draw.pick(&NOTES),
            };
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\"}");
        }
        out.push(b']');
    }
}

/// An operator, who sends messages.
#[derive(Debug)]
pub struct OperatorRow {
    number: u64,
    pub forename: Name,
    pub surname: Name,
}

impl OperatorRow {
    /// The operator with this number, from 0.
    pub fn new(seed: u64, number: u64) -> Self {
        // Operators have their own rows, after those of all users.
        let mut draw = Draw::new(seed, Stream::Operator, ids::MAX_USERS + number, 0);
        let locale = locale::choose(&mut draw);
        Self {
            number,
            forename: locale::choose_name(&mut draw, &locale.given),
            surname: locale::choose_name(&mut draw, &locale.family),
        }
    }

    pub const fn id(&self) -> u64 {
        OPERATOR_BASE + self.number * 3
    }

    /// Writes the e-mail address.
    pub fn write_email(&self, out: &mut Vec<u8>) {
        let (forename, surname) = (self.forename.1, self.surname.1);
        text::formatted(
            format_args!("\"{forename}.{surname}@support.example.com\""),
            out,
        );
    }

    /// Writes the URL of the picture, which every third operator lacks.
    pub fn write_picture(&self, out: &mut Vec<u8>) {
        if self.number.is_multiple_of(3) {
            out.extend_from_slice(b"null");
        } else {
            let id = self.id();
            text::formatted(
                format_args!("\"https://cdn.example.net/operators/{id}/thumb.png\""),
                out,
            );
        }
    }
}
