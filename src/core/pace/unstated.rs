//! 429s that do not say how long to wait, one after another.
//!
//! Each of a series was sent after the wait for the one before, and none was answered in between:
//! the service refuses everything, and the waits were too short.

use std::time::Duration;

use tokio::time::Instant;

/// A refusal that came this long ago says nothing about those that come now.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// The series so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct InARow {
    /// The number of the last request before the first refusal was known, which tells one series
    /// from another.
    pub since: u64,
    pub count: u32,
}

/// The series under way, if any, and what was believed (`B`) before its last wait: if the next
/// request is refused too, that wait was too short to conclude anything.
#[derive(Debug)]
pub struct Unstated<B> {
    in_a_row: u32,
    /// Requests up to this number were sent before the first refusal was known.
    before: u64,
    /// When the wait for the last one ends.
    until: Option<Instant>,
    believed: Option<Box<B>>,
}

impl<B> Default for Unstated<B> {
    fn default() -> Self {
        Self {
            in_a_row: 0,
            before: 0,
            until: None,
            believed: None,
        }
    }
}

impl<B> Unstated<B> {
    /// A series that begins with a refusal which was known after `sent` requests.
    pub fn begin(sent: u64, until: Option<Instant>) -> Self {
        Self {
            in_a_row: 1,
            before: sent,
            until,
            believed: None,
        }
    }

    pub fn is_under_way(&self) -> bool {
        self.in_a_row > 0
    }

    /// Whether a refusal of this request continues the series.
    pub fn goes_on(&self, number: u64, now: Instant) -> bool {
        let lately = self.until.is_some_and(|until| now < until + FORGOTTEN);
        self.is_under_way() && number > self.before && lately
    }

    /// Continues it after a wait; returns what was believed before that.
    pub fn go_on(&mut self, until: Option<Instant>) -> Option<Box<B>> {
        self.in_a_row += 1;
        self.until = until;
        self.believed.take()
    }

    /// The series if this request is refused, too; `settled` ones were sent before the last refusal
    /// was known, of `sent` ones.
    pub fn in_a_row(&self, number: u64, settled: u64, sent: u64, now: Instant) -> InARow {
        let anew = number > settled;
        match self.goes_on(number, now) || self.is_under_way() && !anew {
            true => InARow {
                since: self.before,
                count: self.in_a_row + u32::from(anew),
            },
            false => InARow {
                since: sent,
                count: 1,
            },
        }
    }

    /// Ends it if this request, which was answered, was sent after it began.
    pub fn passed(&mut self, number: u64) {
        if number > self.before {
            *self = Self::default();
        }
    }

    pub fn believe(&mut self, believed: B) {
        self.believed = Some(Box::new(believed));
    }

    /// What is learned otherwise from here on replaces what was believed.
    pub fn keep_conclusion(&mut self) {
        self.believed = None;
    }
}
