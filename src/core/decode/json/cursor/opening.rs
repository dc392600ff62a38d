//! The most likely next member of an object, recognised at once.

use super::{Cursor, STEP};

/// The longest opening, in words of eight bytes.
const WORDS: usize = 3;

/// How a member most likely begins, including the byte before it: a brace or a comma, the key, a
/// colon. Up to 24 bytes, compared in words of eight because this comparison is hot.
#[derive(Debug)]
pub struct Opening {
    length: usize,
    words: [u64; WORDS],
    /// The bytes that count, which exclude the one before the key.
    masks: [u64; WORDS],
}

impl Opening {
    /// `text` is the quoted key and the colon.
    pub const fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let length = bytes.len() + 1;
        assert!(length <= WORDS * STEP);
        let [first, middle, last] = [word(bytes, 0), word(bytes, STEP), word(bytes, 2 * STEP)];
        Self {
            length,
            words: [first.0, middle.0, last.0],
            masks: [first.1, middle.1, last.1],
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
        let rest = self.text.get(self.at..);
        let Some(next) = rest.and_then(|rest| rest.first_chunk::<{ WORDS * STEP }>()) else {
            return false;
        };
        let (words, _) = next.as_chunks::<STEP>();
        let expected = opening.words.iter().zip(&opening.masks);
        let differences = words
            .iter()
            .zip(expected)
            .fold(0, |found, (word, (as_likely, mask))| {
                found | ((u64::from_le_bytes(*word) ^ as_likely) & mask)
            });
        let found = differences == 0;
        if found {
            self.at += opening.length;
        }
        found
    }
}
