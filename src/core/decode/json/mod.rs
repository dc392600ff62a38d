//! From a body's bytes to readable JSON text: repaired, and with faults that have a path.

mod charset;
pub mod cursor;
mod rewritten;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::{Buf, Bytes};
use memchr::memchr;
use serde_json::value::RawValue;

use crate::error::Misfit;

pub use self::charset::is_utf_16;
pub use self::rewritten::{object, rewritten};

// What precedes the secret in every request.
const CREDENTIAL: &str = "Bearer ";
const SNIPPET_CHARACTERS: usize = 80;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why some JSON is not as expected, and where: `$.users[3].name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub path: String,
    pub reason: String,
    pub snippet: String,
    pub misfit: Misfit,
}

impl Fault {
    pub fn new(path: &str, reason: &str, json: &str) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.to_owned(),
            snippet: snippet(json, 0),
            misfit: Misfit::Envelope,
        }
    }

    /// The same fault for a text that is known to be JSON.
    pub fn of(mut self, misfit: Misfit) -> Self {
        self.misfit = misfit;
        self
    }

    /// The same fault relative to the value that contains this one at `parent` (`$.users[3]`).
    pub fn below(mut self, parent: &str) -> Self {
        let rest = self.path.strip_prefix('$').unwrap_or(&self.path);
        self.path = format!("{parent}{rest}");
        self
    }
}

/// A body as valid Unicode: UTF-8, or else what its Content-Type names. Invalid parts became U+FFFD
/// and are counted.
#[derive(Debug, Clone)]
pub struct Text {
    pub json: Arc<String>,
    pub repaired: u64,
}

impl Text {
    /// Replaces bad UTF-8 and lone surrogate escapes, and drops a byte order mark (RFC 8259, 8.1).
    pub fn repair(body: Bytes, content_type: Option<&str>) -> Self {
        let mut bytes = without_mark(body);
        let repaired = repair_surrogates(&mut bytes);
        Self::of(bytes, repaired, content_type)
    }

    /// The same, but lone surrogate escapes stay.
    pub fn unicode(body: Bytes, content_type: Option<&str>) -> Self {
        Self::of(without_mark(body), 0, content_type)
    }

    /// Replaces lone surrogate escapes.
    pub fn repair_escapes(self) -> Self {
        let mut bytes = Arc::unwrap_or_clone(self.json).into_bytes();
        let repaired = self.repaired + repair_surrogates(&mut bytes);
        Self::of(bytes, repaired, None)
    }

    fn of(bytes: Vec<u8>, mut repaired: u64, content_type: Option<&str>) -> Self {
        let json = match charset::utf_8(bytes) {
            Ok(valid) => valid,
            Err(bytes) if content_type.is_some_and(charset::is_windows_1252) => {
                charset::from_windows_1252(&bytes)
            }
            Err(bytes) => {
                repaired += bytes
                    .utf8_chunks()
                    .filter(|chunk| !chunk.invalid().is_empty())
                    .count() as u64;
                String::from_utf8_lossy(&bytes).into_owned()
            }
        };
        Self {
            json: Arc::new(json),
            repaired,
        }
    }
}

fn without_mark(mut body: Bytes) -> Vec<u8> {
    if body.starts_with(BYTE_ORDER_MARK) {
        body.advance(BYTE_ORDER_MARK.len());
    }
    // Does not copy bytes that are not shared.
    body.into()
}

const ESCAPE_LENGTH: usize = REPLACEMENT.len();
const REPLACEMENT: &[u8] = br"\ufffd";

/// Replaces escapes of lone surrogates (RFC 8259, 8.2) in place, and counts them.
fn repair_surrogates(json: &mut [u8]) -> u64 {
    let mut repaired = 0;
    let mut position = 0;
    while let Some(step) = json.get(position..).and_then(|rest| memchr(b'\\', rest)) {
        position += step;
        // Most escapes are of characters in one unit: those of surrogates begin with D8 to DF.
        if !matches!(
            json.get(position + 1..position + 3),
            Some([b'u', b'd' | b'D'])
        ) {
            position += 2;
            continue;
        }
        let lone = match escaped_unit(json, position) {
            Some(0xD800..=0xDBFF) => {
                let low = escaped_unit(json, position + ESCAPE_LENGTH);
                let paired = matches!(low, Some(0xDC00..=0xDFFF));
                position += if paired { ESCAPE_LENGTH } else { 0 };
                !paired
            }
            Some(0xDC00..=0xDFFF) => true,
            Some(_) => false,
            // Another escape, of two characters; an escaped backslash must not start the next one.
            None => {
                position += 2;
                continue;
            }
        };
        if lone && let Some(escape) = json.get_mut(position..position + ESCAPE_LENGTH) {
            escape.copy_from_slice(REPLACEMENT);
            repaired += 1;
        }
        position += ESCAPE_LENGTH;
    }
    repaired
}

/// The UTF-16 unit of the escape at `position`, if there is one.
#[inline]
fn escaped_unit(json: &[u8], position: usize) -> Option<u16> {
    let [b'\\', b'u', digits @ ..] = json.get(position..)?.first_chunk::<ESCAPE_LENGTH>()? else {
        return None;
    };
    let [first, second, third, fourth] = digits.map(hexadecimal);
    u16::try_from(first << 12 | second << 8 | third << 4 | fourth).ok()
}

/// The value of a digit, from a table: branches that nothing predicts take longer. It is more than
/// two bytes hold for what is no digit.
#[inline]
fn hexadecimal(digit: u8) -> u32 {
    const NONE: u32 = 1 << u16::BITS;
    #[allow(clippy::indexing_slicing)] // the compiler evaluates it
    const VALUES: [u32; 256] = {
        let mut values = [NONE; 256];
        let mut value = 0;
        while value < 16 {
            values[b"0123456789abcdef"[value as usize] as usize] = value;
            values[b"0123456789ABCDEF"[value as usize] as usize] = value;
            value += 1;
        }
        values
    };
    *VALUES.get(usize::from(digit)).unwrap_or(&NONE)
}

/// Rejects a text that is not JSON.
pub fn check(json: &str) -> Result<(), Fault> {
    let read: Result<&RawValue, _> = serde_json::from_str(json);
    read.map(|_| ()).map_err(|error| Fault {
        path: "$".to_owned(),
        reason: reason(&error),
        snippet: snippet(json, position(json, &error)),
        misfit: Misfit::NotJson,
    })
}

/// Rejects a text that is not a JSON object; serde would accept an array for a struct.
pub fn check_object(json: &str) -> Result<(), Fault> {
    if json.trim_start().starts_with('{') {
        return Ok(());
    }
    check(json)?;
    Err(Fault::new("$", "not an object", json))
}

// serde_json ends its message with " at line 1 column 7", which the snippet shows better.
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => message.get(..end).unwrap_or(&message).to_owned(),
        None => message,
    }
}

fn position(json: &str, error: &serde_json::Error) -> usize {
    let before: usize = json
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    before + error.column().saturating_sub(1)
}

/// At most `SNIPPET_CHARACTERS` characters around the byte at `position`.
pub fn snippet(json: &str, position: usize) -> String {
    let start = json.floor_char_boundary(position.saturating_sub(SNIPPET_CHARACTERS / 2));
    let end = json.floor_char_boundary(start + SNIPPET_CHARACTERS * char::MAX.len_utf8());
    // A credential that begins before the snippet still counts.
    let (before, _) = json.split_at(json.floor_char_boundary(start + CREDENTIAL.len()));
    let from = before
        .rfind(CREDENTIAL)
        .map_or(start, |from| from.min(start));
    let shown = without_credentials(json.get(from..end).unwrap_or_default());
    shown
        .get(start - from..)
        .unwrap_or_default()
        .chars()
        .take(SNIPPET_CHARACTERS)
        .collect()
}

/// Redacts credentials, so that a service that echoes our headers does not get the secret into a
/// message. The length stays the same.
fn without_credentials(text: &str) -> String {
    let mut parts = text.split(CREDENTIAL);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let ends = |each: char| each == '"' || !each.is_ascii_graphic();
        let (credential, rest) = part.split_at(part.find(ends).unwrap_or(part.len()));
        masked.push_str(CREDENTIAL);
        masked.extend(credential.chars().map(|_| '*'));
        masked.push_str(rest);
    }
    masked
}
