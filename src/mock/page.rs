//! Bodies: a page of a list, or one row, as a dialect sends them.

use bytes::Bytes;

use super::dialect::Order;
use super::journal::{PageArguments, Served};
use super::refusal::Refusal;
use super::world::{View, text};
use crate::chunks::Chunks;
use crate::dialect::row_mutation::{Kind, RowMutation};

/// The rows of the list of users, or of a user's messages; `None` if there is no such user.
#[must_use]
pub fn total(view: &View, user: Option<u64>) -> Option<u64> {
    match user {
        None => Some(view.total_users()),
        Some(user) => view.total_messages(user),
    }
}

/// A page with its envelope (interface 2.3).
#[must_use]
pub fn body(
    served: &Served,
    user: Option<u64>,
    asked: PageArguments,
    total: Option<u64>,
    mutation: &RowMutation,
) -> Chunks {
    let mut head = Vec::with_capacity(128);
    head.extend_from_slice(b"{\"limit\":");
    text::number(asked.limit, &mut head);
    head.extend_from_slice(b",\"offset\":");
    text::number(asked.offset, &mut head);
    head.extend_from_slice(b",\"total\":");
    match total {
        Some(total) => text::number(total, &mut head),
        None => head.extend_from_slice(b"null"),
    }
    head.push(b',');
    mutation.envelope(served.end() < served.sequence.total, &mut head);
    head.extend_from_slice(match user {
        None => b"\"users\":[",
        Some(_) => b"\"messages\":[",
    });
    let mut body = Chunks::default();
    body.push(Bytes::from(head));
    if mutation.dialect.keeps_rows() && served.sequence.order == Order::Id {
        let rows = usize::try_from(served.rows).unwrap_or(usize::MAX);
        match user {
            None => served.view.write_users(served.first, rows, &mut body),
            Some(user) => served
                .view
                .write_messages(user, served.first, rows, &mut body),
        }
    } else {
        body.push(Bytes::from(rows(served, user, mutation)));
    }
    body.push(Bytes::from_static(b"]}"));
    body
}

/// Rows one by one, in the order of the request.
fn rows(served: &Served, user: Option<u64>, mutation: &RowMutation) -> Vec<u8> {
    let mut out = Vec::new();
    for place in served.first..served.end() {
        let position = served.sequence.position(place);
        let row = match user {
            None => served.view.user_row(position),
            Some(user) => served.view.message_row(user, position),
        };
        let kind = if user.is_none() {
            Kind::User
        } else {
            Kind::Message
        };
        if place > served.first {
            out.push(b',');
        }
        match row {
            Some(row) if mutation.dialect.keeps_rows() => out.extend_from_slice(&row),
            Some(row) => out.extend_from_slice(&mutation.row(kind, &row)),
            None => {}
        }
    }
    out
}

/// One user.
///
/// # Errors
/// A refusal with status 404 if there is no such user.
pub fn user(view: &View, sent: u64, mutation: &RowMutation) -> Result<Bytes, Refusal> {
    let mut out = Vec::new();
    match mutation.own_id(sent) {
        Some(user_id) if view.write_user(user_id, &mut out) => {
            Ok(mutated(Kind::User, out, mutation))
        }
        _ => Err(Refusal::unknown_user(sent)),
    }
}

/// One message.
///
/// # Errors
/// A refusal with status 404 if there is no such user, or no such message.
pub fn message(
    view: &View,
    sent_user: u64,
    sent: u64,
    mutation: &RowMutation,
) -> Result<Bytes, Refusal> {
    let user_id = mutation
        .own_id(sent_user)
        .filter(|user_id| view.total_messages(*user_id).is_some())
        .ok_or_else(|| Refusal::unknown_user(sent_user))?;
    let mut out = Vec::new();
    match mutation.own_id(sent) {
        Some(message_id) if view.write_message(user_id, message_id, &mut out) => {
            Ok(mutated(Kind::Message, out, mutation))
        }
        _ => Err(Refusal::unknown_message(sent_user, sent)),
    }
}

fn mutated(kind: Kind, row: Vec<u8>, mutation: &RowMutation) -> Bytes {
    if mutation.dialect.keeps_rows() {
        Bytes::from(row)
    } else {
        Bytes::from(mutation.row(kind, &row))
    }
}
