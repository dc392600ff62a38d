//! People: users and operators, as they are generated.

use super::calendar::{DAY, HOUR, MINUTE, SECOND};
use super::changes::Activity;
use super::draw::{Draw, Stream};
use super::generator::{Generator, MAX_USERS};
use super::locale::{self, Locale, Name, NameOrder};
use super::row::{Attribute, Moment, OperatorSender, User};

/// The lowest id of an operator.
const OPERATOR_BASE: u64 = 301;

/// A user's identity.
#[derive(Debug)]
pub struct Person {
    pub locale: &'static Locale,
    pub given: &'static Name,
    family: &'static Name,
    mailbox: u64,
    /// The number of an order, to talk about.
    pub order: u64,
}

impl Person {
    /// The user in row `index`.
    pub fn new(seed: u64, index: u64) -> Self {
        let mut draw = Draw::new(seed, Stream::Person, index, 0);
        let locale = locale::choose(&mut draw);
        Self {
            locale,
            given: locale::choose_name(&mut draw, &locale.given),
            family: locale::choose_name(&mut draw, &locale.family),
            mailbox: draw.bits(),
            order: 10_000 + draw.below(9_990_000),
        }
    }

    /// The full name, in the language's order.
    pub fn name(&self) -> String {
        let (given, family) = (&self.given.0, &self.family.0);
        match self.locale.full_name {
            NameOrder::GivenFamily => format!("{given} {family}"),
            NameOrder::FamilyGiven => format!("{family} {given}"),
            NameOrder::FamilyGivenJoined => format!("{family}{given}"),
        }
    }

    pub fn email(&self) -> String {
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
        let number = (self.mailbox >> 1) % 1000;
        format!("{given}{dot}{family}{number}@{domain}")
    }

    /// The reference value, which is of one of three kinds.
    fn reference(&self, index: u64) -> String {
        match self.mailbox >> 60 {
            0..8 => format!("C-{}", 100_000 + index),
            8..13 => format!("order/{}", self.order),
            _ => {
                let digits = (self.mailbox >> 24) & 0xff_ffff_ffff;
                format!("crm:{}:{digits:010x}", self.locale.tag)
            }
        }
    }

    fn last_url(&self, draw: &mut Draw) -> String {
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
        let mut url = format!("https://shop.example.com/{}{page}", self.locale.tag);
        if page.ends_with('=') {
            url.push_str(&self.order.to_string());
        }
        url
    }

    /// The custom properties, none to four.
    fn attributes(&self, draw: &mut Draw) -> Vec<Attribute> {
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
        let count = draw.below(5) as usize;
        let first = draw.below(NAMES.len() as u64) as usize;
        // Every third of eight names: none is repeated.
        let names = NAMES.iter().cycle().skip(first).step_by(3).take(count);
        let attribute = |name: &&'static str| Attribute {
            name,
            value: match *name {
                "plan" => draw.pick(&["free", "basic", "plus", "business"]).into(),
                "language" => self.locale.tag.clone(),
                "city" => draw.pick(&self.locale.cities).into(),
                "cart_value" => format!("{}.{:02}", draw.below(400), draw.below(100)),
                "last_order" => self.order.to_string(),
                "newsletter" => draw.chance(400).to_string(),
                "segment" => draw.pick(&["new", "returning", "VIP ⭐", "at risk"]).into(),
                _ => draw.pick(&NOTES).into(),
            },
        };
        names.map(attribute).collect()
    }
}

/// The user in row `index`, whose hints show this activity.
pub fn user(generator: &Generator, index: u64, activity: Activity) -> User {
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
    User {
        id: generator.id(None, index),
        name: person.name(),
        email: person.email(),
        reference: person.reference(index),
        created_at: Moment(conversation.arrival),
        updated_at: Moment(updated),
        online_at: Moment(online),
        last_url: person.last_url(&mut profile),
        user_attributes: person.attributes(&mut profile),
    }
}

/// The operator with this number, from 0. Every third has no picture.
pub fn operator(seed: u64, number: u64) -> OperatorSender {
    // Operators have their own rows, after those of all users.
    let mut draw = Draw::new(seed, Stream::Operator, MAX_USERS + number, 0);
    let locale = locale::choose(&mut draw);
    let forename = locale::choose_name(&mut draw, &locale.given);
    let surname = locale::choose_name(&mut draw, &locale.family);
    let id = OPERATOR_BASE + number * 3;
    OperatorSender {
        id,
        forename: &forename.0,
        surname: &surname.0,
        email: format!("{}.{}@support.example.com", forename.1, surname.1),
        picture_thumb_url: (!number.is_multiple_of(3))
            .then(|| format!("https://cdn.example.net/operators/{id}/thumb.png")),
    }
}
