//! A cursor over JSON text. Strings and values are spans of the text; `None` means that what follows
//! is something else, or no JSON.

mod scalar;
mod special;

pub use self::scalar::Span;
use super::{ESCAPE_LENGTH, escaped_unit};

/// Longer texts have no spans.
pub const LONGEST: usize = 1 << 31;

/// A position in a JSON text: what follows it. The methods that all rows need are inlined, and the
/// others work on a copy, so that the position can stay in registers.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Cursor<'a> {
    /// `None` if the text is too long for spans.
    pub fn new(json: &'a str) -> Option<Self> {
        (json.len() < LONGEST).then_some(Self {
            rest: json.as_bytes(),
            length: json.len(),
        })
    }

    #[inline(always)]
    pub fn at(&self) -> usize {
        self.length - self.rest.len()
    }

    /// The next byte; at the end 0, which never occurs in JSON.
    #[inline(always)]
    pub fn peek(&self) -> u8 {
        self.rest.first().copied().unwrap_or(0)
    }

    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline(always)]
    pub fn space(&mut self) {
        if self.peek() <= b' ' {
            self.skip_space();
        }
    }

    #[inline(always)]
    fn skip_space(&mut self) {
        while let [b' ' | b'\n' | b'\t' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    #[inline(always)]
    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.rest.split_first()?;
        (*first == byte).then(|| self.rest = rest)
    }

    /// Of a length that the compiler knows, which saves a call.
    #[inline(always)]
    fn word<const N: usize>(&mut self, word: &[u8; N]) -> Option<()> {
        let (next, rest) = self.rest.split_first_chunk::<N>()?;
        (next == word).then(|| self.rest = rest)
    }

    /// Consumes a null, if it is next.
    #[inline(always)]
    pub fn null(&mut self) -> bool {
        self.peek() == b'n' && self.word(b"null").is_some()
    }

    #[inline(always)]
    pub fn boolean(&mut self) -> Option<bool> {
        match self.word(b"true") {
            Some(()) => Some(true),
            None => self.word(b"false").map(|()| false),
        }
    }

    /// A whole number of 64 bits.
    #[inline(always)]
    pub fn integer(&mut self) -> Option<i64> {
        let (number, rest) = scalar::integer(self.rest)?;
        self.rest = rest;
        Some(number)
    }

    /// A string; the span excludes the quotes.
    #[inline(always)]
    pub fn string(&mut self) -> Option<Span> {
        self.take(b'"')?;
        let from = self.at();
        while let Some((chunk, after)) = self.rest.split_first_chunk() {
            let Some(special) = special::first(chunk) else {
                self.rest = after;
                continue;
            };
            let Some([b'"', after @ ..]) = self.rest.get(special..) else {
                break;
            };
            self.rest = after;
            return Some(Span::new(from, self.at() - 1, false));
        }
        let (span, rest) = self.rest_of_string(from)?;
        self.rest = rest;
        Some(span)
    }

    /// The string that began at `from`, of which the bytes before this position are plain, and what
    /// follows it.
    #[inline(never)]
    fn rest_of_string(mut self, from: usize) -> Option<(Span, &'a [u8])> {
        let mut escaped = false;
        loop {
            self.skip_to_special();
            match self.rest {
                [b'"', rest @ ..] => return Some((Span::new(from, self.at(), escaped), rest)),
                [b'\\', ..] => {
                    escaped = true;
                    // In many scripts one escape follows another.
                    while self.peek() == b'\\' {
                        self.escape()?;
                    }
                }
                _ => return None,
            }
        }
    }

    /// Advances to the next quote, backslash or control character.
    #[inline]
    fn skip_to_special(&mut self) {
        while let Some((chunk, after)) = self.rest.split_first_chunk() {
            if let Some(special) = special::first(chunk) {
                self.rest = self.rest.get(special..).unwrap_or_default();
                return;
            }
            self.rest = after;
        }
        while let [byte, rest @ ..] = self.rest
            && !special::is_special(*byte)
        {
            self.rest = rest;
        }
    }

    /// The bytes between a quote and another one, `N` bytes later; the caller checks that they are
    /// plain text.
    #[inline(always)]
    pub fn short_string<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let quoted = self.rest.strip_prefix(b"\"")?;
        let (bytes, quoted) = quoted.split_first_chunk::<N>()?;
        self.rest = quoted.strip_prefix(b"\"")?;
        Some(bytes)
    }

    #[inline]
    fn escape(&mut self) -> Option<()> {
        let length = match self.rest.get(1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => match escaped_unit(self.rest, 0)? {
                0xD800..=0xDBFF => match escaped_unit(self.rest, ESCAPE_LENGTH)? {
                    0xDC00..=0xDFFF => 2 * ESCAPE_LENGTH,
                    _ => return None,
                },
                0xDC00..=0xDFFF => return None,
                _ => ESCAPE_LENGTH,
            },
            _ => return None,
        };
        self.rest = self.rest.get(length..)?;
        Some(())
    }

    /// Consumes the brace that opens an object; returns whether members follow.
    #[inline(always)]
    pub fn opens_object(&mut self) -> Option<bool> {
        self.take(b'{')?;
        self.space();
        Some(self.take(b'}').is_none())
    }

    /// Consumes what follows a member; returns whether it was the last one.
    #[inline(always)]
    pub fn closes_object(&mut self) -> Option<bool> {
        // Most services send no white space: without looking for it here and at the colon, a message
        // takes 63 instructions less.
        if self.chunk() == Some(b",\"") {
            self.take(b',')?;
            return Some(false);
        }
        self.space();
        if self.take(b',').is_some() {
            self.space();
            return Some(false);
        }
        self.take(b'}').map(|()| true)
    }

    /// What is between a key and its value.
    #[inline(always)]
    pub fn colon(&mut self) -> Option<()> {
        if self.take(b':').is_none() {
            self.space();
            self.take(b':')?;
        }
        self.space();
        Some(())
    }

    /// Consumes this key, which ends with its colon, and what is before its value, if it is next.
    #[inline(always)]
    pub fn passes_key(&mut self, key: &[u8]) -> bool {
        let passes = self.passes(key) || self.passes_key_before_space(key);
        if passes {
            self.space();
        }
        passes
    }

    /// Few services send white space before a colon.
    fn passes_key_before_space(&mut self, key: &[u8]) -> bool {
        let mut next = *self;
        let passes = key.strip_suffix(b":").is_some_and(|quoted| {
            next.passes(quoted) && {
                next.space();
                next.take(b':').is_some()
            }
        });
        if passes {
            *self = next;
        }
        passes
    }

    /// A key and its colon.
    #[inline]
    pub fn key(&mut self) -> Option<Span> {
        let key = self.string()?;
        self.colon()?;
        Some(key)
    }

    /// The next bytes, which are not consumed; `None` if there are fewer.
    #[inline(always)]
    pub fn chunk<const N: usize>(&self) -> Option<&'a [u8; N]> {
        self.rest.first_chunk()
    }

    /// Consumes these bytes, if they are next.
    #[inline(always)]
    pub fn passes(&mut self, bytes: &[u8]) -> bool {
        let after = self.rest.strip_prefix(bytes);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    /// Parses an object: `member` is called with each key and consumes its value.
    pub fn object(&mut self, mut member: impl FnMut(&mut Self, Span) -> Option<()>) -> Option<()> {
        if !self.opens_object()? {
            return Some(());
        }
        loop {
            let key = self.key()?;
            member(self, key)?;
            if self.closes_object()? {
                return Some(());
            }
        }
    }

    /// Parses an array; `item` consumes each item.
    #[inline]
    pub fn array(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if !self.opens_array()? {
            return Some(());
        }
        loop {
            item(self)?;
            if self.closes_array()? {
                return Some(());
            }
        }
    }

    /// Consumes the bracket that opens an array; returns whether items follow.
    #[inline(always)]
    fn opens_array(&mut self) -> Option<bool> {
        self.take(b'[')?;
        self.space();
        Some(self.take(b']').is_none())
    }

    /// Consumes what follows an item; returns whether it was the last one.
    #[inline(always)]
    fn closes_array(&mut self) -> Option<bool> {
        self.space();
        if self.take(b',').is_some() {
            self.space();
            return Some(false);
        }
        self.take(b']').map(|()| true)
    }

    /// Any value.
    #[inline(always)]
    pub fn value(&mut self) -> Option<Span> {
        let from = self.at();
        self.rest = self.after_value()?;
        Some(Span::new(from, self.at(), false))
    }

    /// Any depth of nesting: a list of the open brackets, not the stack, grows with it.
    fn after_value(mut self) -> Option<&'a [u8]> {
        let mut in_object = Vec::new();
        loop {
            match self.peek() {
                b'"' => self.string().map(|_| ())?,
                b'{' => {
                    if self.opens_object()? {
                        self.key()?;
                        in_object.push(true);
                        continue;
                    }
                }
                b'[' => {
                    if self.opens_array()? {
                        in_object.push(false);
                        continue;
                    }
                }
                b't' | b'f' => self.boolean().map(|_| ())?,
                b'n' => self.word(b"null")?,
                _ => self.number()?,
            }
            // A value has ended, and perhaps those that contain it.
            loop {
                let ends = match in_object.last() {
                    None => return Some(self.rest),
                    Some(true) => self.closes_object()?,
                    Some(false) => self.closes_array()?,
                };
                if !ends {
                    break;
                }
                in_object.pop();
            }
            if in_object.last() == Some(&true) {
                self.key()?;
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.take(b'-');
        if self.take(b'0').is_none() {
            self.digits()?;
        }
        if self.take(b'.').is_some() {
            self.digits()?;
        }
        if let [b'e' | b'E', rest @ ..] = self.rest {
            self.rest = rest;
            if let [b'+' | b'-', rest @ ..] = self.rest {
                self.rest = rest;
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let first = self.rest.len();
        while let [b'0'..=b'9', rest @ ..] = self.rest {
            self.rest = rest;
        }
        (self.rest.len() < first).then_some(())
    }
}
