//! A column of texts, appended a page at a time.

#![allow(unsafe_code)]

use std::iter;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field};

use super::column::{Column, Several};
use super::spare::Spare;
use crate::decode::json::Joined;
use crate::decode::json::cursor::Span;

/// Does what arrow's `StringBuilder` does, which takes texts one by one: that took 150 instructions a
/// message more (`make bench-decode`).
pub struct Texts {
    /// The texts, one after the other.
    texts: Joined,
    /// A zero, and where each text ends.
    ends: Vec<i32>,
    present: NullBufferBuilder,
    spare: Spare,
}

impl Texts {
    fn with_room(rows: usize, bytes: usize, spare: Spare) -> Self {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        Self {
            texts: Joined::within(spare.with_room(bytes)),
            ends,
            present: NullBufferBuilder::new(rows),
            spare,
        }
    }

    #[inline]
    pub fn extend<'r>(&mut self, page: &str, texts: impl Several<&'r Option<Span>>) {
        let rows = texts.len();
        // Most columns have no null, or nothing else, in the rows of a page.
        let present = texts.clone().filter(|text| text.is_some()).count();
        if present == 0 {
            self.present.append_n_nulls(rows);
            let end = self.texts.end() as i32;
            return self.ends.extend(iter::repeat_n(end, rows));
        }
        if present == rows {
            self.present.append_n_non_nulls(rows);
        } else {
            let present: Vec<bool> = texts.clone().map(Option::is_some).collect();
            self.present.append_slice(&present);
        }
        let all = &mut self.texts;
        self.ends.extend(texts.map(|text| {
            if let Some(text) = text {
                text.append_to(all, page);
            }
            // `finish_into` refuses texts that are longer.
            all.end() as i32
        }));
    }
}

impl Column for Texts {
    fn empty() -> Self {
        Self::with_room(0, 0, Spare::default())
    }

    fn describe(name: &str, nullable: bool, fields: &mut Vec<Field>) {
        fields.push(Field::new(name, DataType::Utf8, nullable));
    }

    fn finish_into(&mut self, arrays: &mut Vec<ArrayRef>) -> Result<(), ArrowError> {
        let (rows, bytes) = (self.ends.len() - 1, self.texts.end());
        let spare = std::mem::take(&mut self.spare);
        let room = Self::with_room(rows, bytes, spare);
        let Self {
            texts,
            ends,
            present,
            ..
        } = std::mem::replace(self, room);
        if i32::try_from(bytes).is_err() {
            return Err(ArrowError::OffsetOverflowError(bytes));
        }
        // SAFETY: the ends begin with 0 and never decrease, because texts are only appended, and
        // their total was found to be within their type.
        let offsets = unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(ends)) };
        let values = self.spare.lend(texts.into_bytes());
        // SAFETY: `Joined` is valid UTF-8 up to the end of each text, and each row has one null bit.
        let array = unsafe { StringArray::new_unchecked(offsets, values, present.build()) };
        arrays.push(Arc::new(array));
        Ok(())
    }
}
