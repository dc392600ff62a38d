//! One pass over a page's text: its envelope, the positions of its rows, and the fields of rows of
//! the documented shape. Anything unknown is left to serde_json, which defines what everything
//! means. By `make bench-decode`, a message in columns takes 5,200 instructions when scanned and
//! 50,000 when read by serde_json.

use std::ops::Range;

use super::verdict::Verdict;
use super::{field, is_junk};
use crate::core::api::{LARGEST_LIMIT, Resource};
use crate::core::decode::json::cursor::{Cursor, Span};
use crate::core::decode::json::fields::{Found, Order, Seen};
use crate::core::decode::rows::{self, Spans};
use crate::core::schema::{SenderType, envelope, schema};
use crate::core::timestamp::Timestamp;

// Capacity for the rows of a full page.
const USUAL_ROWS: usize = LARGEST_LIMIT as usize;

pub(super) type User = rows::User<Spans>;
pub(super) type UserAttribute = rows::UserAttribute<Spans>;
pub(super) type Message = rows::Message<Spans>;
pub(super) type Sender = rows::Sender<Spans>;

/// A page's envelope and rows.
#[derive(Debug)]
pub(super) struct Scanned {
    pub envelope: Envelope,
    pub places: Vec<Place>,
    pub plain: Plain,
}

/// A row's position in the text, and its verdict.
#[derive(Debug)]
pub(super) struct Place {
    pub slice: Range<usize>,
    pub verdict: Verdict,
}

/// The rows of a page that are of the documented shape, by index; `None` for rows that serde_json
/// reads.
#[derive(Debug)]
pub(super) enum Plain {
    None,
    Users(Vec<Option<User>>),
    Messages(Vec<Option<Message>>),
}

/// `None` if the text is not a page, or has an unusual envelope.
pub(super) fn scan(json: &str, resource: Resource) -> Option<Scanned> {
    let mut cursor = Cursor::new(json)?;
    let mut envelope = Envelope::default();
    let mut listed = None;
    cursor.space();
    cursor.fields(
        &field::Envelope::KEYS,
        &mut Order::default(),
        |cursor, found| match found {
            Found::Field(number) => envelope.scan(number, cursor),
            Found::Unknown(key) if key.of(json) == resource.key() => {
                once(&mut listed, rows(cursor, json, resource)?)
            }
            Found::Unknown(_) => cursor.value().map(|_| ()),
        },
    )?;
    cursor.space();
    let (places, plain) = listed.filter(|_| cursor.is_at_end())?;
    Some(Scanned {
        envelope,
        places,
        plain,
    })
}

/// The single record in a text; `None` if it is not of the documented shape.
pub(super) fn scan_alone(json: &str, resource: Resource) -> Option<(Plain, Verdict)> {
    let mut cursor = Cursor::new(json)?;
    let mut parts = Parts::new(json);
    cursor.space();
    let read = match resource {
        Resource::Users => {
            let mut row = User::default();
            user(&mut cursor, &mut Order::default(), &mut parts, &mut row)?;
            let id = row.id;
            (Plain::Users(vec![Some(row)]), id)
        }
        Resource::Messages => {
            let mut row = Message::default();
            message(&mut cursor, &mut Order::default(), &mut parts, &mut row)?;
            let id = row.id;
            (Plain::Messages(vec![Some(row)]), id)
        }
    };
    cursor.space();
    let (plain, id) = read;
    cursor.is_at_end().then_some((plain, Verdict::plain(id)))
}

/// If a key occurs twice, the last one wins: that is left to serde_json.
#[inline]
fn once<T>(field: &mut Option<T>, value: T) -> Option<()> {
    field.replace(value).is_none().then_some(())
}

type Rows = (Vec<Place>, Plain);

