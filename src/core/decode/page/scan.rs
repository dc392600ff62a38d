//! One pass over a page's text: its envelope, the positions of its rows, and the fields of rows of
//! the documented shape. Anything unknown is left to serde_json, which defines what everything
//! means.

use std::ops::Range;

use super::is_junk;
use super::plain::{
    Plain, PlainAttribute, PlainMessage, PlainSender, PlainUser, SenderFields, Text,
};
use super::verdict::Verdict;
use crate::core::api::{LARGEST_LIMIT, Resource};
use crate::core::decode::json::cursor::Cursor;
use crate::core::decode::json::fields::{Found, Key, Order, Seen, keys};
use crate::core::timestamp::Timestamp;

// Capacity for the rows of a full page.
const USUAL_ROWS: usize = LARGEST_LIMIT as usize;

/// A page's envelope and rows.
#[derive(Debug)]
pub(super) struct Scanned {
    pub limit: Option<i64>,
    pub offset: Option<i64>,
    pub total: Option<i64>,
    pub places: Vec<Place>,
    pub plain: Plain,
}

/// A row's position in the text, and its verdict.
#[derive(Debug)]
pub(super) struct Place {
    pub slice: Range<usize>,
    pub verdict: Verdict,
}

/// `None` if the text is not a page, or has an unusual envelope.
pub(super) fn scan(json: &str, resource: Resource) -> Option<Scanned> {
    let mut cursor = Cursor::new(json)?;
    let (mut limit, mut offset, mut total) = (None, None, None);
    let mut listed = None;
    cursor.space();
    cursor.object(|cursor, key| match key {
        b"limit" => once(&mut limit, whole(cursor)?),
        b"offset" => once(&mut offset, whole(cursor)?),
        b"total" => once(&mut total, whole(cursor)?),
        _ if key == resource.key().as_bytes() => once(&mut listed, rows(cursor, json, resource)?),
        _ => cursor.value().map(|_| ()),
    })?;
    cursor.space();
    let (places, plain) = listed.filter(|_| cursor.is_at_end())?;
    Some(Scanned {
        limit: limit.flatten(),
        offset: offset.flatten(),
        total: total.flatten(),
        places,
        plain,
    })
}

