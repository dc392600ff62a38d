//! People: users and operators, as they are generated.

use std::borrow::Cow;

use super::calendar::{DAY, HOUR, MINUTE, SECOND};
use super::changes::Activity;
use super::draw::{Draw, Stream};
use super::generator::{Generator, MAX_USERS};
use super::locale::{self, Locale, Name, NameOrder};
use super::row::{Json, Moment, write_object};

/// The lowest id of an operator.
const OPERATOR_BASE: u64 = 301;

/// A user's identity.
#[derive(Debug)]
pub struct Person {
    pub locale: &'static Locale,
    pub given: &'static Name,
    family: &'static Name,
    mailbox: u64,
    /// The number in the e-mail address, and that of an order, to talk about.
    number: String,
    pub order: String,
}

impl Person {
    /// The user in row `index`.
    pub fn new(seed: u64, index: u64) -> Self {
        let mut draw = Draw::new(seed, Stream::Person, index, 0);
        let locale = locale::choose(&mut draw);
        let given = locale::choose_name(&mut draw, &locale.given);
        let family = locale::choose_name(&mut draw, &locale.family);
        let mailbox = draw.bits();
        Self {
            locale,
            given,
            family,
            mailbox,
            number: ((mailbox >> 1) % 1000).to_string(),
            order: (10_000 + draw.below(9_990_000)).to_string(),
        }
    }

    /// The full name, in the language's order.
    pub fn name(&self) -> [&'static str; 3] {
        let (given, family) = (&self.given.0, &self.family.0);
        match self.locale.full_name {
            NameOrder::GivenFamily => [given, " ", family],
            NameOrder::FamilyGiven => [family, " ", given],
            NameOrder::FamilyGivenJoined => [family, "", given],
        }
    }

    pub fn email(&self) -> [&str; 6] {
        // Reserved by RFC 2606, so that no row names a real mailbox.
        const DOMAINS: [&str; 4] = [
            "example.com",
            "example.org",
            "example.net",
            "mail.example.com",
        ];
        let domain = DOMAINS.get((self.mailbox >> 40) as usize % DOMAINS.len());
        let domain = domain.copied().unwrap_or_default();
        let (given, family) = (&self.given.1, &self.family.1);
        let dot = if self.mailbox & 1 == 0 { "." } else { "" };
        [given, dot, family, &self.number, "@", domain]
    }

    /// The reference value, which is of one of three kinds.
    fn reference(&self, index: u64) -> String {
        match self.mailbox >> 60 {
            0..8 => ["C-", &(100_000 + index).to_string()].concat(),
            8..13 => ["order/", &self.order].concat(),
            _ => {
                let digits = (self.mailbox >> 24) & 0xff_ffff_ffff;
                format!("crm:{}:{digits:010x}", self.locale.tag)
            }
        }
    }

    fn last_url(&self, draw: &mut Draw) -> [&str; 4] {
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
        let page = draw.pick(&PAGES);
        let searched = if page.ends_with('=') { &self.order } else { "" };
        [
            "https://shop.example.com/",
            &self.locale.tag,
            page,
            searched,
        ]
    }
}

/// The custom properties of a user, none to four.
struct Attributes<'person> {
    person: &'person Person,
    draw: Draw,
}

impl Json for Attributes<'_> {
    fn write(&self, out: &mut Vec<u8>) {
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
            "\"gold\" customer",
            "☎ ok",
        ];
        let (person, mut draw) = (self.person, self.draw.clone());
        let count = draw.below(5) as usize;
        let first = draw.below(NAMES.len() as u64) as usize;
        // Every third of eight names: none is repeated.
        let names = NAMES.iter().cycle().skip(first).step_by(3).take(count);
        out.push(b'[');
        for (number, name) in names.enumerate() {
            if number > 0 {
                out.push(b',');
            }
            let value: Cow<'_, str> = match *name {
                "plan" => draw.pick(&["free", "basic", "plus", "business"]).into(),
                "language" => person.locale.tag.as_str().into(),
                "city" => draw.pick(&person.locale.cities).into(),
                "cart_value" => format!("{}.{:02}", draw.below(400), draw.below(100)).into(),
                "last_order" => person.order.as_str().into(),
                "newsletter" => if draw.chance(400) { "true" } else { "false" }.into(),
                "segment" => draw.pick(&["new", "returning", "VIP ⭐", "at risk"]).into(),
                _ => draw.pick(&NOTES).into(),
            };
            write_object!(out, name: *name, value: &*value);
        }
        out.push(b']');
    }
}

/// Writes the user in row `index`, whose hints show this activity.
pub fn write_user(generator: &Generator, index: u64, activity: Activity, out: &mut Vec<u8>) {
    let Generator { seed, calendar, .. } = *generator;
    let conversation = generator.conversation(index);
    let last = conversation.last_change(activity);
    let mut presence = Draw::new(seed, Stream::Presence, index, 0);
    let online = last + 2 * SECOND + presence.below(10 * MINUTE);
    let updated = match presence.below(10) {
        0..6 => online,
        6..9 => last + SECOND + presence.below(SECOND),
        _ => Some(online + HOUR + presence.below(20 * DAY))
            .filter(|later| calendar.end.is_none_or(|end| *later <= end))
            .unwrap_or(online),
    };
    let person = Person::new(seed, index);
    let mut profile = Draw::new(seed, Stream::Profile, index, 0);
    write_object!(
        out,
        id: generator.id(None, index),
        name: person.name(),
        email: person.email(),
        reference: person.reference(index),
        created_at: Moment(conversation.arrival),
        updated_at: Moment(updated),
        online_at: Moment(online),
        last_url: person.last_url(&mut profile),
        user_attributes: Attributes {
            person: &person,
            draw: profile,
        },
    );
}

/// Writes the operator with this number, from 0. Every third has no picture.
pub fn write_operator(seed: u64, number: u64, out: &mut Vec<u8>) {
    // Operators have their own rows, after those of all users.
    let mut draw = Draw::new(seed, Stream::Operator, MAX_USERS + number, 0);
    let locale = locale::choose(&mut draw);
    let forename = locale::choose_name(&mut draw, &locale.given);
    let surname = locale::choose_name(&mut draw, &locale.family);
    let id = OPERATOR_BASE + number * 3;
    let picture = || format!("https://cdn.example.net/operators/{id}/thumb.png");
    write_object!(
        out,
        id: id,
        forename: forename.0,
        surname: surname.0,
        email: format!("{}.{}@support.example.com", forename.1, surname.1),
        picture_thumb_url: (!number.is_multiple_of(3)).then(picture),
    );
}
