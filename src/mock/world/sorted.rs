//! Sorted numbers in pieces that copies share: a journal holds thousands of instants of a
//! constantly changing world, and each must not take as much memory as the whole.

use std::ops::Range;
use std::sync::Arc;

/// The most numbers in one piece.
const PIECE: usize = 128;

/// A sorted map with numbers as keys. A copy costs one pointer per piece, and the next change
/// copies one piece.
#[derive(Clone, Debug)]
pub struct Sorted<Value> {
    /// None of them is empty.
    pieces: Vec<Piece<Value>>,
}

#[derive(Clone, Debug)]
struct Piece<Value> {
    /// How many numbers the previous pieces have.
    before: usize,
    entries: Arc<Vec<(u64, Value)>>,
}

impl<Value> Default for Sorted<Value> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<Value> Sorted<Value> {
    pub fn len(&self) -> usize {
        let last = self.pieces.last();
        last.map_or(0, |piece| piece.before + piece.entries.len())
    }

    pub const fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn get(&self, number: u64) -> Option<&Value> {
        let (piece, place) = self.find(number).ok()?;
        let (_, value) = self.pieces.get(piece)?.entries.get(place)?;
        Some(value)
    }

    /// The length of the prefix for which `is_before(rank, number)` holds; it must hold for a
    /// number if it does for a later one.
    pub fn count(&self, is_before: impl Fn(u64, u64) -> bool) -> usize {
        let starts = |piece: &Piece<Value>| {
            let first = piece.entries.first();
            first.is_some_and(|(number, _)| is_before(piece.before as u64, *number))
        };
        let Some(reached) = self.pieces.partition_point(starts).checked_sub(1) else {
            return 0;
        };
        self.pieces.get(reached).map_or(0, |piece| {
            let (mut low, mut high) = (0, piece.entries.len());
            while low < high {
                let middle = low.midpoint(high);
                let entry = piece.entries.get(middle);
                let rank = (piece.before + middle) as u64;
                if entry.is_some_and(|(number, _)| is_before(rank, *number)) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            piece.before + low
        })
    }

    /// The numbers in a range, with their values.
    pub fn range(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Value)> {
        let (piece, place) = self.find(range.start).unwrap_or_else(|place| place);
        let pieces = self.pieces.iter().skip(piece).enumerate();
        pieces
            .flat_map(move |(number, piece)| {
                let skipped = if number == 0 { place } else { 0 };
                piece.entries.iter().skip(skipped)
            })
            .map(|(number, value)| (*number, value))
            .take_while(move |(number, _)| *number < range.end)
    }

    /// All numbers, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Value)> {
        let entries = self.pieces.iter().flat_map(|piece| piece.entries.iter());
        entries.map(|(number, value)| (*number, value))
    }

    /// The piece and index of a number; as an error, where it would be inserted.
    fn find(&self, number: u64) -> Result<(usize, usize), (usize, usize)> {
        let starts = |piece: &Piece<Value>| {
            let first = piece.entries.first();
            first.is_some_and(|(first, _)| *first <= number)
        };
        let piece = self.pieces.partition_point(starts).saturating_sub(1);
        let entries = self.pieces.get(piece).map(|piece| &*piece.entries);
        let found = entries.map_or(Err(0), |entries| {
            entries.binary_search_by_key(&number, |(number, _)| *number)
        });
        found
            .map(|place| (piece, place))
            .map_err(|place| (piece, place))
    }
}

impl<Value: Clone + Default> Sorted<Value> {
    /// Changes the value of a number, which is inserted if missing.
    pub fn update(&mut self, number: u64, change: impl FnOnce(&mut Value)) {
        let found = self.find(number);
        let (at, _) = found.unwrap_or_else(|place| place);
        let Some(piece) = self.pieces.get_mut(at) else {
            let mut value = Value::default();
            change(&mut value);
            return self.pieces.push(Piece {
                before: 0,
                entries: Arc::new(vec![(number, value)]),
            });
        };
        let entries = Arc::make_mut(&mut piece.entries);
        match found {
            Ok((_, place)) => {
                if let Some((_, value)) = entries.get_mut(place) {
                    change(value);
                }
            }
            Err((_, place)) => {
                let mut value = Value::default();
                change(&mut value);
                entries.insert(place, (number, value));
                if entries.len() > PIECE {
                    let entries = Arc::new(entries.split_off(PIECE / 2));
                    self.pieces.insert(at + 1, Piece { before: 0, entries });
                }
                self.count_from(at);
            }
        }
    }

    /// Removes a number; false if it did not exist.
    pub fn remove(&mut self, number: u64) -> bool {
        let Ok((at, place)) = self.find(number) else {
            return false;
        };
        let Some(piece) = self.pieces.get_mut(at) else {
            return false;
        };
        let entries = Arc::make_mut(&mut piece.entries);
        entries.remove(place);
        if entries.is_empty() {
            self.pieces.remove(at);
        }
        self.count_from(at);
        true
    }

    /// Recounts the numbers before each piece from `at` on.
    fn count_from(&mut self, at: usize) {
        let pieces = self.pieces.get(..at).and_then(<[_]>::last);
        let mut before = pieces.map_or(0, |piece| piece.before + piece.entries.len());
        for piece in self.pieces.iter_mut().skip(at) {
            piece.before = before;
            before += piece.entries.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn it_holds_what_a_plain_map_holds(
            changes in prop::collection::vec((0_u64..1500, 0_u8..4), 0..1200),
        ) {
            let (mut sorted, mut plain) = (Sorted::<u8>::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for (number, change) in changes {
                if change == 0 {
                    prop_assert_eq!(sorted.remove(number), plain.remove(&number).is_some());
                } else {
                    sorted.update(number, |value| *value += change);
                    *plain.entry(number).or_default() += change;
                }
                if number % 200 == 0 {
                    copies.push((sorted.clone(), plain.clone()));
                }
            }
            copies.push((sorted, plain));
            for (sorted, plain) in copies {
                prop_assert_eq!((sorted.len(), sorted.is_empty()), (plain.len(), plain.is_empty()));
                let all: Vec<(u64, u8)> = plain.iter().map(|(key, value)| (*key, *value)).collect();
                let copied = |(number, value): (u64, &u8)| (number, *value);
                prop_assert_eq!(sorted.iter().map(copied).collect::<Vec<_>>(), all);
                for number in (0..1500).step_by(37) {
                    prop_assert_eq!(sorted.get(number), plain.get(&number));
                    let before = plain.range(..number).count();
                    prop_assert_eq!(sorted.count(|_, other| other < number), before);
                    prop_assert_eq!(sorted.count(|rank, _| rank < number), plain.len().min(number as usize));
                    let part = plain.range(number..number + 99).map(|(key, value)| (*key, *value));
                    let range = sorted.range(number..number + 99).map(copied);
                    prop_assert_eq!(range.collect::<Vec<_>>(), part.collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn copies_share_all_but_what_was_changed() {
        let mut sorted = Sorted::<()>::default();
        for number in 0..10_000 {
            sorted.update(number, |()| {});
        }
        let copy = sorted.clone();
        sorted.remove(5_000);
        let own = sorted.pieces.iter().zip(&copy.pieces);
        let own = own.filter(|(left, right)| !Arc::ptr_eq(&left.entries, &right.entries));
        assert_eq!(own.count(), 1);
    }
}
