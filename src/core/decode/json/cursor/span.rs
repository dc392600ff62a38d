//! Positions of strings and values in a text.

use std::borrow::Cow;
use std::num::NonZeroU32;

use super::super::unescape::unescape;
use super::LONGEST;

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
