//! Rows that are fetched by id: those that a later page did not show, and those that no page showed.
//!
//! PostgreSQL orders ties the same way each time it runs the same query, so passes stop finding
//! rows long before all are found: of 2,000 rows with five keys, a fourth pass finds at most one
//! row per request, a fifth hardly any. Where ids are dense, nearly every id between known ones
//! belongs to a missing row.

use std::collections::{BTreeSet, VecDeque};

use roaring::RoaringTreemap;

use super::super::row_order::content_of_text;
use super::checkpoint::Checkpoint;
use crate::api::Natural;

// The most vanished rows fetched by id in one walk.
const MOST_LOOKED_UP: usize = 16;
// Ids are dense if at least one in this many unknown ids should be a missing row.
const IDS_A_ROW: u64 = 4;
// Ids to look up before the results decide whether to continue.
const FIRST_LOOK_UPS: u64 = 16;

/// Rows that later pages did not show.
#[derive(Debug, Default)]
pub(super) struct LookUps {
    /// Ids to fetch, with the hash of their text.
    queue: VecDeque<(i64, Option<u64>)>,
    /// Ids that were or will be fetched.
    chosen: BTreeSet<i64>,
    /// Rows that are not fetched, because there are too many.
    skipped: RoaringTreemap,
    /// How many there were before the checkpoint that this resumes from.
    skipped_before: u64,
    /// The text hash that the row being fetched had.
    content_before: Option<u64>,
    /// Rows that are unchanged by id but no longer in their place.
    untraced_moves: u64,
    /// A message of another user was answered for this one.
    of_any_user: bool,
}

/// What the response for a vanished row says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Vanished {
    Gone,
    Moved,
}

