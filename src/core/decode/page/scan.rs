//! One pass over a response's text: its envelope, the positions of its rows, and their fields.

use std::ops::Range;

use super::members::{ALL, Parts, field};
use super::verdict::{Unreadable, Verdict};
use crate::api::{LARGEST_LIMIT, Resource};
use crate::decode::json::cursor::Cursor;
use crate::decode::rows::{Message, Sender, User};
use crate::schema::{SenderType, envelope};

/// A page's envelope and rows.
#[derive(Debug)]
pub(super) struct Scanned {
    pub envelope: Envelope,
    pub places: Vec<Place>,
    pub rows: ScannedRows,
}

/// A row's position in the text, and its verdict.
#[derive(Debug)]
pub(super) struct Place {
    pub slice: Range<usize>,
    pub verdict: Verdict,
}

/// Rows by index; `None` for those that cannot be read.
#[derive(Debug)]
pub(super) enum ScannedRows {
    Users(Vec<Option<User>>),
    Messages(Vec<Option<Message>>),
}

impl ScannedRows {
    pub fn none(resource: Resource) -> Self {
        match resource {
            Resource::Users => Self::Users(Vec::new()),
            Resource::Messages => Self::Messages(Vec::new()),
        }
    }
}

/// Why a text is not what was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    NotAnObject,
    /// Why the member with the rows is no array of rows.
    Rows(&'static str),
}

/// Longer texts have no positions.
const TOO_LONG: Refused = Refused::Rows("the response is longer than 2 GiB");
const MISSING: Refused = Refused::Rows("the array is null or missing");

/// A page of a list.
pub(super) fn scan(json: &str, resource: Resource) -> Result<Scanned, Refused> {
    let mut cursor = Cursor::new(json).ok_or(TOO_LONG)?;
    let mut envelope = Envelope::default();
    let mut listed = Err(MISSING);
    let mut is_null = false;
    cursor.space();
    let read = cursor.object(|cursor, key| {
        let key = key.text(json);
        if key != resource.key() {
            envelope.set(&key, *cursor);
            return cursor.value().map(|_| ());
        }
        is_null = cursor.peek() == b'n';
        listed = match cursor.peek() {
            b'[' => rows(cursor, json, resource)?,
            _ => {
                cursor.value()?;
                Err(if is_null {
                    MISSING
                } else {
                    Refused::Rows("not an array")
                })
            }
        };
        Some(())
    });
    cursor.space();
    if read.is_none() || !cursor.is_at_end() {
        return Err(Refused::NotAnObject);
    }
    // Go sends an empty slice as null; the count beside it tells it from another shape.
    if is_null && envelope.total.is_some() {
        listed = Ok((Vec::new(), ScannedRows::none(resource)));
    }
    let (places, rows) = listed?;
    Ok(Scanned {
        envelope,
        places,
        rows,
    })
}

/// The single record in a text, as a list of one.
pub(super) fn scan_alone(json: &str, resource: Resource) -> Rows {
    let mut cursor = Cursor::new(json).ok_or(TOO_LONG)?;
    cursor.space();
    let read = match cursor.peek() {
        b'{' => rows(&mut cursor, json, resource),
        _ => None,
    };
    cursor.space();
    match read {
        Some(rows) if cursor.is_at_end() => rows,
        _ => Err(Refused::NotAnObject),
    }
}

/// Room for the rows of a page of this many bytes: few rows are shorter than 128 bytes.
fn usual_rows(bytes: usize) -> usize {
    const SHORT_ROW: usize = 128;
    (bytes / SHORT_ROW + 1).min(LARGEST_LIMIT.into())
}

/// Whether an array with this many elements in this many bytes cannot be rows. Each element takes
/// some hundred bytes of memory, and one with an id and a field or two is longer than that.
fn is_junk(elements: usize, bytes: usize) -> bool {
    const MANY: usize = 100_000;
    const LEAST_BYTES: usize = 24;
    elements >= MANY && bytes / LEAST_BYTES < elements
}

pub(super) type Rows = Result<(Vec<Place>, ScannedRows), Refused>;