fn rows(cursor: &mut Cursor<'_>, json: &str, resource: Resource) -> Option<Rows> {
    let mut places = Vec::with_capacity(USUAL_ROWS);
    let mut parts = Parts::new(json);
    let plain = match resource {
        Resource::Users => {
            let mut order = Order::default();
            let read = |cursor: &mut Cursor<'_>, row: &mut User| {
                user(cursor, &mut order, &mut parts, row)?;
                Some(row.id)
            };
            Plain::Users(each(cursor, (json, resource), &mut places, read)?)
        }
        Resource::Messages => {
            let mut order = Order::default();
            let read = |cursor: &mut Cursor<'_>, row: &mut Message| {
                message(cursor, &mut order, &mut parts, row)?;
                Some(row.id)
            };
            Plain::Messages(each(cursor, (json, resource), &mut places, read)?)
        }
    };
    Some((places, plain))
}

/// `read` returns the id of a row.
fn each<T: Default>(
    cursor: &mut Cursor<'_>,
    (json, resource): (&str, Resource),
    places: &mut Vec<Place>,
    mut read: impl FnMut(&mut Cursor<'_>, &mut T) -> Option<i64>,
) -> Option<Vec<Option<T>>> {
    let mut plain: Vec<Option<T>> = Vec::with_capacity(USUAL_ROWS);
    cursor.array(|cursor| {
        if is_junk(places.len(), cursor.at()) {
            return None;
        }
        let from = cursor.at();
        // Filled in place, because it is large.
        plain.push(Some(T::default()));
        let slot = plain.last_mut()?;
        let verdict = match slot.as_mut().and_then(|row| read(cursor, row)) {
            Some(id) => Verdict::plain(id),
            None => {
                *slot = None;
                cursor.go_back(from);
                let value = cursor.value()?;
                Verdict::on(value.of(json), resource)
            }
        };
        places.push(Place {
            slice: from..cursor.at(),
            verdict,
        });
        Some(())
    })?;
    Some(plain)
}

fn user(
    cursor: &mut Cursor<'_>,
    order: &mut Order<{ field::User::COUNT }>,
    parts: &mut Parts<'_>,
    user: &mut User,
) -> Option<()> {
    let seen = user.scan(cursor, order, parts)?;
    seen.has(field::User::id as usize).then_some(())
}

fn message(
    cursor: &mut Cursor<'_>,
    order: &mut Order<{ field::Message::COUNT }>,
    parts: &mut Parts<'_>,
    message: &mut Message,
) -> Option<()> {
    let seen = message.scan(cursor, order, parts)?;
    if let Some(sender) = &message.sender {
        // Its type may follow it. A field that only another type has counts as unknown, and those
        // are left to serde_json.
        let sender_type = message.sender_type.map(|span| span.of(parts.json));
        let documented = match SenderType::of(sender_type, sender.id) {
            SenderType::User => const { SenderType::User.mask() },
            SenderType::Operator => const { SenderType::Operator.mask() },
            SenderType::Other => return None,
        };
        parts.seen_of_sender.is_within(documented).then_some(())?;
    }
    seen.has(field::Message::id as usize).then_some(())
}

/// What the objects in a row need.
struct Parts<'a> {
    json: &'a str,
    attribute: Order<{ field::UserAttribute::COUNT }>,
    sender_by_user: Order<{ field::Sender::COUNT }>,
    sender_by_operator: Order<{ field::Sender::COUNT }>,
    /// Whether the message at hand is by an operator, as far as it was scanned.
    by_operator: bool,
    /// The fields of the last sender.
    seen_of_sender: Seen,
}

impl<'a> Parts<'a> {
    fn new(json: &'a str) -> Self {
        Self {
            json,
            attribute: Order::default(),
            sender_by_user: Order::default(),
            sender_by_operator: Order::default(),
            by_operator: false,
            seen_of_sender: Seen::default(),
        }
    }
}

impl Parts<'_> {
    fn sender_order(&mut self) -> &mut Order<{ field::Sender::COUNT }> {
        if self.by_operator {
            &mut self.sender_by_operator
        } else {
            &mut self.sender_by_user
        }
    }
}

