//! One pass over a page's text: its envelope, the positions of its rows, and the fields of rows of
//! the documented shape. Anything unknown is left to serde_json, which defines what everything
//! means. By `make bench-decode`, a message in columns takes 2,900 instructions when scanned and
//! 50,000 when read by serde_json.

use std::ops::Range;

use super::known_senders::KnownSenders;
use super::verdict::Verdict;
use super::{field, is_junk};
use crate::api::{LARGEST_LIMIT, Resource};
use crate::decode::json::cursor::{Cursor, Span};
use crate::decode::rows::{self, Spans};
use crate::schema::{SenderType, envelope, schema};
use crate::timestamp::Timestamp;

/// Room for the rows of a page of this many bytes: few rows are shorter than 128 bytes.
fn usual_rows(bytes: usize) -> usize {
    const SHORT_ROW: usize = 128;
    (bytes / SHORT_ROW + 1).min(LARGEST_LIMIT.into())
}

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
    cursor.object(|cursor, key| match key == resource.key().as_bytes() {
        true => once(&mut listed, rows(cursor, json, resource)?),
        false => envelope.scan(key, cursor),
    })?;
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
            user(&mut cursor, &mut parts, &mut row)?;
            let id = row.id;
            (Plain::Users(vec![Some(row)]), id)
        }
        Resource::Messages => {
            let mut row = Message::default();
            message(&mut cursor, &mut parts, &mut row)?;
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
    let mut places = Vec::with_capacity(usual_rows(json.len()));
    let mut parts = Parts::new(json);
    let plain = match resource {
        Resource::Users => {
            let read = |cursor: &mut Cursor<'_>, row: &mut User| {
                user(cursor, &mut parts, row)?;
                Some(row.id)
            };
            Plain::Users(each(cursor, (json, resource), &mut places, read)?)
        }
        Resource::Messages => {
            let read = |cursor: &mut Cursor<'_>, row: &mut Message| {
                message(cursor, &mut parts, row)?;
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
    let mut plain: Vec<Option<T>> = Vec::with_capacity(usual_rows(json.len()));
    cursor.array(|cursor| {
        if is_junk(places.len(), cursor.at()) {
            return None;
        }
        let before = *cursor;
        // Filled in place, because it is large.
        plain.push(None);
        let slot = plain.last_mut()?;
        let verdict = match read(cursor, slot.insert(T::default())) {
            Some(id) => Verdict::plain(id),
            None => {
                *slot = None;
                *cursor = before;
                let value = cursor.value()?;
                Verdict::on(value.of(json), resource)
            }
        };
        places.push(Place {
            slice: before.at()..cursor.at(),
            verdict,
        });
        Some(())
    })?;
    Some(plain)
}

fn user(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>, user: &mut User) -> Option<()> {
    let mut copy = *cursor;
    let seen = user.scan(&mut copy, parts)?;
    *cursor = copy;
    seen.has(field::User::id as usize).then_some(())
}

fn message(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>, message: &mut Message) -> Option<()> {
    let mut copy = *cursor;
    let seen = message.scan(&mut copy, parts)?;
    *cursor = copy;
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

/// The known fields that an object has, by their places in its table.
#[derive(Debug, Default, Clone, Copy)]
struct Seen(u32);

impl Seen {
    fn has(self, field: usize) -> bool {
        self.0 & (1 << field) != 0
    }

    /// Whether there are no others than these.
    fn is_within(self, fields: u32) -> bool {
        self.0 & !fields == 0
    }

    /// `None` for a repeated key: the last one wins, which is left to serde_json.
    #[inline(always)]
    fn note(&mut self, field: usize) -> Option<()> {
        let first = !self.has(field);
        self.0 |= 1 << field;
        first.then_some(())
    }
}

/// What the values of a row need.
struct Parts<'a> {
    json: &'a str,
    /// The fields of the last sender.
    seen_of_sender: Seen,
    senders: KnownSenders<'a, (Sender, Seen)>,
}

impl<'a> Parts<'a> {
    fn new(json: &'a str) -> Self {
        Self {
            json,
            seen_of_sender: Seen::default(),
            senders: KnownSenders::default(),
        }
    }
}

/// A value that a field holds.
trait Scan: Sized {
    fn scan(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>) -> Option<Self>;
}

impl Scan for i64 {
    #[inline(always)]
    fn scan(cursor: &mut Cursor<'_>, _: &mut Parts<'_>) -> Option<Self> {
        cursor.integer()
    }
}

impl Scan for Span {
    #[inline(always)]
    fn scan(cursor: &mut Cursor<'_>, _: &mut Parts<'_>) -> Option<Self> {
        cursor.string()
    }
}

impl Scan for bool {
    #[inline(always)]
    fn scan(cursor: &mut Cursor<'_>, _: &mut Parts<'_>) -> Option<Self> {
        cursor.boolean()
    }
}

impl Scan for Timestamp {
    #[inline(always)]
    fn scan(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>) -> Option<Self> {
        let mut likely = *cursor;
        if let Some(instant) = likely.short_string().and_then(Self::documented) {
            *cursor = likely;
            return Some(instant);
        }
        let span = cursor.string().filter(|span| !span.is_escaped())?;
        Self::parse(span.of(parts.json))
    }
}

impl Scan for Vec<UserAttribute> {
    #[inline]
    fn scan(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>) -> Option<Self> {
        let mut attributes = Self::new();
        cursor.array(|cursor| {
            let mut attribute = UserAttribute::default();
            attribute.scan(cursor, parts)?;
            attributes.push(attribute);
            Some(())
        })?;
        Some(attributes)
    }
}

impl<T: Scan> Scan for Option<T> {
    #[inline(always)]
    fn scan(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>) -> Option<Self> {
        if cursor.null() {
            Some(None)
        } else {
            T::scan(cursor, parts).map(Some)
        }
    }
}

impl Scan for Sender {
    #[inline(always)]
    fn scan(cursor: &mut Cursor<'_>, parts: &mut Parts<'_>) -> Option<Self> {
        if let Some((known, seen)) = parts.senders.next(cursor) {
            parts.seen_of_sender = seen;
            return Some(known);
        }
        let before = cursor.at();
        let mut sender = Self::default();
        let seen = sender.scan(cursor, parts)?;
        parts.seen_of_sender = seen;
        // Unknown fields are a list, which costs more to copy.
        if sender.extra.is_empty() {
            let text = parts.json.get(before..cursor.at())?;
            parts.senders.keep(text, (sender.clone(), seen));
        }
        Some(sender)
    }
}

macro_rules! numbers {
    ($($field:ident),*) => {
        /// The numbers in the envelope of a page.
        #[derive(Debug, Default, Clone, Copy)]
        pub(super) struct Envelope { $(pub $field: Option<i64>,)* }

        impl Envelope {
            /// Reads the value of this key.
            fn scan(&mut self, key: &[u8], cursor: &mut Cursor<'_>) -> Option<()> {
                $(if key == stringify!($field).as_bytes() {
                    // If a key occurs twice, the last one wins: that is left to serde_json.
                    if self.$field.is_some() {
                        return None;
                    }
                    if !cursor.null() {
                        self.$field = Some(cursor.integer()?);
                    }
                    return Some(());
                })*
                cursor.value().map(|_| ())
            }

            /// The numbers by their names.
            pub fn of(number: impl Fn(&str) -> Option<i64>) -> Self {
                Self { $($field: number(stringify!($field)),)* }
            }
        }
    };
}
envelope!(numbers);

macro_rules! scans {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => { $(
        impl $name {
            #[inline(always)]
            fn scan(&mut self, cursor: &mut Cursor<'_>, parts: &mut Parts<'_>) -> Option<Seen> {
                let mut seen = Seen::default();
                if !cursor.opens_object()? {
                    return Some(seen);
                }
                // Most objects have their members in the order of the table: trying the keys
                // in that order takes 3,000 instructions a message; learning the order took 4,200.
                loop {
                    let before = cursor.at();
                    $(if cursor.passes_key(concat!("\"", stringify!($field), "\":").as_bytes()) {
                        seen.note(field::$name::$field as usize)?;
                        self.$field = Scan::scan(cursor, parts)?;
                        if cursor.closes_object()? {
                            return Some(seen);
                        }
                    })*
                    if cursor.at() == before {
                        let (key, _) = cursor.key()?;
                        self.extra.push((key, cursor.value()?));
                        if cursor.closes_object()? {
                            return Some(seen);
                        }
                    }
                }
            }
        }
    )* };
}
schema!(scans);