/// The rows of an array, or the only one; `None` if it is no JSON.
fn rows<'a>(cursor: &mut Cursor<'a>, json: &'a str, resource: Resource) -> Option<Rows> {
    let mut places = Vec::with_capacity(usual_rows(json.len()));
    let parts = Parts::new(json, *cursor);
    let rows = match resource {
        Resource::Users => each(cursor, parts, &mut places, user)?.map(ScannedRows::Users),
        Resource::Messages => each(cursor, parts, &mut places, message)?.map(ScannedRows::Messages),
    };
    Some(rows.map(|rows| (places, rows)))
}

fn each<'a, T: Default>(
    cursor: &mut Cursor<'a>,
    mut parts: Parts<'a>,
    places: &mut Vec<Place>,
    read: impl Fn(&mut Cursor<'a>, &mut Parts<'a>, &mut T) -> Option<Verdict>,
) -> Option<Result<Vec<Option<T>>, Refused>> {
    let mut rows: Vec<Option<T>> = Vec::with_capacity(usual_rows(parts.json.len()));
    let mut junk = false;
    let mut row = |cursor: &mut Cursor<'a>| {
        let from = cursor.at();
        junk |= is_junk(places.len(), from);
        if junk {
            return cursor.value().map(|_| ());
        }
        // Filled in place, because it is large.
        rows.push(None);
        let slot = rows.last_mut()?;
        let verdict = if cursor.peek() == b'{' {
            read(cursor, &mut parts, slot.insert(T::default()))?
        } else {
            cursor.value()?;
            Verdict::not_read(Unreadable::NoObject)
        };
        if verdict.unreadable.is_some() {
            *slot = None;
        }
        let slice = from..cursor.at();
        places.push(Place { slice, verdict });
        Some(())
    };
    match cursor.peek() {
        b'[' => cursor.array(row)?,
        _ => row(cursor)?,
    }
    Some(match junk {
        true => Err(Refused::Rows("more rows than their size allows for")),
        false => Ok(rows),
    })
}

fn user<'a>(cursor: &mut Cursor<'a>, parts: &mut Parts<'a>, user: &mut User) -> Option<Verdict> {
    let before = cursor.at();
    let mut copy = *cursor;
    let seen = user.scan(&mut copy, parts, ALL)?;
    *cursor = copy;
    let inner = match &user.user_attributes {
        Some(_) => parts.odd_in_attributes,
        None => 0,
    };
    let id = seen.has(field::User::id as usize).then_some(user.id);
    Some(parts.verdict(before..copy.at(), id, seen.odd_values() + inner))
}

fn message<'a>(
    cursor: &mut Cursor<'a>,
    parts: &mut Parts<'a>,
    message: &mut Message,
) -> Option<Verdict> {
    let before = cursor.at();
    let mut copy = *cursor;
    let seen = message.scan(&mut copy, parts, ALL)?;
    *cursor = copy;
    let mut odd_values = seen.odd_values();
    if let Some(sender) = &mut message.sender {
        let sender_type = message.sender_type.map(|span| span.text(parts.json));
        let documented = match SenderType::of(sender_type.as_deref(), sender.id) {
            SenderType::User => const { SenderType::User.mask() },
            SenderType::Operator => const { SenderType::Operator.mask() },
            SenderType::Other => const { SenderType::Other.mask() },
        };
        // Its type may follow it, and a field that only another type has counts as unknown.
        if !parts.sender_fields.is_within(documented) {
            *sender = Sender::default();
            let mut again = parts.sender_at;
            parts.sender_fields = sender.scan(&mut again, parts, documented)?;
        }
        odd_values += parts.sender_fields.odd_values();
    }
    let id = seen.has(field::Message::id as usize).then_some(message.id);
    Some(parts.verdict(before..copy.at(), id, odd_values))
}

macro_rules! numbers {
    ($($field:ident),*) => {
        /// The numbers in the envelope of a page.
        #[derive(Debug, Default, Clone, Copy)]
        pub(super) struct Envelope { $(pub $field: Option<i64>,)* }

        impl Envelope {
            /// Reads the value of this key, if it is one of these. A value of another type counts as
            /// missing; if a key occurs twice, the last one wins.
            fn set(&mut self, key: &str, mut value: Cursor<'_>) {
                $(if key == stringify!($field) {
                    self.$field = value.integer();
                })*
            }
        }
    };
}
envelope!(numbers);
