//! Texts one after the other, as a column holds them.

use std::fmt;

use super::unescape::append_unescaped;

/// Joined texts: valid UTF-8, because only whole texts are appended. A `String` would check after
/// each step that it ends with a whole character.
#[derive(Debug, Default)]
pub struct Joined(Vec<u8>);

/// Bytes of most names and addresses.
const SHORT: usize = 32;

impl Joined {
    /// In this memory, which is empty.
    pub fn within(memory: Vec<u8>) -> Self {
        Self(memory)
    }

    /// Where the next text begins.
    pub fn end(&self) -> usize {
        self.0.len()
    }

    pub fn push(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends a part of a text; nothing if it is none.
    #[inline(always)]
    pub fn push_part(&mut self, whole: &str, from: usize, to: usize) {
        let part = whole.get(from..to).unwrap_or_default();
        let more = whole.as_bytes().get(from..).unwrap_or_default();
        // A copy of a length that the compiler knows needs no call.
        if part.len() <= SHORT
            && let Some(more) = more.first_chunk::<SHORT>()
        {
            let length = self.0.len() + part.len();
            self.0.extend_from_slice(more);
            self.0.truncate(length);
        } else {
            self.push(part);
        }
    }

    /// Appends a text without its escapes, or as it is if one of them is not valid.
    pub fn push_unescaped(&mut self, text: &str) {
        let before = self.0.len();
        self.0.reserve(text.len());
        if append_unescaped(self, text).is_none() {
            self.0.truncate(before);
            self.push(text);
        }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl fmt::Write for Joined {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }

    #[inline]
    fn write_char(&mut self, character: char) -> fmt::Result {
        let mut bytes = [0; 4];
        let length = self.0.len() + character.encode_utf8(&mut bytes).len();
        // All four, as in `push_part`.
        self.0.extend_from_slice(&bytes);
        self.0.truncate(length);
        Ok(())
    }
}