/// A value that a field holds.
trait Scan: Sized {
    fn scan(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>) -> Option<Self>;
}

impl Scan for i64 {
    #[inline]
    fn scan(cursor: &mut Cursor<'_>, _: &mut Parts<'_>) -> Option<Self> {
        cursor.integer()
    }
}

impl Scan for Span {
    #[inline]
    fn scan(cursor: &mut Cursor<'_>, _: &mut Parts<'_>) -> Option<Self> {
        cursor.string()
    }
}

impl Scan for bool {
    #[inline]
    fn scan(cursor: &mut Cursor<'_>, _: &mut Parts<'_>) -> Option<Self> {
        cursor.boolean()
    }
}

impl Scan for Timestamp {
    #[inline]
    fn scan(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>) -> Option<Self> {
        let span = cursor.string().filter(|span| !span.is_escaped())?;
        Self::parse(span.of(parts.json))
    }
}

impl Scan for Vec<UserAttribute> {
    fn scan(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>) -> Option<Self> {
        let mut attributes = Self::new();
        cursor.array(|cursor| {
            let mut attribute = UserAttribute::default();
            let mut order = std::mem::take(&mut parts.attribute);
            attribute.scan(cursor, &mut order, parts)?;
            parts.attribute = order;
            attributes.push(attribute);
            Some(())
        })?;
        Some(attributes)
    }
}

impl<T: Scan> Scan for Option<T> {
    #[inline]
    fn scan(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>) -> Option<Self> {
        if cursor.null() {
            Some(None)
        } else {
            T::scan(cursor, parts).map(Some)
        }
    }
}

impl Scan for Sender {
    fn scan(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>) -> Option<Self> {
        let mut sender = Self::default();
        let mut order = std::mem::take(parts.sender_order());
        parts.seen_of_sender = sender.scan(cursor, &mut order, parts)?;
        *parts.sender_order() = order;
        Some(sender)
    }
}

macro_rules! numbers {
    ($($field:ident),*) => {
        /// The numbers in the envelope of a page.
        #[derive(Debug, Default, Clone, Copy)]
        pub(super) struct Envelope { $(pub $field: Option<i64>,)* }

        impl Envelope {
            fn scan(&mut self, field: field::Envelope, cursor: &mut Cursor<'_>) -> Option<()> {
                let number = if cursor.null() { None } else { Some(cursor.integer()?) };
                match field {
                    $(field::Envelope::$field => self.$field = number,)*
                }
                Some(())
            }

            /// The numbers by their names.
            pub fn of(number: impl Fn(&str) -> Option<i64>) -> Self {
                Self { $($field: number(stringify!($field)),)* }
            }
        }
    };
}
envelope!(numbers);

macro_rules! scan_value {
    // The fields of a sender depend on its type, which usually precedes it.
    (Sender of $row:ident.$field:ident, $cursor:ident, $parts:ident) => {
        let sender_type = $row.sender_type.map(|span| span.of($parts.json));
        $parts.by_operator = sender_type == Some(SenderType::OPERATOR);
        $row.$field = Scan::scan($cursor, $parts)?;
    };
    ($kind:ident of $row:ident.$field:ident, $cursor:ident, $parts:ident) => {
        $row.$field = Scan::scan($cursor, $parts)?;
    };
}

macro_rules! scans {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => { $(
        impl $name {
            #[inline]
            fn scan(
                &mut self,
                cursor: &mut Cursor<'_>,
                order: &mut Order<{ field::$name::COUNT }>,
                parts: &mut Parts<'_>,
            ) -> Option<Seen> {
                cursor.fields(&field::$name::KEYS, order, |cursor, found| {
                    match found {
                        $(Found::Field(field::$name::$field) => {
                            scan_value!($kind of self.$field, cursor, parts);
                        })*
                        Found::Unknown(key) => self.extra.push((key, cursor.value()?)),
                    }
                    Some(())
                })
            }
        }
    )* };
}
schema!(scans);
