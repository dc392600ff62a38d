//! Strings without their escapes (RFC 8259, section 7), faster than serde_json reads them.

use memchr::memchr;

use super::{ESCAPE_LENGTH, escaped_unit};

/// The text without its escapes; `None` if one of them is not valid.
pub fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(step) = memchr(b'\\', bytes.get(at..)?) {
        plain.push_str(text.get(at..at + step)?);
        at += step;
        // In many scripts one escape follows another.
        while let Some(rest @ [b'\\', ..]) = bytes.get(at..) {
            let unit = escaped_unit(rest, 0).map(u32::from);
            let (character, length) = match unit.and_then(char::from_u32) {
                Some(character) => (character, ESCAPE_LENGTH),
                None => escaped(rest)?,
            };
            plain.push(character);
            at += length;
        }
    }
    plain.push_str(text.get(at..)?);
    Some(plain)
}

/// The character of the escape that a text begins with, which is none of a single unit, and the
/// escape's length.
fn escaped(text: &[u8]) -> Option<(char, usize)> {
    let character = match text.get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return surrogates(text),
        _ => return None,
    };
    Some((character, 2))
}

/// The character of two escapes.
fn surrogates(text: &[u8]) -> Option<(char, usize)> {
    let (high, low) = (escaped_unit(text, 0)?, escaped_unit(text, ESCAPE_LENGTH)?);
    let mut pair = char::decode_utf16([high, low]);
    Some((pair.next()?.ok()?, 2 * ESCAPE_LENGTH))
}
