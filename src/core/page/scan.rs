//! One pass over a page's text: its envelope, where its rows lie, and what those of the documented
//! shape hold. What it does not know it leaves to serde_json, which decides what anything means.

use std::ops::Range;

use super::id_of;
use super::plain::{
    Plain, PlainAttribute, PlainMessage, PlainSender, PlainUser, SenderFields, Text, Unknown,
};
use crate::core::interface::Resource;
use crate::core::json::cursor::{Cursor, Span};
use crate::core::timestamp::Timestamp;

/// A page's envelope and rows.
#[derive(Debug)]
pub(super) struct Scanned {
    pub limit: Option<i64>,
    pub offset: Option<i64>,
    pub total: Option<i64>,
    pub rows: Vec<(Range<usize>, Option<i64>)>,
    pub plain: Plain,
}

/// `None` where the text is no page, or one that is odd in its envelope.
pub(super) fn scan(json: &str, resource: Resource) -> Option<Scanned> {
    let mut cursor = Cursor::new(json)?;
    let (mut limit, mut offset, mut total) = (None, None, None);
    let mut listed = None;
    cursor.space();
    cursor.object(|cursor, key, _| match key {
        b"limit" => once(&mut limit, whole(cursor)?),
        b"offset" => once(&mut offset, whole(cursor)?),
        b"total" => once(&mut total, whole(cursor)?),
        _ if key == resource.key().as_bytes() => once(&mut listed, rows(cursor, json, resource)?),
        _ => cursor.value().map(|_| ()),
    })?;
    cursor.space();
    let (rows, plain) = listed.filter(|_| cursor.is_at_end())?;
    Some(Scanned {
        limit: limit.flatten(),
        offset: offset.flatten(),
        total: total.flatten(),
        rows,
        plain,
    })
}

/// Of a key that comes twice the last one rules: that is left to serde_json.
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

type Rows = (Vec<(Range<usize>, Option<i64>)>, Plain);

fn rows(cursor: &mut Cursor<'_>, json: &str, resource: Resource) -> Option<Rows> {
    let mut places = Vec::new();
    let plain = match resource {
        Resource::Users => Plain::Users(each(cursor, json, &mut places, user, |user| user.id)?),
        Resource::Messages => {
            let plain = each(cursor, json, &mut places, message, |message| message.id)?;
            Plain::Messages(plain)
        }
    };
    Some((places, plain))
}

