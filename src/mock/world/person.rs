//! A user's identity, and how the parts of the user's row are written.

use super::draw::{Draw, Stream};
use super::locale::{self, Locale, Name, NameOrder};
use super::locales;
use super::text;

/// A user's identity.
pub struct Person {
    pub locale: &'static Locale,
    pub given: Name,
    family: Name,
    mailbox: u64,
    /// The number of an order, to talk about.
    pub order: u64,
}

impl Person {
    /// The user in row `index`.
    pub fn new(seed: u64, index: u64) -> Self {
        let mut draw = Draw::new(seed, Stream::Person, index, 0);
        let locale = locales::choose(&mut draw);
        Self {
            locale,
            given: locale::choose_name(&mut draw, locale.given),
            family: locale::choose_name(&mut draw, locale.family),
            mailbox: draw.bits(),
            order: 10_000 + draw.below(9_990_000),
        }
    }
}

/// Writes the full name, in the language's order.
pub fn write_name(person: &Person, out: &mut Vec<u8>) {
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

/// Writes the e-mail address.
pub fn write_email(person: &Person, out: &mut Vec<u8>) {
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

/// Writes the reference value, which is of one of three kinds.
pub fn write_reference(person: &Person, index: u64, out: &mut Vec<u8>) {
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

/// Writes the URL of the last page visited.
pub fn write_last_url(person: &Person, draw: &mut Draw, out: &mut Vec<u8>) {
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

/// Writes the custom properties, none to four.
pub fn write_attributes(person: &Person, draw: &mut Draw, out: &mut Vec<u8>) {
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