/// The single record in a text; `None` if it is not of the documented shape.
pub(super) fn scan_alone(json: &str, resource: Resource) -> Option<(Plain, Verdict)> {
    let mut cursor = Cursor::new(json)?;
    let mut orders = Orders::default();
    cursor.space();
    let read = match resource {
        Resource::Users => {
            let mut row = PlainUser::default();
            user(&mut cursor, json, &mut orders, &mut row)?;
            let id = row.id;
            (Plain::Users(vec![Some(row)]), id)
        }
        Resource::Messages => {
            let mut row = PlainMessage::default();
            message(&mut cursor, json, &mut orders, &mut row)?;
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

fn whole(cursor: &mut Cursor<'_>) -> Option<Option<i64>> {
    match cursor.null() {
        true => Some(None),
        false => cursor.integer().map(Some),
    }
}

type Rows = (Vec<Place>, Plain);

fn rows(cursor: &mut Cursor<'_>, json: &str, resource: Resource) -> Option<Rows> {
    let mut places = Vec::with_capacity(USUAL_ROWS);
    let mut orders = Orders::default();
    let plain = match resource {
        Resource::Users => {
            let user = |cursor: &mut Cursor<'_>, row: &mut _| user(cursor, json, &mut orders, row);
            Plain::Users(each(cursor, (json, resource), &mut places, user, |user| {
                user.id
            })?)
        }
        Resource::Messages => {
            let message =
                |cursor: &mut Cursor<'_>, row: &mut _| message(cursor, json, &mut orders, row);
            Plain::Messages(each(
                cursor,
                (json, resource),
                &mut places,
                message,
                |message| message.id,
            )?)
        }
    };
    Some((places, plain))
}

fn each<T: Default>(
    cursor: &mut Cursor<'_>,
    (json, resource): (&str, Resource),
    places: &mut Vec<Place>,
    mut read: impl FnMut(&mut Cursor<'_>, &mut T) -> Option<()>,
    id: impl Fn(&T) -> i64,
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
        let mut named = None;
        if let Some(row) = slot
            && read(cursor, row).is_some()
        {
            named = Some(id(row));
        }
        let verdict = match named {
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

/// The field orders of the previous objects.
#[derive(Default)]
struct Orders {
    user: Order<9>,
    attribute: Order<2>,
    message: Order<9>,
    by_user: Order<6>,
    by_operator: Order<6>,
}

// In each match below, the numbers are indices in the list above it.

const USER: [Key; 9] = keys![
    "id",
    "name",
    "email",
    "reference",
    "created_at",
    "updated_at",
    "online_at",
    "last_url",
    "user_attributes",
];

fn user(
    cursor: &mut Cursor<'_>,
    json: &str,
    orders: &mut Orders,
    user: &mut PlainUser,
) -> Option<()> {
    let Orders {
        user: order,
        attribute,
        ..
    } = orders;
    let seen = cursor.fields(&USER, order, |cursor, found| {
        match found {
            Found::Field(0) => user.id = cursor.integer()?,
            Found::Field(1) => user.name = text(cursor)?,
            Found::Field(2) => user.email = text(cursor)?,
            Found::Field(3) => user.reference = text(cursor)?,
            Found::Field(4) => user.created_at = instant(cursor, json)?,
            Found::Field(5) => user.updated_at = instant(cursor, json)?,
            Found::Field(6) => user.online_at = instant(cursor, json)?,
            Found::Field(7) => user.last_url = text(cursor)?,
            Found::Field(_) => user.user_attributes = attributes(cursor, attribute)?,
            Found::Unknown(key) => user.extra.push((key, cursor.value()?)),
        }
        Some(())
    })?;
    seen.has(0).then_some(())
}

const ATTRIBUTE: [Key; 2] = keys!["name", "value"];

fn attributes(
    cursor: &mut Cursor<'_>,
    order: &mut Order<2>,
) -> Option<Option<Vec<PlainAttribute>>> {
    if cursor.null() {
        return Some(None);
    }
    let mut attributes = Vec::new();
    cursor.array(|cursor| {
        let mut attribute = PlainAttribute::default();
        cursor.fields(&ATTRIBUTE, order, |cursor, found| {
            match found {
                Found::Field(0) => attribute.name = text(cursor)?,
                Found::Field(_) => attribute.value = text(cursor)?,
                Found::Unknown(key) => attribute.extra.push((key, cursor.value()?)),
            }
            Some(())
        })?;
        attributes.push(attribute);
        Some(())
    })?;
    Some(Some(attributes))
}

const MESSAGE: [Key; 9] = keys![
    "id",
    "body",
    "read_by_user",
    "read_by_operator",
    "created_at",
    "file_url",
    "auto_invitation",
    "sender_type",
    "sender",
];

fn message(
    cursor: &mut Cursor<'_>,
    json: &str,
    orders: &mut Orders,
    message: &mut PlainMessage,
) -> Option<()> {
    let mut sender = None;
    let Orders {
        message: order,
        by_user,
        by_operator,
        ..
    } = orders;
    let seen = cursor.fields(&MESSAGE, order, |cursor, found| {
        match found {
            Found::Field(0) => message.id = cursor.integer()?,
            Found::Field(1) => message.body = text(cursor)?,
            Found::Field(2) => message.read_by_user = boolean(cursor)?,
            Found::Field(3) => message.read_by_operator = boolean(cursor)?,
            Found::Field(4) => message.created_at = instant(cursor, json)?,
            Found::Field(5) => message.file_url = text(cursor)?,
            Found::Field(6) => message.auto_invitation = boolean(cursor)?,
            Found::Field(7) => message.sender_type = text(cursor)?,
            Found::Field(_) => {
                let by = message.sender_type.map(|span| span.of(json));
                let order = match by {
                    Some("operator") => &mut *by_operator,
                    _ => &mut *by_user,
                };
                sender = sent_by(cursor, order)?;
            }
            Found::Unknown(key) => message.extra.push((key, cursor.value()?)),
        }
        Some(())
    })?;
    if let Some(sender) = sender {
        message.sender = sender.typed(message.sender_type?.of(json))?;
    }
    seen.has(0).then_some(())
}

const SENDER: [Key; 6] = keys![
    "id",
    "name",
    "email",
    "forename",
    "surname",
    "picture_thumb_url",
];

/// A sender before its type is known, which may follow it.
struct AnySender {
    fields: SenderFields,
    seen: Seen,
}

impl AnySender {
    /// A field that only the other type has counts as unknown, and those are left to serde_json.
    fn typed(self, sender_type: &str) -> Option<PlainSender> {
        let Self { fields, seen } = self;
        let [id, name, _, forename, surname, picture] = std::array::from_fn(|n| seen.has(n));
        match sender_type {
            _ if !id => None,
            "user" if !forename && !surname && !picture => Some(PlainSender::User(fields)),
            "operator" if !name => Some(PlainSender::Operator(fields)),
            _ => None,
        }
    }
}

fn sent_by(cursor: &mut Cursor<'_>, order: &mut Order<6>) -> Option<Option<AnySender>> {
    if cursor.null() {
        return Some(None);
    }
    let mut fields = SenderFields::default();
    let seen = cursor.fields(&SENDER, order, |cursor, found| {
        match found {
            Found::Field(0) => fields.id = cursor.integer()?,
            Found::Field(1) => fields.name = text(cursor)?,
            Found::Field(2) => fields.email = text(cursor)?,
            Found::Field(3) => fields.forename = text(cursor)?,
            Found::Field(4) => fields.surname = text(cursor)?,
            Found::Field(_) => fields.picture_thumb_url = text(cursor)?,
            Found::Unknown(key) => fields.extra.push((key, cursor.value()?)),
        }
        Some(())
    })?;
    Some(Some(AnySender { fields, seen }))
}

#[inline]
fn text(cursor: &mut Cursor<'_>) -> Option<Text> {
    match cursor.peek() {
        b'"' => cursor.string().map(Some),
        _ => cursor.null().then_some(None),
    }
}

#[inline]
fn boolean(cursor: &mut Cursor<'_>) -> Option<Option<bool>> {
    match cursor.null() {
        true => Some(None),
        false => cursor.boolean().map(Some),
    }
}

#[inline]
fn instant(cursor: &mut Cursor<'_>, json: &str) -> Option<Option<Timestamp>> {
    match text(cursor)? {
        None => Some(None),
        Some(span) if span.is_escaped() => None,
        Some(span) => Timestamp::parse(span.of(json)).map(Some),
    }
}