fn each<T>(
    cursor: &mut Cursor<'_>,
    json: &str,
    places: &mut Vec<(Range<usize>, Option<i64>)>,
    read: impl Fn(&mut Cursor<'_>, &str) -> Option<T>,
    id: impl Fn(&T) -> i64,
) -> Option<Vec<Option<T>>> {
    let mut plain = Vec::new();
    cursor.array(|cursor| {
        let from = cursor.at();
        if let Some(row) = read(cursor, json) {
            places.push((from..cursor.at(), Some(id(&row))));
            plain.push(Some(row));
            return Some(());
        }
        cursor.go_back(from);
        cursor.value()?;
        let place = from..cursor.at();
        let id = json.get(place.clone()).and_then(id_of);
        places.push((place, id));
        plain.push(None);
        Some(())
    })?;
    Some(plain)
}

fn user(cursor: &mut Cursor<'_>, json: &str) -> Option<PlainUser> {
    let mut user = PlainUser::default();
    let mut seen = Seen::default();
    cursor.object(|cursor, key, at| {
        match key {
            b"id" => {
                seen.first(0)?;
                user.id = cursor.integer()?;
            }
            b"name" => {
                seen.first(1)?;
                user.name = text(cursor)?;
            }
            b"email" => {
                seen.first(2)?;
                user.email = text(cursor)?;
            }
            b"reference" => {
                seen.first(3)?;
                user.reference = text(cursor)?;
            }
            b"created_at" => {
                seen.first(4)?;
                user.created_at = instant(cursor, json)?;
            }
            b"updated_at" => {
                seen.first(5)?;
                user.updated_at = instant(cursor, json)?;
            }
            b"online_at" => {
                seen.first(6)?;
                user.online_at = instant(cursor, json)?;
            }
            b"last_url" => {
                seen.first(7)?;
                user.last_url = text(cursor)?;
            }
            b"user_attributes" => {
                seen.first(8)?;
                user.user_attributes = attributes(cursor)?;
            }
            _ => unknown(cursor, at, &mut user.extra)?,
        }
        Some(())
    })?;
    seen.has(0).then_some(user)
}

fn attributes(cursor: &mut Cursor<'_>) -> Option<Option<Vec<PlainAttribute>>> {
    if cursor.null() {
        return Some(None);
    }
    let mut attributes = Vec::new();
    cursor.array(|cursor| {
        let mut attribute = PlainAttribute::default();
        let mut seen = Seen::default();
        cursor.object(|cursor, key, at| {
            match key {
                b"name" => {
                    seen.first(0)?;
                    attribute.name = text(cursor)?;
                }
                b"value" => {
                    seen.first(1)?;
                    attribute.value = text(cursor)?;
                }
                _ => unknown(cursor, at, &mut attribute.extra)?,
            }
            Some(())
        })?;
        attributes.push(attribute);
        Some(())
    })?;
    Some(Some(attributes))
}

fn message(cursor: &mut Cursor<'_>, json: &str) -> Option<PlainMessage> {
    let mut message = PlainMessage::default();
    let mut sender = None;
    let mut seen = Seen::default();
    cursor.object(|cursor, key, at| {
        match key {
            b"id" => {
                seen.first(0)?;
                message.id = cursor.integer()?;
            }
            b"body" => {
                seen.first(1)?;
                message.body = text(cursor)?;
            }
            b"read_by_user" => {
                seen.first(2)?;
                message.read_by_user = boolean(cursor)?;
            }
            b"read_by_operator" => {
                seen.first(3)?;
                message.read_by_operator = boolean(cursor)?;
            }
            b"created_at" => {
                seen.first(4)?;
                message.created_at = instant(cursor, json)?;
            }
            b"file_url" => {
                seen.first(5)?;
                message.file_url = text(cursor)?;
            }
            b"auto_invitation" => {
                seen.first(6)?;
                message.auto_invitation = boolean(cursor)?;
            }
            b"sender_type" => {
                seen.first(7)?;
                message.sender_type = text(cursor)?;
            }
            b"sender" => {
                seen.first(8)?;
                sender = sent_by(cursor)?;
            }
            _ => unknown(cursor, at, &mut message.extra)?,
        }
        Some(())
    })?;
    if let Some(sender) = sender {
        message.sender = sender.typed(message.sender_type?.of(json))?;
    }
    seen.has(0).then_some(message)
}

/// A sender before its type is known, which may follow it.
struct AnySender {
    fields: SenderFields,
    seen: Seen,
}

const SENDER_ID: u32 = 0;
const SENDER_NAME: u32 = 1;
const SENDER_FORENAME: u32 = 3;
const SENDER_SURNAME: u32 = 4;
const SENDER_PICTURE: u32 = 5;

impl AnySender {
    /// A field that only the other type has is an unknown one: those are left to serde_json.
    fn typed(self, sender_type: &str) -> Option<PlainSender> {
        let Self { fields, seen } = self;
        if !seen.has(SENDER_ID) {
            return None;
        }
        match sender_type {
            "user"
                if !seen.has(SENDER_FORENAME)
                    && !seen.has(SENDER_SURNAME)
                    && !seen.has(SENDER_PICTURE) =>
            {
                Some(PlainSender::User(fields))
            }
            "operator" if !seen.has(SENDER_NAME) => Some(PlainSender::Operator(fields)),
            _ => None,
        }
    }
}

fn sent_by(cursor: &mut Cursor<'_>) -> Option<Option<AnySender>> {
    if cursor.null() {
        return Some(None);
    }
    let mut fields = SenderFields::default();
    let mut seen = Seen::default();
    cursor.object(|cursor, key, at| {
        match key {
            b"id" => {
                seen.first(SENDER_ID)?;
                fields.id = cursor.integer()?;
            }
            b"name" => {
                seen.first(SENDER_NAME)?;
                fields.name = text(cursor)?;
            }
            b"email" => {
                seen.first(2)?;
                fields.email = text(cursor)?;
            }
            b"forename" => {
                seen.first(SENDER_FORENAME)?;
                fields.forename = text(cursor)?;
            }
            b"surname" => {
                seen.first(SENDER_SURNAME)?;
                fields.surname = text(cursor)?;
            }
            b"picture_thumb_url" => {
                seen.first(SENDER_PICTURE)?;
                fields.picture_thumb_url = text(cursor)?;
            }
            _ => unknown(cursor, at, &mut fields.extra)?,
        }
        Some(())
    })?;
    Some(Some(AnySender { fields, seen }))
}

/// The fields that have come, by number.
#[derive(Debug, Default, Clone, Copy)]
struct Seen(u32);

impl Seen {
    /// `None` where it came before.
    #[inline]
    fn first(&mut self, field: u32) -> Option<()> {
        let first = !self.has(field);
        self.0 |= 1 << field;
        first.then_some(())
    }

    fn has(self, field: u32) -> bool {
        self.0 & (1 << field) != 0
    }
}

#[inline]
fn text(cursor: &mut Cursor<'_>) -> Option<Text> {
    match cursor.null() {
        true => Some(None),
        false => cursor.string().map(Some),
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

fn unknown(cursor: &mut Cursor<'_>, key: Span, fields: &mut Unknown) -> Option<()> {
    let value = cursor.value()?;
    fields.push((key, value));
    Some(())
}
