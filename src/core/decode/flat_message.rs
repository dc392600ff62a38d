//! A message in the form of the columns, with its sender's fields next to its own.

use std::borrow::Cow;

use crate::core::decode::model::{Message, Sender, Unknown};
use crate::core::timestamp::Timestamp;

/// A message's fields and its sender's; missing ones are `None`.
#[derive(Debug, Default, PartialEq)]
pub struct FlatMessage<'a> {
    pub id: i64,
    pub body: Option<Cow<'a, str>>,
    pub read_by_user: Option<bool>,
    pub read_by_operator: Option<bool>,
    pub created_at: Option<Timestamp>,
    pub file_url: Option<&'a str>,
    pub auto_invitation: Option<bool>,
    pub sender_type: Option<&'a str>,
    pub sender: FlatSender<'a>,
    /// `None` if there are none.
    pub extra: Option<&'a Unknown<'a>>,
}

/// A sender's fields, whatever its type.
#[derive(Debug, Default, PartialEq)]
pub struct FlatSender<'a> {
    pub id: Option<i64>,
    pub name: Option<&'a str>,
    pub email: Option<&'a str>,
    pub forename: Option<&'a str>,
    pub surname: Option<&'a str>,
    pub picture_thumb_url: Option<&'a str>,
    /// `None` if there are none.
    pub extra: Option<&'a Unknown<'a>>,
}

impl<'a> From<&'a Message<'a>> for FlatMessage<'a> {
    fn from(message: &'a Message<'a>) -> Self {
        Self {
            id: message.id,
            body: message.body.as_deref().map(Cow::Borrowed),
            read_by_user: message.read_by_user,
            read_by_operator: message.read_by_operator,
            created_at: message.created_at,
            file_url: message.file_url.as_deref(),
            auto_invitation: message.auto_invitation,
            sender_type: message.sender_type.as_deref(),
            sender: message
                .sender
                .as_ref()
                .map(FlatSender::from)
                .unwrap_or_default(),
            extra: some(&message.extra),
        }
    }
}

impl<'a> From<&'a Sender<'a>> for FlatSender<'a> {
    fn from(sender: &'a Sender<'a>) -> Self {
        match sender {
            Sender::User(user) => Self {
                id: Some(user.id),
                name: user.name.as_deref(),
                email: user.email.as_deref(),
                extra: some(&user.extra),
                ..Self::default()
            },
            Sender::Operator(operator) => Self {
                id: Some(operator.id),
                email: operator.email.as_deref(),
                forename: operator.forename.as_deref(),
                surname: operator.surname.as_deref(),
                picture_thumb_url: operator.picture_thumb_url.as_deref(),
                extra: some(&operator.extra),
                ..Self::default()
            },
            Sender::Other(other) => Self {
                id: other.id.map(|id| id.0),
                extra: some(&other.extra),
                ..Self::default()
            },
        }
    }
}

fn some<'a>(unknown: &'a Unknown<'a>) -> Option<&'a Unknown<'a>> {
    (!unknown.is_empty()).then_some(unknown)
}
