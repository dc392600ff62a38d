//! Parses objects with known field names that mostly come in the same order.

use super::cursor::{Cursor, Opening, Span};

/// A field's key, and the bytes that a member with it usually begins with.
#[derive(Debug)]
pub struct Key<F> {
    pub field: F,
    pub name: &'static str,
    pub opening: Opening,
}

/// The order of the fields in the previous object: most likely the next one has the same.
#[derive(Debug)]
pub struct Order<const N: usize>([u8; N]);

impl<const N: usize> Default for Order<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|place| place as u8))
    }
}

/// The known fields that an object has, by their index among the keys.
#[derive(Debug, Default, Clone, Copy)]
pub struct Seen(u32);

impl Seen {
    pub fn has(self, field: usize) -> bool {
        self.0 & (1 << field) != 0
    }

    /// Whether there are no others than these.
    pub fn is_within(self, fields: u32) -> bool {
        self.0 & !fields == 0
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
pub enum Found<F> {
    Field(F),
    /// A field with another name.
    Unknown(Span),
}

impl Cursor<'_> {
    /// Parses an object; `member` consumes each member's value.
    #[inline]
    pub fn fields<F: Copy, const N: usize>(
        &mut self,
        keys: &[Key<F>; N],
        order: &mut Order<N>,
        mut member: impl FnMut(&mut Self, Found<F>) -> Option<()>,
    ) -> Option<Seen> {
        const { assert!(N <= u32::BITS as usize, "`Seen` has a bit for each field") };
        let mut seen = Seen::default();
        let mut place = 0;
        if self.peek() != b'{' {
            return None;
        }
        // At the start of each iteration, the brace or a comma precedes the next member.
        loop {
            let likely = usize::from(order.0.get(place).copied().unwrap_or(0));
            let as_likely = keys.get(likely)?;
            if self.passes_opening(&as_likely.opening) {
                self.space();
                seen.note(likely)?;
                member(self, Found::Field(as_likely.field))?;
            } else {
                self.pass_byte();
                self.space();
                if place == 0 && self.take(b'}').is_some() {
                    return Some(seen);
                }
                let (span, name) = self.key()?;
                let known = keys.iter().enumerate();
                let mut known = known.filter(|(_, key)| key.name.as_bytes() == name);
                let found = match known.next() {
                    None => Found::Unknown(span),
                    Some((index, key)) => {
                        seen.note(index)?;
                        if let Some(last) = order.0.get_mut(place) {
                            *last = index as u8;
                        }
                        Found::Field(key.field)
                    }
                };
                member(self, found)?;
            }
            place += 1;
            self.space();
            if self.peek() != b',' {
                return self.take(b'}').map(|()| seen);
            }
        }
    }
}
