//! Bodies: a page of a list, or one row, as a dialect sends them, and the files behind the links of
//! messages.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, Crc};

use super::dialect::Order;
use super::journal::Served;
use super::refusal::Refusal;
use super::routes::Target;
use super::world::{List, View, WorldError};
use crate::chunks::Chunks;
use crate::dialect::row_mutation::{Kind, RowMutation};

/// Where the links of a world begin. With `files=own`, the rest of them is a path of the mock.
pub const ELSEWHERE: &str = "https://files.example.com";

/// The width and height of a picture.
const SIDE: u32 = 64;

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

/// The media type and the content of a file: a picture in one colour, or a line of text. The same path
/// always has the same.
pub fn file(folder: &str, name: &str) -> (&'static str, Bytes) {
    let colour = u64::from_str_radix(folder, 16).unwrap_or(0).to_be_bytes();
    let [.., red, green, blue] = colour;
    match name.rsplit('.').next() {
        Some("png" | "jpg") => ("image/png", picture([red, green, blue])),
        Some("pdf") => ("application/pdf", text_file("%PDF-1.4\n", folder)),
        _ => ("application/octet-stream", text_file("", folder)),
    }
}

fn text_file(start: &str, folder: &str) -> Bytes {
    format!("{start}The file of {folder}.\n").into()
}

/// A PNG: its signature, and three chunks with a length and a check sum each.
fn picture(colour: [u8; 3]) -> Bytes {
    let mut header = [SIDE.to_be_bytes(), SIDE.to_be_bytes()].concat();
    // Eight bits for each of three colours; no interlacing.
    header.extend([8, 2, 0, 0, 0]);
    // A row begins with its filter, which is none.
    let row = [&[0], colour.repeat(SIDE as usize).as_slice()].concat();
    let mut rows = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
    // A vector accepts everything.
    let _ = rows.write_all(&row.repeat(SIDE as usize));
    let rows = rows.finish().unwrap_or_default();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", header), (b"IDAT", rows), (b"IEND", Vec::new())] {
        let mut sum = Crc::new();
        sum.update(kind);
        sum.update(&data);
        png.extend((data.len() as u32).to_be_bytes());
        png.extend(kind);
        png.extend(data);
        png.extend(sum.sum().to_be_bytes());
    }
    png.into()
}
