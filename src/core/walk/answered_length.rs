//! How many rows the service answers in one page, where it fails longer ones.

use crate::api::Limit;

// Pages until a longer one is tried; each time twice as many, unless it is answered.
const FIRST_PATIENCE: u32 = 8;

#[derive(Debug, Default)]
pub(super) struct AnsweredLength {
    most: Option<Limit>,
    /// Pages since a longer one was tried, or since the length was learned.
    pages: u32,
    patience: u32,
}

impl AnsweredLength {
    /// `None` if nothing is known to fail.
    pub fn most(&self) -> Option<Limit> {
        self.most
    }

    pub fn learn(&mut self, most: Limit) {
        *self = Self {
            most: Some(most),
            pages: 0,
            patience: FIRST_PATIENCE,
        };
    }

    /// The length to try for this page, if it is time: longer ones may have failed by chance.
    pub fn longer(&mut self) -> Option<Limit> {
        let most = self.most?;
        self.pages += 1;
        if self.pages <= self.patience {
            return None;
        }
        self.pages = 0;
        self.patience = self.patience.saturating_mul(2);
        Some(most.doubled())
    }

    /// A page of that length was answered; the walk requests `requested` rows.
    pub fn note_longer(&mut self, length: Limit, requested: Limit) {
        self.learn(length);
        self.most = self.most.filter(|most| *most < requested);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(rows: u64) -> Limit {
        Limit::of(rows).unwrap_or(Limit::SMALLEST)
    }

    /// How many pages come before each try of a longer one.
    fn tries(length: &mut AnsweredLength, pages: usize) -> Vec<usize> {
        let tried: Vec<usize> = (0..pages).filter(|_| length.longer().is_some()).collect();
        tried
    }

    #[test]
    fn a_longer_page_is_tried_less_and_less_often() {
        let mut length = AnsweredLength::default();
        assert_eq!((length.most(), tries(&mut length, 100)), (None, vec![]));
        length.learn(limit(12));
        assert_eq!(tries(&mut length, 100), [8, 25, 58]);
        assert_eq!(length.most(), Some(limit(12)));
    }

    #[test]
    fn it_grows_until_the_length_that_was_requested() {
        let mut length = AnsweredLength::default();
        length.learn(limit(30));
        length.note_longer(limit(60), Limit::LARGEST);
        assert_eq!(length.most(), Some(limit(60)));
        assert_eq!(tries(&mut length, 9), [8]);
        length.note_longer(Limit::LARGEST, Limit::LARGEST);
        assert_eq!(length.most(), None);
    }
}
