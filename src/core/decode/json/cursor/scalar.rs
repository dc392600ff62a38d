//! Scalars of a JSON text: strings, by their positions and without their escapes (RFC 8259, section 7),
//! and whole numbers. serde_json reads them more slowly.

use std::borrow::Cow;
use std::num::NonZeroU32;

use memchr::memchr;

use super::{ESCAPE_LENGTH, LONGEST, escaped_unit};

/// A range of bytes in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// One more than the position, so that `Option<Span>` needs no extra space.
    after_from: NonZeroU32,
    /// The highest bit marks a string with escapes.
    to: u32,
}

const ESCAPED: u32 = 1 << 31;

impl Span {
    // Positions are below `LONGEST`; `Cursor::new` checks that.
    pub(super) fn new(from: usize, to: usize, escaped: bool) -> Self {
        let mark = if escaped { ESCAPED } else { 0 };
        Self {
            after_from: NonZeroU32::MIN.saturating_add(from as u32),
            to: to as u32 | mark,
        }
    }

    /// The position of a text that is appended to others; an empty one if they would be too long.
    pub fn append(texts: &mut String, text: &str) -> Self {
        let from = texts.len();
        if from + text.len() >= LONGEST {
            return Self::new(0, 0, false);
        }
        texts.push_str(text);
        Self::new(from, texts.len(), false)
    }

    pub fn is_escaped(self) -> bool {
        self.to & ESCAPED != 0
    }

    pub fn from(self) -> usize {
        self.after_from.get() as usize - 1
    }

    pub fn to(self) -> usize {
        (self.to & !ESCAPED) as usize
    }

    pub fn of(self, text: &str) -> &str {
        text.get(self.from()..self.to()).unwrap_or_default()
    }

    /// The string without its escapes.
    #[inline]
    pub fn text(self, json: &str) -> Cow<'_, str> {
        let text = self.of(json);
        // `Cursor::string` lets no invalid escape pass.
        match self.is_escaped().then(|| unescape(text)).flatten() {
            Some(plain) => Cow::Owned(plain),
            None => Cow::Borrowed(text),
        }
    }
}

/// The text without its escapes; `None` if one of them is not valid.
fn unescape(text: &str) -> Option<String> {
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

/// The whole number of 64 bits that a text begins with, and what follows it.
#[inline]
pub fn integer(text: &[u8]) -> Option<(i64, &[u8])> {
    // Any number with at most this many digits fits.
    const SURE: usize = 18;
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (mut number, mut rest) = (0_i64, digits);
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        number = number
            .wrapping_mul(10)
            .wrapping_add(i64::from(digit - b'0'));
        rest = after;
    }
    let length = digits.len() - rest.len();
    let leading_zero = length > 1 && digits.first() == Some(&b'0');
    if length == 0 || leading_zero || matches!(rest, [b'.' | b'e' | b'E', ..]) {
        return None;
    }
    if length > SURE {
        let whole = str::from_utf8(text.get(..text.len() - rest.len())?);
        return Some((whole.ok()?.parse().ok()?, rest));
    }
    Some((if negative { -number } else { number }, rest))
}
