//! What was changed in a world by hand; everything else stays generated.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::draw::Digest;

/// Row numbers that were taken out of a list; the rest close up.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    removed: Vec<u64>,
}

impl Gaps {
    /// How many were taken out.
    pub const fn len(&self) -> u64 {
        self.removed.len() as u64
    }

    /// Whether row `number` was taken out.
    pub fn has(&self, number: u64) -> bool {
        self.removed.binary_search(&number).is_ok()
    }

    /// Takes row `number` out; false if it was out already.
    pub fn take(&mut self, number: u64) -> bool {
        match self.removed.binary_search(&number) {
            Ok(_) => false,
            Err(place) => {
                self.removed.insert(place, number);
                true
            }
        }
    }

    /// The row numbers that are left of `0..end`, from the one that now stands at `offset`.
    pub fn left(&self, offset: u64, end: u64) -> impl Iterator<Item = u64> {
        let before = self.before(offset);
        let mut gaps = self.removed.iter().skip(before).copied().peekable();
        let start = offset.saturating_add(before as u64);
        (start..end).filter(move |number| gaps.next_if_eq(number).is_none())
    }

    /// How many of the removed rows stand before the row that is now at `offset`.
    fn before(&self, offset: u64) -> usize {
        let (mut low, mut high) = (0, self.removed.len());
        while low < high {
            let middle = low.midpoint(high);
            let stands_before = self
                .removed
                .get(middle)
                .is_some_and(|number| number - middle as u64 <= offset);
            if stands_before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn digest(&self, digest: &mut Digest) {
        digest.number(self.len());
        for number in &self.removed {
            digest.number(*number);
        }
    }
}

/// Named fields of one row, set to given values.
pub type Fields = Map<String, Value>;

/// What was changed about one user.
#[derive(Clone, Debug, Default)]
pub struct UserChange {
    /// Messages added after the generated ones.
    pub added: u64,
    /// Messages taken out, by position.
    pub removed: Gaps,
    pub fields: Fields,
    /// Fields of messages, by position.
    pub messages: BTreeMap<u64, Fields>,
}

impl UserChange {
    fn is_empty(&self) -> bool {
        let messages = self.added == 0 && self.removed.len() == 0 && self.messages.is_empty();
        messages && self.fields.is_empty()
    }
}

/// Everything that was changed in a world.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    pub added_users: u64,
    pub removed_users: Gaps,
    pub users: BTreeMap<u64, UserChange>,
    /// By how much the number of messages differs from the generated one.
    pub message_delta: i64,
}

impl Overlay {
    /// Feeds all changes to a fingerprint; a world without changes feeds the same as a new one.
    pub fn digest(&self, digest: &mut Digest) {
        digest.number(self.added_users);
        self.removed_users.digest(digest);
        for (index, change) in self.users.iter().filter(|(_, change)| !change.is_empty()) {
            digest.number(*index);
            digest.number(change.added);
            change.removed.digest(digest);
            digest_fields(&change.fields, digest);
            digest.number(change.messages.len() as u64);
            for (position, fields) in &change.messages {
                digest.number(*position);
                digest_fields(fields, digest);
            }
        }
    }
}

fn digest_fields(fields: &Fields, digest: &mut Digest) {
    digest.number(fields.len() as u64);
    for (name, value) in fields {
        digest.text(name);
        digest.text(&value.to_string());
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
            removed in prop::collection::vec(0_u64..60, 0..50), offset in 0_u64..70,
        ) {
            let mut gaps = Gaps::default();
            let mut out = BTreeSet::new();
            for number in removed {
                prop_assert_eq!(gaps.take(number), out.insert(number));
            }
            let plain: Vec<u64> = (0..60).filter(|number| !out.contains(number)).collect();
            let expected: Vec<u64> = plain.into_iter().skip(offset as usize).collect();
            prop_assert_eq!(gaps.left(offset, 60).collect::<Vec<u64>>(), expected);
        }
    }
}
