//! The files behind the links of messages.

use bytes::Bytes;
use flate2::{Compression, Crc};
use std::io::Write;

/// Where the links of a world begin. With `files=own`, the rest of them is a path of the mock.
pub const ELSEWHERE: &str = "https://files.example.com";

/// The width and height of a picture.
const SIDE: u32 = 64;

/// The media type and the content of a file: a picture in one colour, or a line of text. The same path
/// always has the same.
pub fn file(folder: &str, name: &str) -> (&'static str, Bytes) {
    let colour = u64::from_str_radix(folder, 16).unwrap_or(0).to_be_bytes();
    let [.., red, green, blue] = colour;
    match name.rsplit('.').next() {
        Some("png" | "jpg") => ("image/png", picture([red, green, blue])),
        Some("pdf") => ("application/pdf", text("%PDF-1.4\n", folder)),
        _ => ("application/octet-stream", text("", folder)),
    }
}

fn text(start: &str, folder: &str) -> Bytes {
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
