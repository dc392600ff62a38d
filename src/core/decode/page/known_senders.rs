//! Senders that recur in a page: what was scanned of one is copied where its text comes again, which
//! takes 400 instructions a message less.

use crate::decode::json::cursor::Cursor;

/// A conversation has its user and a few operators.
const PLACES: usize = 8;
/// Bytes that tell most senders apart: `{"id":` and an id.
const START: usize = 16;

#[derive(Default)]
pub(super) struct KnownSenders<'a, S> {
    places: [Option<Known<'a, S>>; PLACES],
    next: usize,
}

struct Known<'a, S> {
    start: [u8; START],
    text: &'a str,
    scanned: S,
}

impl<'a, S: Clone> KnownSenders<'a, S> {
    /// What was scanned of the text that is next, which is consumed.
    #[inline(always)]
    pub fn next(&self, cursor: &mut Cursor<'_>) -> Option<S> {
        let start = cursor.chunk()?;
        let mut places = self.places.iter().flatten();
        let known =
            places.find(|known| known.start == *start && cursor.passes(known.text.as_bytes()))?;
        Some(known.scanned.clone())
    }

    /// Keeps what was scanned of `text`, in the place of the one that was kept first.
    #[inline]
    pub fn keep(&mut self, text: &'a str, scanned: S) {
        if let Some(start) = text.as_bytes().first_chunk()
            && let Some(place) = self.places.get_mut(self.next)
        {
            *place = Some(Known {
                start: *start,
                text,
                scanned,
            });
            self.next = (self.next + 1) % PLACES;
        }
    }
}