impl LookUps {
    /// Queues rows that a page did not show. `content_of` is the text hash from their old place; a
    /// later page may show a row elsewhere with another text.
    pub fn note(&mut self, vanished: &[i64], content_of: impl Fn(i64) -> Option<u64>) {
        for id in vanished {
            if Natural::new("id", *id).is_err() || self.chosen.contains(id) {
                continue;
            }
            if self.chosen.len() < MOST_LOOKED_UP {
                self.chosen.insert(*id);
                self.queue.push_back((*id, content_of(*id)));
            } else {
                self.skipped.insert(id.cast_unsigned());
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The id to fetch next.
    pub fn next(&mut self) -> i64 {
        let (id, content) = self.queue.pop_front().unwrap_or_default();
        self.content_before = content;
        id
    }

    /// Takes the response for the id fetched last.
    pub fn take(&mut self, row: Option<&str>) -> Vanished {
        let Some(json) = row else {
            return Vanished::Gone;
        };
        let before = self.content_before;
        self.untraced_moves += u64::from(before.is_none_or(|hash| hash == content_of_text(json)));
        Vanished::Moved
    }

    pub fn note_another_users(&mut self) {
        self.of_any_user = true;
    }

    /// Whether what they find may belong to another user.
    pub fn are_of_any_user(&self) -> bool {
        self.of_any_user
    }

    pub fn untraced_moves(&self) -> u64 {
        self.untraced_moves
    }

    fn skipped(&self) -> u64 {
        self.skipped_before + self.skipped.len()
    }

    /// Vanished rows that were not fetched, unless as many as the total `fallen` by may be gone.
    pub fn unexplained(&self, fallen: u64) -> u64 {
        let vanished = self.chosen.len() as u64 + self.skipped();
        if fallen < vanished {
            self.skipped() + self.queue.len() as u64
        } else {
            0
        }
    }

    pub fn save(&self, checkpoint: &mut Checkpoint) {
        checkpoint.looked_up = self.chosen.iter().copied().collect();
        checkpoint.not_looked_up = self.skipped();
        (checkpoint.vanished, checkpoint.vanished_contents) = self.queue.iter().copied().unzip();
    }

    pub fn resumed(checkpoint: &Checkpoint) -> Self {
        let vanished = checkpoint.vanished.iter().copied();
        Self {
            queue: vanished
                .zip(checkpoint.vanished_contents.iter().copied())
                .collect(),
            chosen: checkpoint.looked_up.iter().copied().collect(),
            skipped_before: checkpoint.not_looked_up,
            ..Self::default()
        }
    }
}

/// Look-ups of the unknown ids between the known ones, ascending.
#[derive(Debug)]
pub(super) struct Gaps {
    next: i64,
    fetched: u64,
    found: u64,
}

impl Gaps {
    /// `None` if no ids are unknown.
    pub fn between(known: &RoaringTreemap) -> Option<Self> {
        let first = known.min()?.cast_signed();
        Some(Self {
            next: gap_after(known, first)?,
            fetched: 0,
            found: 0,
        })
    }

    /// The id to fetch.
    pub fn id(&self) -> i64 {
        self.next
    }

    /// Counts the response for the id.
    pub fn take(&mut self, found: bool) {
        self.fetched += 1;
        self.found += u64::from(found);
    }

    /// The look-up of the next unknown id, if there is one and enough of them are missing rows.
    pub fn next(self, known: &RoaringTreemap) -> Option<Self> {
        let finds = self.fetched < FIRST_LOOK_UPS || self.found * IDS_A_ROW >= self.fetched;
        let next = gap_after(known, self.next).filter(|_| finds)?;
        Some(Self { next, ..self })
    }
}

/// The number of unknown ids between the known ones, if they are dense for `short` missing rows.
pub(super) fn dense_gaps(known: &RoaringTreemap, short: u64) -> Option<u64> {
    let (least, most) = (known.min()?, known.max()?);
    let ids = (most - least + 1).saturating_sub(known.len());
    let dense = ids > 0 && ids <= short.saturating_mul(IDS_A_ROW);
    // Negative ids are not looked up; as unsigned numbers they exceed all others.
    dense.then_some(ids).filter(|_| i64::try_from(most).is_ok())
}

/// The first unknown id after this one, below the largest known id.
fn gap_after(known: &RoaringTreemap, id: i64) -> Option<i64> {
    let most = known.max()?.cast_signed();
    (id.checked_add(1)?..most)
        .find(|id| !known.contains(id.cast_unsigned()) && Natural::new("id", *id).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vanished_row_is_fetched_once_and_only_the_first_ones() {
        let mut look_ups = LookUps::default();
        look_ups.note(&[7, -1, 7], |_| None);
        for _ in 0..2 {
            look_ups.note(&(1..=20).collect::<Vec<_>>(), |_| None);
            assert_eq!(look_ups.unexplained(0), 20);
        }
        assert_eq!(look_ups.unexplained(20), 0);
        let ids: Vec<i64> =
            std::iter::from_fn(|| (!look_ups.is_empty()).then(|| look_ups.next())).collect();
        assert_eq!(ids.len(), MOST_LOOKED_UP);
        assert_eq!(ids.first(), Some(&7));
        assert_eq!(look_ups.unexplained(0), 4);
    }

    #[test]
    fn a_row_that_moved_unchanged_has_no_trace_of_it() {
        let text = r#"{"id":1}"#;
        for (content, untraced) in [(content_of_text(text), 1), (0, 0)] {
            let mut look_ups = LookUps::default();
            look_ups.note(&[1], |_| Some(content));
            assert_eq!(look_ups.next(), 1);
            assert_eq!(look_ups.take(Some(text)), Vanished::Moved);
            assert_eq!(look_ups.untraced_moves(), untraced);
        }
        assert_eq!(LookUps::default().take(None), Vanished::Gone);
    }

    #[test]
    fn gaps_between_ids_are_dense_if_the_missing_rows_may_fill_them() {
        let known: RoaringTreemap = [1, 2, 5, 9].into_iter().collect();
        assert_eq!(dense_gaps(&known, 1), None);
        assert_eq!(dense_gaps(&known, 2), Some(5));
        assert_eq!(dense_gaps(&RoaringTreemap::new(), 2), None);
        let negative: RoaringTreemap = [1, 3, (-1_i64).cast_unsigned()].into_iter().collect();
        assert_eq!(dense_gaps(&negative, u64::MAX), None);
    }

    #[test]
    fn unknown_ids_are_fetched_in_order_while_some_of_them_are_found() {
        let known: RoaringTreemap = [10, 12, 15].into_iter().collect();
        let mut gaps = Gaps::between(&known);
        let mut ids = Vec::new();
        while let Some(mut gap) = gaps {
            ids.push(gap.id());
            gap.take(true);
            gaps = gap.next(&known);
        }
        assert_eq!(ids, [11, 13, 14]);

        let sparse: RoaringTreemap = [1, 1_000].into_iter().collect();
        let mut gap = Gaps::between(&sparse).unwrap();
        for _ in 1..FIRST_LOOK_UPS {
            gap.take(false);
            gap = gap.next(&sparse).unwrap();
        }
        gap.take(false);
        assert!(gap.next(&sparse).is_none());
    }
}
