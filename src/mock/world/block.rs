//! Consecutive rows rendered as one text, so that a page is a few slices of it.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

/// The most rows in a block.
pub const BLOCK: u64 = 64;

/// Consecutive rows, each followed by a comma.
#[derive(Clone, Debug)]
pub struct Block {
    text: Bytes,
    /// The position of each row's comma.
    commas: Arc<[usize]>,
}

impl Block {
    /// Renders rows one after the other, each by one call of `write`.
    pub fn written(rows: Range<u64>, mut write: impl FnMut(u64, &mut Vec<u8>)) -> Self {
        let mut text = Vec::new();
        let commas = rows.map(|row| {
            write(row, &mut text);
            let comma = text.len();
            text.push(b',');
            comma
        });
        let commas = commas.collect();
        // The cache counts a block by its length, so it must not hold more than that.
        text.shrink_to_fit();
        Self {
            text: Bytes::from(text),
            commas,
        }
    }

    /// The rows `places` with their commas; empty if they do not exist.
    pub fn rows(&self, places: Range<u64>) -> Bytes {
        let end = |place: u64| self.commas.get(place as usize).copied();
        let start = places
            .start
            .checked_sub(1)
            .map_or(Some(0), |before| end(before).map(|comma| comma + 1));
        let stop = places.end.checked_sub(1).and_then(end);
        match (start, stop) {
            (Some(start), Some(stop)) if start <= stop => self.text.slice(start..=stop),
            _ => Bytes::new(),
        }
    }

    /// One row without its comma; empty if it does not exist.
    pub fn row(&self, place: u64) -> Bytes {
        let mut row = self.rows(place..place + 1);
        row.truncate(row.len().saturating_sub(1));
        row
    }

    /// All rows, each followed by a comma.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Its approximate memory use, in bytes.
    pub fn weight(&self) -> u64 {
        (self.text.len() + size_of_val(&*self.commas) + 2 * size_of::<Self>()) as u64
    }
}

/// The block of row `row`: at most [`BLOCK`] rows, and none from both sides of `first`, the initial
/// number of rows; blocks past it may extend beyond the list.
pub const fn span(row: u64, first: u64) -> Range<u64> {
    let start = row - row % BLOCK;
    let end = start + BLOCK;
    if end <= first || first <= start {
        start..end
    } else if row < first {
        start..first
    } else {
        first..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_block_gives_its_rows(texts in prop::collection::vec("[a-z]{1,9}", 1..64), a: u64, b: u64) {
            let write = |row: u64, out: &mut Vec<u8>| {
                out.extend_from_slice(texts.get(row as usize).map_or(b"", |text| text.as_bytes()));
            };
            let count = texts.len() as u64;
            let block = Block::written(0..count, write);
            let (a, b) = (a % count, b % count);
            let (start, end) = (a.min(b), a.max(b) + 1);
            let part = texts.get(start as usize..end as usize).unwrap_or_default();
            let expected: String = part.iter().map(|text| format!("{text},")).collect();
            prop_assert_eq!(block.rows(start..end), expected.as_bytes());
            let expected = texts.get(a as usize).map(String::as_bytes);
            prop_assert_eq!(Some(&*block.row(a)), expected);
            prop_assert!(block.row(count).is_empty());
        }

        #[test]
        fn every_row_is_in_one_block(first in 0_u64..300) {
            let mut row = 0;
            while row < 400 {
                let block = span(row, first);
                prop_assert_eq!(block.start, row);
                prop_assert!(block.end > row && block.end <= row + BLOCK);
                prop_assert!(!(block.start < first && block.end > first));
                for inside in block.clone() {
                    prop_assert_eq!(span(inside, first), block.clone());
                }
                row = block.end;
            }
        }
    }
}
