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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_known_by_its_whole_text() {
        let mut known = KnownSenders::default();
        known.keep(r#"{"id":1,"name":"Ada"}"#, 1);
        for (text, rest) in [
            (r#"{"id":1,"name":"Ada"},"id":2"#, Some(r#","id":2"#)),
            (r#"{"id":1,"name":"Adam"}"#, None),
            (r#"{"id":1,"name":"Ada" }"#, None),
            (r#"{"id":1,"name":"Ada""#, None),
            (r#"{"id":1}"#, None),
            ("", None),
            ("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", None),
        ] {
            let mut cursor = Cursor::new(text).unwrap();
            assert_eq!(known.next(&mut cursor), rest.map(|_| 1));
            let at = rest.map_or(0, |rest| text.len() - rest.len());
            assert_eq!(cursor.at(), at, "{text}");
        }
    }

    #[test]
    fn so_many_senders_are_known() {
        let texts: Vec<String> = (0..=PLACES)
            .map(|id| format!(r#"{{"id":{id},"name":"A name"}}"#))
            .collect();
        let mut known = KnownSenders::default();
        for (id, text) in texts.iter().enumerate() {
            known.keep(text, id);
        }
        let next = |text: &String| known.next(&mut Cursor::new(text).unwrap());
        let found: Vec<Option<usize>> = texts.iter().map(next).collect();
        let expected: Vec<Option<usize>> = (0..=PLACES).map(|id| (id > 0).then_some(id)).collect();
        assert_eq!(found, expected);
    }
}
