//! Rows of the documented shape, as spans of their page's text.

use std::borrow::Cow;

use crate::core::decode::flat_message::{FlatMessage, FlatSender};
use crate::core::decode::json::cursor::Span;
use crate::core::decode::model::{
    Message, OperatorSender, Sender, Unknown, User, UserAttribute, UserSender,
};
use crate::core::timestamp::Timestamp;

/// The rows of a page by index; `None` for rows that serde_json reads.
#[derive(Debug)]
pub(super) enum Plain {
    None,
    Users(Vec<Option<PlainUser>>),
    Messages(Vec<Option<PlainMessage>>),
}

/// A string in the page's text; `None` if it was null or missing.
pub(super) type Text = Option<Span>;

/// Fields that the interface does not name: key and value, as sent.
pub(super) type UnknownSpans = Vec<(Span, Span)>;

#[derive(Debug, Default)]
pub(super) struct PlainUser {
    pub id: i64,
    pub name: Text,
    pub email: Text,
    pub reference: Text,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub online_at: Option<Timestamp>,
    pub last_url: Text,
    pub user_attributes: Option<Vec<PlainAttribute>>,
    pub extra: UnknownSpans,
}

#[derive(Debug, Default)]
pub(super) struct PlainAttribute {
    pub name: Text,
    pub value: Text,
    pub extra: UnknownSpans,
}

#[derive(Debug, Default)]
pub(super) struct PlainMessage {
    pub id: i64,
    pub body: Text,
    pub read_by_user: Option<bool>,
    pub read_by_operator: Option<bool>,
    pub created_at: Option<Timestamp>,
    pub file_url: Text,
    pub auto_invitation: Option<bool>,
    pub sender_type: Text,
    pub sender: PlainSender,
    pub extra: UnknownSpans,
}

/// The sender of a message: the documented types, or none.
#[derive(Debug, Default)]
pub(super) enum PlainSender {
    #[default]
    None,
    User(SenderFields),
    Operator(SenderFields),
}

/// The fields of both sender types.
#[derive(Debug, Default)]
pub(super) struct SenderFields {
    pub id: i64,
    pub name: Text,
    pub email: Text,
    pub forename: Text,
    pub surname: Text,
    pub picture_thumb_url: Text,
    pub extra: UnknownSpans,
}

// Each returns `None` only if serde_json rejects what the scan accepted, and then decides itself.

impl PlainUser {
    pub fn user<'a>(&self, json: &'a str) -> Option<User<'a>> {
        let user_attributes = match &self.user_attributes {
            None => None,
            Some(attributes) => {
                let attributes = attributes.iter().map(|attribute| attribute.read(json));
                Some(attributes.collect::<Option<Vec<_>>>()?)
            }
        };
        Some(User {
            id: self.id,
            name: text(json, self.name)?,
            email: text(json, self.email)?,
            reference: text(json, self.reference)?,
            created_at: self.created_at,
            updated_at: self.updated_at,
            online_at: self.online_at,
            last_url: text(json, self.last_url)?,
            user_attributes,
            extra: extra(json, &self.extra),
        })
    }
}

impl PlainAttribute {
    fn read<'a>(&self, json: &'a str) -> Option<UserAttribute<'a>> {
        Some(UserAttribute {
            name: text(json, self.name)?,
            value: text(json, self.value)?,
            extra: extra(json, &self.extra),
        })
    }
}

impl PlainMessage {
    pub fn message<'a>(&self, json: &'a str) -> Option<Message<'a>> {
        let sender = match &self.sender {
            PlainSender::None => None,
            PlainSender::User(sender) => Some(Sender::User(UserSender {
                id: sender.id,
                name: text(json, sender.name)?,
                email: text(json, sender.email)?,
                extra: extra(json, &sender.extra),
            })),
            PlainSender::Operator(sender) => Some(Sender::Operator(OperatorSender {
                id: sender.id,
                forename: text(json, sender.forename)?,
                surname: text(json, sender.surname)?,
                email: text(json, sender.email)?,
                picture_thumb_url: text(json, sender.picture_thumb_url)?,
                extra: extra(json, &sender.extra),
            })),
        };
        Some(Message {
            id: self.id,
            body: text(json, self.body)?,
            read_by_user: self.read_by_user,
            read_by_operator: self.read_by_operator,
            created_at: self.created_at,
            file_url: text(json, self.file_url)?,
            auto_invitation: self.auto_invitation,
            sender_type: text(json, self.sender_type)?,
            sender,
            extra: extra(json, &self.extra),
        })
    }
}

impl PlainMessage {
    /// `None` if there are unknown fields, or escapes outside the body.
    pub fn flat<'a>(&self, json: &'a str) -> Option<FlatMessage<'a>> {
        let sender = match &self.sender {
            PlainSender::None => FlatSender::default(),
            PlainSender::User(sender) | PlainSender::Operator(sender) => sender.flat(json)?,
        };
        if !self.extra.is_empty() {
            return None;
        }
        Some(FlatMessage {
            id: self.id,
            body: text(json, self.body)?,
            read_by_user: self.read_by_user,
            read_by_operator: self.read_by_operator,
            created_at: self.created_at,
            file_url: as_sent(json, self.file_url)?,
            auto_invitation: self.auto_invitation,
            sender_type: as_sent(json, self.sender_type)?,
            sender,
            extra: None,
        })
    }
}

impl SenderFields {
    fn flat<'a>(&self, json: &'a str) -> Option<FlatSender<'a>> {
        if !self.extra.is_empty() {
            return None;
        }
        Some(FlatSender {
            id: Some(self.id),
            name: as_sent(json, self.name)?,
            email: as_sent(json, self.email)?,
            forename: as_sent(json, self.forename)?,
            surname: as_sent(json, self.surname)?,
            picture_thumb_url: as_sent(json, self.picture_thumb_url)?,
            extra: None,
        })
    }
}

/// A text without escapes; `None` if it has some.
#[inline]
fn as_sent(json: &str, span: Text) -> Option<Option<&str>> {
    match span {
        None => Some(None),
        Some(span) if span.is_escaped() => None,
        Some(span) => Some(Some(span.of(json))),
    }
}

#[inline]
fn text(json: &str, span: Text) -> Option<Option<Cow<'_, str>>> {
    let Some(span) = span else {
        return Some(None);
    };
    if !span.is_escaped() {
        return Some(Some(Cow::Borrowed(span.of(json))));
    }
    let quoted = json.get(span.from() - 1..=span.to())?;
    let unescaped: String = serde_json::from_str(quoted).ok()?;
    Some(Some(Cow::Owned(unescaped)))
}

#[inline]
fn extra<'a>(json: &'a str, unknown: &UnknownSpans) -> Unknown<'a> {
    let members = unknown.iter();
    members
        .map(|(key, value)| (Cow::Borrowed(key.of(json)), Cow::Borrowed(value.of(json))))
        .collect()
}
