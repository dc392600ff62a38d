//! A message: how the values in its row are written.

use std::borrow::Cow;

use super::conversation::{Beat, Turn};
use super::draw::Draw;
use super::text;
use super::user::Person;

/// A message while it is written.
#[derive(Debug)]
pub struct MessageRow<'messages> {
    pub id: u64,
    pub turn: Turn,
    /// When it was written, in milliseconds since 1970.
    pub moment: u64,
    /// The sender's row.
    pub sender: Cow<'messages, [u8]>,
    /// The user of the list.
    pub person: &'messages Person,
    /// How operators address the user, as the content of a JSON string.
    pub first_name: &'messages [u8],
    pub draw: Draw,
}

impl MessageRow<'_> {
    pub fn write_body(&mut self, out: &mut Vec<u8>) {
        const EMOJI: [&str; 10] = ["🙂", "👍", "🙏", "😕", "🎉", "❤️", "👩🏽‍💻", "📦", "🇪🇺", "😂😂"];
        let (turn, draw, locale) = (self.turn, &mut self.draw, self.person.locale);
        let lines = match (turn.auto_invitation, turn.by_user, turn.beat) {
            (true, _, _) => &locale.invitation,
            (_, true, Beat::Opening) => &locale.user_opening,
            (_, true, Beat::Middle) => &locale.user_middle,
            (_, true, Beat::Closing) => &locale.user_closing,
            (_, false, Beat::Opening) => &locale.operator_opening,
            (_, false, Beat::Middle) => &locale.operator_middle,
            (_, false, Beat::Closing) => &locale.operator_closing,
        };
        let sentences = match draw.below(100) {
            0..78 => 1,
            78..96 => 2,
            _ => lines.len(),
        };
        let sentences = sentences.min(lines.len());
        let separator: &[u8] = if draw.chance(250) { b"\\n" } else { b" " };
        let first = draw.below(lines.len() as u64) as usize;
        out.push(b'"');
        for (number, line) in lines.iter().cycle().skip(first).take(sentences).enumerate() {
            if number > 0 {
                out.extend_from_slice(separator);
            }
            write_line(line.as_ref(), self.person.order, self.first_name, out);
        }
        if draw.chance(120) {
            out.push(b' ');
            out.extend_from_slice(draw.pick(&EMOJI).as_bytes());
        }
        out.push(b'"');
    }

    pub fn write_file_url(&mut self, out: &mut Vec<u8>) {
        const FILES: [&str; 5] = [
            "screenshot.png",
            "IMG_2041.jpg",
            "invoice.pdf",
            "r%C3%A9sum%C3%A9.docx",
            "video.mp4",
        ];
        let draw = &mut self.draw;
        if self.turn.auto_invitation || !draw.chance(45) {
            return out.extend_from_slice(b"null");
        }
        let (folder, file) = (draw.bits() >> 16, draw.pick(&FILES));
        text::formatted(
            format_args!("\"https://files.example.com/chat/{folder:012x}/{file}\""),
            out,
        );
    }

    pub const fn sender_type(&self) -> &'static [u8] {
        if self.turn.by_user {
            b"\"user\""
        } else {
            b"\"operator\""
        }
    }
}

/// Writes a line with an order number and a name for its marks.
fn write_line(line: &str, order: u64, first_name: &[u8], out: &mut Vec<u8>) {
    let mut rest = line;
    while let Some((before, marked)) = rest.split_once('{') {
        out.extend_from_slice(before.as_bytes());
        let (mark, after) = marked.split_once('}').unwrap_or((marked, ""));
        match mark {
            "n" => text::number(order, out),
            _ => out.extend_from_slice(first_name),
        }
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
}
