//! Lists with removed rows: which row is at which position.

use std::ops::Range;

use super::draw::Digest;
use super::sorted::Sorted;

/// The numbers of removed rows; the other rows close up.
#[derive(Clone, Debug, Default)]
pub struct RemovedRows {
    removed: Sorted<()>,
}

/// A list of rows `0..end` without the removed ones.
#[derive(Clone, Copy, Debug)]
pub struct RemainingRows<'removed> {
    /// `None` until a row is removed.
    pub removed: Option<&'removed RemovedRows>,
    pub end: u64,
}

impl RemovedRows {
    /// How many were removed.
    pub fn len(&self) -> u64 {
        self.removed.len() as u64
    }

    /// Whether row `number` was removed.
    pub fn has(&self, number: u64) -> bool {
        self.removed.get(number).is_some()
    }

    /// Removes row `number`.
    pub fn insert(&mut self, number: u64) {
        self.removed.update(number, |()| {});
    }

    /// How many of the removed rows come before `number`.
    fn before(&self, number: u64) -> u64 {
        self.removed.count(|_, removed| removed < number) as u64
    }

    /// The row that is now at `position`.
    fn row(&self, position: u64) -> u64 {
        let before = self
            .removed
            .count(|rank, removed| removed - rank <= position);
        position.saturating_add(before as u64)
    }

    /// The first of the removed rows from `number` on.
    fn next(&self, number: u64) -> Option<u64> {
        let (removed, ()) = self.removed.range(number..u64::MAX).next()?;
        Some(removed)
    }

    /// Adds the row numbers to a fingerprint.
    pub fn digest(&self, digest: &mut Digest) {
        digest.number(self.len());
        for (number, ()) in self.removed.iter() {
            digest.number(number);
        }
    }
}

impl RemainingRows<'_> {
    /// How many rows are left.
    pub fn len(&self) -> u64 {
        self.end - self.removed.map_or(0, RemovedRows::len)
    }

    /// Whether row `number` is left.
    pub fn has(&self, number: u64) -> bool {
        number < self.end && !self.removed.is_some_and(|removed| removed.has(number))
    }

    /// The row at `position`.
    pub fn row(&self, position: u64) -> Option<u64> {
        let row = self
            .removed
            .map_or(position, |removed| removed.row(position));
        (row < self.end).then_some(row)
    }

    /// The position of row `number`.
    pub fn position(&self, number: u64) -> Option<u64> {
        self.has(number)
            .then(|| number - self.removed.map_or(0, |removed| removed.before(number)))
    }

    /// The consecutive rows from `position` on, at most `limit` of them.
    pub fn run(&self, position: u64, limit: u64) -> Option<Range<u64>> {
        let start = self.row(position).filter(|_| limit > 0)?;
        let end = self.end.min(start.saturating_add(limit));
        let gap = self.removed.and_then(|removed| removed.next(start));
        Some(start..gap.map_or(end, |gap| gap.min(end)))
    }

    /// All remaining rows, in order.
    pub fn rows(self) -> impl Iterator<Item = u64> {
        let mut position = 0;
        std::iter::from_fn(move || {
            let run = self.run(position, u64::MAX)?;
            position += run.end - run.start;
            Some(run)
        })
        .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_list_with_gaps_reads_like_a_plain_one(
            removed in prop::collection::vec(0_u64..60, 0..50), limit in 0_u64..70,
        ) {
            let mut gaps = RemovedRows::default();
            let mut out = BTreeSet::new();
            for number in removed {
                gaps.insert(number);
                out.insert(number);
            }
            let plain: Vec<u64> = (0..60).filter(|number| !out.contains(number)).collect();
            let list = RemainingRows { removed: Some(&gaps), end: 60 };
            prop_assert_eq!(list.len(), plain.len() as u64);
            prop_assert_eq!(list.rows().collect::<Vec<u64>>(), plain.clone());
            for position in 0..61 {
                let row = plain.get(position as usize).copied();
                prop_assert_eq!(list.row(position), row);
                let place = plain.iter().position(|number| *number == position);
                prop_assert_eq!(list.position(position), place.map(|place| place as u64));
                let run = list.run(position, limit).unwrap_or_default();
                let expected = plain.iter().skip(position as usize).copied();
                let expected = expected
                    .zip(row.unwrap_or_default()..)
                    .take_while(|(left, right)| left == right)
                    .take(limit as usize);
                prop_assert_eq!(
                    run.collect::<Vec<u64>>(),
                    expected.map(|(left, _)| left).collect::<Vec<u64>>()
                );
            }
        }
    }
}
