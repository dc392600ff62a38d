//! Trials of a lower pace, which show whether 503s depend on it.

use super::share::{self, LEAST_BACKGROUND, Sample};

/// Up to this share 503s are harmless: retries get past them.
pub const HARMLESS: f64 = 0.2;
/// With a share this high, the rate that passes cannot be measured.
const HOPELESS: f64 = 0.75;
/// The pace of a trial, as a part of what passed before.
const SLOWER: f64 = 0.5;
const SLIGHTLY_SLOWER: f64 = 0.9;
/// Log odds at which the share counts as constant, or as fallen.
const CONSTANT: f64 = 1.5;
const FELL: f64 = 4.0;
/// Responses at each pace of a trial: at least this many, or fewer if all are the same,
pub const FEWEST: f64 = 8.0;
const FEWEST_SAME: f64 = 4.0;
/// and at most this many, or fewer if they are not harmless.
const MOST: f64 = 40.0;
pub const ENOUGH: f64 = 16.0;
/// The most paces tried; a share that is constant over all of them is not caused by a limiter.
const MOST_TRIED: u32 = 5;
/// A trial without waits is believed once this many waits would have come by chance,
const WITHOUT_WAITS: f64 = 6.0;
/// or after this many responses.
const MOST_WITHOUT_WAITS: f64 = 400.0;

/// A trial: the shares at two paces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Requests up to this number were sent at the previous pace.
    since: u64,
    before: Sample,
    slow: Sample,
    /// The pace as a part of the previous one.
    part: f64,
    /// The number of paces tried before.
    tried: u32,
    /// The share has fallen once.
    fell: bool,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    Open,
    /// This share is independent of the pace.
    Constant(f64),
    /// An even lower pace must show how much of the share is independent of the pace.
    Slower(Trial),
    /// All but this share depends on the pace.
    Fell {
        background: f64,
    },
}

/// Stated waits, counted while they do not affect the pace.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// Requests up to this number were sent before the last of them was known.
    since: u64,
    count: u32,
    /// Responses since the first.
    sample: Sample,
}

/// A trial of a pace at which no wait should be stated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WithoutWaits {
    /// Requests up to this number were sent before.
    since: u64,
    /// Responses until that is believed.
    left: f64,
    part: f64,
}

impl Trial {
    pub fn of(before: Sample, sent: u64) -> Self {
        Self {
            since: sent,
            before,
            slow: Sample::default(),
            part: before.passed_share() * SLOWER,
            tried: 0,
            fell: false,
        }
    }

    /// The pace to try, as a part of the previous one.
    pub fn part(self) -> f64 {
        self.part
    }

    pub fn add(&mut self, number: u64, failed: bool) {
        if number > self.since {
            self.slow.add(failed)
        } else {
            self.before.add(failed)
        }
    }

    pub fn outcome(self, sent: u64) -> Outcome {
        let Self { before, slow, .. } = self;
        let hopeless = slow.share().min(before.share()) >= HOPELESS;
        let clear = slow.failed == 0.0 || (hopeless && slow.failed == slow.answers);
        if slow.answers < if clear { FEWEST_SAME } else { FEWEST } {
            return Outcome::Open;
        }
        let odds = share::odds(before, slow, self.part);
        let fell = odds <= -FELL;
        let many = slow.share() >= HARMLESS;
        let constant = odds >= CONSTANT && !hopeless;
        if !self.fell && (constant || self.tried >= MOST_TRIED) {
            return Outcome::Constant(before.and(slow).share());
        }
        if !self.fell && !fell && !many && slow.answers >= MOST {
            return Outcome::Constant(slow.share());
        }
        if (fell && many) || hopeless || (!self.fell && many && slow.answers >= ENOUGH) {
            return Outcome::Slower(Self {
                tried: self.tried + 1,
                fell: fell || self.fell,
                ..Self::of(slow, sent)
            });
        }
        if !fell && !self.fell {
            return Outcome::Open;
        }
        Outcome::Fell {
            background: if many {
                slow.background()
            } else {
                LEAST_BACKGROUND
            },
        }
    }
}

impl Waits {
    /// Counts from the first one.
    pub fn from(sent: u64) -> Self {
        Self {
            since: sent,
            count: 0,
            sample: Sample::default(),
        }
    }

    pub fn add(&mut self, number: u64, failed: bool, told: bool, sent: u64) {
        self.sample.add(failed);
        if told && number > self.since {
            self.since = sent;
            self.count += 1;
        }
    }

    /// How many came after the first.
    pub fn count(self) -> u32 {
        self.count
    }

    /// A trial at the average pace that passed, including the waits.
    pub fn trial(self, sent: u64) -> WithoutWaits {
        let passed = self.sample.passed_share();
        WithoutWaits {
            since: sent,
            left: (WITHOUT_WAITS / -passed.ln()).clamp(FEWEST_SAME, MOST_WITHOUT_WAITS),
            part: passed * SLIGHTLY_SLOWER,
        }
    }
}

impl WithoutWaits {
    /// The pace to try, as a part of the previous one.
    pub fn part(self) -> f64 {
        self.part
    }

    /// Whether no waits occur at this pace; `None` while that is unknown.
    pub fn add(&mut self, number: u64, failed: bool) -> Option<bool> {
        self.left -= 1.0;
        if number <= self.since {
            return None;
        }
        if failed {
            Some(false)
        } else {
            (self.left <= 0.0).then_some(true)
        }
    }
}
