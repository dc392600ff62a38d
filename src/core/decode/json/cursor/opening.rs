//! The most likely next member of an object, recognised at once.

use super::{Cursor, STEP};

/// How a member most likely begins, including the byte before it: a brace or a comma, the key, a
/// colon. Up to 24 bytes, compared in words of eight because this comparison is hot.
#[derive(Debug)]
pub struct Opening {
    length: usize,
    /// The mask of the first bytes that count, which excludes the one before the key.
    mask: u64,
    first: u64,
    middle: u64,
    last: u64,
}

impl Opening {
    /// `text` is the quoted key and the colon.
    pub const fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let length = bytes.len() + 1;
        assert!(length <= 3 * STEP);
        let (first, mask) = word(bytes, 0);
        Self {
            length,
            mask,
            first,
            middle: word(bytes, STEP).0,
            last: word(bytes, length.saturating_sub(STEP)).0,
        }
    }
}

/// Up to eight bytes of an opening from `start`, and a mask of those that exist.
#[allow(clippy::indexing_slicing)] // in bounds, and evaluated at compile time
const fn word(bytes: &[u8], start: usize) -> (u64, u64) {
    let (mut word, mut mask, mut byte) = (0, 0, 0);
    while byte < STEP {
        let at = start + byte;
        if at > 0 && at <= bytes.len() {
            word |= (bytes[at - 1] as u64) << (byte * 8);
            mask |= 0xff << (byte * 8);
        }
        byte += 1;
    }
    (word, mask)
}

impl Cursor<'_> {
    /// Consumes an opening, if it is next; never matches near the end of the text.
    #[inline(always)]
    pub fn passes_opening(&mut self, opening: &Opening) -> bool {
        let length = opening.length;
        let found = self
            .word_at(0)
            .is_some_and(|word| word & opening.mask == opening.first)
            && (length <= STEP || self.word_at(length - STEP) == Some(opening.last))
            && (length <= 2 * STEP || self.word_at(STEP) == Some(opening.middle));
        if found {
            self.at += length;
        }
        found
    }
}
