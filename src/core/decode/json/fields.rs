//! Parses objects with known field names that mostly come in the same order.

use super::cursor::{Cursor, Opening, Span};

/// A field's key, and the bytes that a member with it usually begins with.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub opening: Opening,
}

/// The keys of an object's known fields; a field's number is its index in the list.
macro_rules! keys {
    ($($name:literal),* $(,)?) => {
        [$($crate::core::decode::json::fields::Key {
            name: $name,
            opening: $crate::core::decode::json::cursor::Opening::new(concat!("\"", $name, "\":")),
        },)*]
    };
}
pub(crate) use keys;

/// The order of the fields in the previous object: most likely the next one has the same.
#[derive(Debug)]
pub struct Order<const N: usize>([usize; N]);

impl<const N: usize> Default for Order<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|place| place))
    }
}

/// The known fields that an object has.
#[derive(Debug, Default, Clone, Copy)]
pub struct Seen(u32);

impl Seen {
    pub fn has(self, field: usize) -> bool {
        self.0 & (1 << field) != 0
    }

    /// `None` for a repeated key: the last one wins, which is left to serde_json.
    #[inline]
    fn note(&mut self, field: usize) -> Option<()> {
        let first = !self.has(field);
        self.0 |= 1 << field;
        first.then_some(())
    }
}

/// A member found by `fields`.
#[derive(Debug, Clone, Copy)]
pub enum Found {
    Field(usize),
    /// A field with another name.
    Unknown(Span),
}

impl Cursor<'_> {
    /// Parses an object; `member` consumes each member's value.
    #[inline]
    pub fn fields<const N: usize>(
        &mut self,
        keys: &[Key; N],
        order: &mut Order<N>,
        mut member: impl FnMut(&mut Self, Found) -> Option<()>,
    ) -> Option<Seen> {
        let mut seen = Seen::default();
        let mut place = 0;
        if self.peek() != b'{' {
            return None;
        }
        // At the start of each iteration, the brace or a comma precedes the next member.
        loop {
            let likely = order.0.get(place).copied().unwrap_or(0);
            let as_likely = keys.get(likely)?;
            if self.passes_opening(&as_likely.opening) {
                self.space();
                seen.note(likely)?;
                member(self, Found::Field(likely))?;
            } else {
                self.pass_byte();
                self.space();
                if place == 0 && self.take(b'}').is_some() {
                    return Some(seen);
                }
                let (key, name) = self.key()?;
                let field = keys.iter().position(|key| key.name.as_bytes() == name);
                if let Some(field) = field {
                    seen.note(field)?;
                    if let Some(last) = order.0.get_mut(place) {
                        *last = field;
                    }
                }
                member(self, field.map_or(Found::Unknown(key), Found::Field))?;
            }
            place += 1;
            self.space();
            if self.peek() != b',' {
                return self.take(b'}').map(|()| seen);
            }
        }
    }
}
