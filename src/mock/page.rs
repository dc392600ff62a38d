//! Bodies: a page of a list, or one row, as a dialect sends them.

use bytes::Bytes;

use super::dialect::Order;
use super::journal::Served;
use super::refusal::Refusal;
use super::routes::Target;
use super::world::{List, View, WorldError};
use crate::chunks::Chunks;
use crate::dialect::row_mutation::{Kind, RowMutation};

/// A page of a list with its envelope (interface 2.3).
///
/// # Errors
/// `NoUser`, as the list itself.
pub fn body(
    served: &Served,
    user: Option<u64>,
    limit: u64,
    total: Option<u64>,
    mutation: &RowMutation,
) -> Result<Chunks, WorldError> {
    let list = served.view.list(user)?;
    let offset = served.first;
    let total = total.map_or_else(|| "null".to_owned(), |total| total.to_string());
    let more = mutation.envelope(served.end() < served.sequence.total);
    let key = if user.is_none() { "users" } else { "messages" };
    let head =
        format!("{{\"limit\":{limit},\"offset\":{offset},\"total\":{total},{more}\"{key}\":[");
    let mut body = Chunks::from(head);
    if mutation.dialect.keeps_rows() && served.sequence.order == Order::Id {
        list.write(served.first, served.rows, &mut body);
    } else {
        body.push(rows(served, list, Kind::of(user), mutation));
    }
    body.push("]}");
    Ok(body)
}

/// Rows one by one, in the order of the request.
fn rows(served: &Served, list: List<'_>, kind: Kind, mutation: &RowMutation) -> Vec<u8> {
    let places = served.first..served.end();
    let rows = places.filter_map(|place| list.at(served.sequence.position(place)));
    let rows: Vec<Bytes> = rows.map(|row| mutation.row(kind, row)).collect();
    rows.join(&b',')
}

/// One user, or one message.
///
/// # Errors
/// A refusal with status 404 if there is no such user, or no such message.
pub fn row(view: &View, target: Target, mutation: &RowMutation) -> Result<Bytes, Refusal> {
    let sent_user = target.user.unwrap_or(0);
    let unknown_user = || Refusal::unknown_user(sent_user);
    let user = mutation.own_id(sent_user).ok_or_else(unknown_user)?;
    let Some(sent) = target.message else {
        let row = view.read(None, user).map_err(|_| unknown_user())?;
        return Ok(mutation.row(Kind::User, row));
    };
    view.list(Some(user)).map_err(|_| unknown_user())?;
    match mutation.own_id(sent).map(|id| view.read(Some(user), id)) {
        Some(Ok(row)) => Ok(mutation.row(Kind::Message, row)),
        _ => Err(Refusal::unknown_message(sent_user, sent)),
    }
}
