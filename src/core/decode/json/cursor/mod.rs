//! A cursor over JSON text that accepts at most what serde_json accepts, and allocates nothing:
//! strings and values are spans of the text. `None` means that serde_json must decide.

mod opening;
mod span;
mod special;

pub use self::opening::Opening;
pub use self::span::Span;
use super::{ESCAPE_LENGTH, escaped_unit};

/// Deeper nested values are left to serde_json.
const DEEPEST: u32 = 60;

const STEP: usize = size_of::<u64>();

/// Longer texts have no spans.
pub const LONGEST: usize = 1 << 31;

/// A position in a JSON text.
#[derive(Debug)]
pub struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// `None` if the text is too long for spans.
    pub fn new(json: &'a str) -> Option<Self> {
        (json.len() < LONGEST).then_some(Self {
            text: json.as_bytes(),
            at: 0,
        })
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn go_back(&mut self, at: usize) {
        self.at = at;
    }

    /// The next byte; at the end 0, which never occurs in JSON.
    #[inline(always)]
    pub fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    pub(super) fn pass_byte(&mut self) {
        self.at += 1;
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    #[inline(always)]
    pub fn space(&mut self) {
        if self.peek() <= b' ' {
            self.skip_space();
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    #[inline(always)]
    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found.then_some(())
    }

    /// Of a length that the compiler knows, which saves a call.
    #[inline(always)]
    fn word<const N: usize>(&mut self, word: &[u8; N]) -> Option<()> {
        let next = self.text.get(self.at..)?.first_chunk::<N>()?;
        (next == word).then(|| self.at += N)
    }

    /// Consumes a null, if it is next.
    #[inline(always)]
    pub fn null(&mut self) -> bool {
        self.peek() == b'n' && self.word(b"null").is_some()
    }

    #[inline]
    pub fn boolean(&mut self) -> Option<bool> {
        match self.peek() {
            b't' => self.word(b"true").map(|()| true),
            _ => self.word(b"false").map(|()| false),
        }
    }

    /// A whole number as serde_json reads it; minus zero is not one.
    #[inline]
    pub fn integer(&mut self) -> Option<i64> {
        // So many digits fit for sure.
        const SURE: usize = 18;
        let negative = self.take(b'-').is_some();
        let first = self.at;
        let mut number: i64 = 0;
        for byte in self.text.get(first..)?.iter().take(SURE) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            number = number * 10 + i64::from(digit);
            self.at += 1;
        }
        while let digit @ b'0'..=b'9' = self.peek() {
            let digit = i64::from(digit - b'0');
            number = number.checked_mul(10)?.checked_add(digit)?;
            self.at += 1;
        }
        let digits = self.at - first;
        let leading_zero = digits > 1 && self.text.get(first) == Some(&b'0');
        if digits == 0 || leading_zero || matches!(self.peek(), b'.' | b'e' | b'E') {
            return None;
        }
        if !negative {
            Some(number)
        } else if number == 0 {
            None
        } else {
            Some(-number)
        }
    }

    /// A string; the span excludes the quotes.
    #[inline]
    pub fn string(&mut self) -> Option<Span> {
        self.take(b'"')?;
        let from = self.at;
        let mut escaped = false;
        loop {
            self.skip_to_special();
            match self.text.get(self.at)? {
                b'"' => {
                    let span = Span::new(from, self.at, escaped);
                    self.at += 1;
                    return Some(span);
                }
                b'\\' => {
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
        while let Some(chunk) = self.text.get(self.at..).and_then(|rest| rest.first_chunk()) {
            if let Some(special) = special::first(chunk) {
                self.at += special;
                return;
            }
            self.at += special::STEP;
        }
        while let Some(byte) = self.text.get(self.at)
            && !special::is_special(*byte)
        {
            self.at += 1;
        }
    }

    fn escape(&mut self) -> Option<()> {
        match self.text.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let units = match escaped_unit(self.text, self.at)? {
                    0xD800..=0xDBFF => match escaped_unit(self.text, self.at + ESCAPE_LENGTH)? {
                        0xDC00..=0xDFFF => 2,
                        _ => return None,
                    },
                    0xDC00..=0xDFFF => return None,
                    _ => 1,
                };
                self.at += units * ESCAPE_LENGTH;
            }
            _ => return None,
        }
        Some(())
    }

    /// Consumes the brace that opens an object; returns whether members follow.
    pub(super) fn opens_object(&mut self) -> Option<bool> {
        self.take(b'{')?;
        self.space();
        Some(self.take(b'}').is_none())
    }

    /// Consumes what follows a member; returns whether it was the last one.
    #[inline]
    pub(super) fn closes_object(&mut self) -> Option<bool> {
        self.space();
        if self.take(b',').is_some() {
            self.space();
            return Some(false);
        }
        self.take(b'}').map(|()| true)
    }

    /// A key without escapes, and its colon.
    #[inline]
    pub(super) fn key(&mut self) -> Option<(Span, &'a [u8])> {
        let key = self.string()?;
        if key.is_escaped() {
            return None;
        }
        self.space();
        self.take(b':')?;
        self.space();
        Some((key, self.text.get(key.from()..key.to())?))
    }

    /// Consumes these bytes, if they are next.
    #[inline]
    pub fn passes(&mut self, bytes: &[u8]) -> bool {
        let found = self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(bytes));
        if found {
            self.at += bytes.len();
        }
        found
    }

    /// Parses an object: `member` is called with each key and consumes its value.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a [u8]) -> Option<()>,
    ) -> Option<()> {
        if !self.opens_object()? {
            return Some(());
        }
        loop {
            let (_, name) = self.key()?;
            member(self, name)?;
            if self.closes_object()? {
                return Some(());
            }
        }
    }

    /// Parses an array; `item` consumes each item.
    #[inline]
    pub fn array(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(b'[')?;
        self.space();
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            self.space();
            if self.take(b',').is_none() {
                return self.take(b']');
            }
            self.space();
        }
    }

    /// Any value.
    pub fn value(&mut self) -> Option<Span> {
        let from = self.at;
        self.pass(0)?;
        Some(Span::new(from, self.at, false))
    }

    fn pass(&mut self, depth: u32) -> Option<()> {
        match self.peek() {
            b'"' => self.string().map(|_| ()),
            b'{' if depth < DEEPEST => self.pass_object(depth + 1),
            b'[' if depth < DEEPEST => self.array(|cursor| cursor.pass(depth + 1)),
            b't' | b'f' => self.boolean().map(|_| ()),
            b'n' => self.word(b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    // Not by `object`, because keys may have escapes here.
    fn pass_object(&mut self, depth: u32) -> Option<()> {
        if !self.opens_object()? {
            return Some(());
        }
        loop {
            self.string()?;
            self.space();
            self.take(b':')?;
            self.space();
            self.pass(depth)?;
            if self.closes_object()? {
                return Some(());
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
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let first = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        (self.at > first).then_some(())
    }
}

#[cfg(test)]
mod tests;
