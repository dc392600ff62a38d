//! The share of 503s among responses, and what it shows.

/// Bounds for the background, which is the share of 503s at any pace: rarer 503s cannot be told
/// from none.
pub const LEAST_BACKGROUND: f64 = 0.01;
pub const MOST_BACKGROUND: f64 = 0.95;
/// The larger share to test for: the usual one plus this part of the rest.
const EXCESS: f64 = 0.4;
/// What the share may fall to, as a part of itself.
const FALLS: [f64; 5] = [0.02, 0.1, 0.2, 0.35, 0.5];

/// Responses, and the 503s among them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    pub answers: f64,
    pub failed: f64,
}

/// A cumulative sum (Page 1954): the log likelihood ratio of 503s being more than usual, over the
/// last segment of responses that supports it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cusum {
    pub value: f64,
    pub segment: Sample,
}

impl Cusum {
    /// Adds a response; false if nothing supports "more than usual" any longer.
    pub fn add(&mut self, failed: bool, usual: f64) -> bool {
        let more = usual + EXCESS * (1.0 - usual);
        self.value += if failed {
            (more / usual).ln()
        } else {
            ((1.0 - more) / (1.0 - usual)).ln()
        };
        if self.value <= 0.0 {
            *self = Self::default();
            return false;
        }
        self.segment.add(failed);
        true
    }
}

impl Sample {
    pub fn add(&mut self, failed: bool) {
        self.answers += 1.0;
        if failed {
            self.failed += 1.0;
        }
    }

    pub fn and(self, other: Self) -> Self {
        Self {
            answers: self.answers + other.answers,
            failed: self.failed + other.failed,
        }
    }

    pub fn share(self) -> f64 {
        self.failed / self.answers
    }

    /// The share that passes, never zero: a few responses cannot show that.
    pub fn passed_share(self) -> f64 {
        1.0 - (self.failed + 0.5) / (self.answers + 1.0)
    }

    pub fn background(self) -> f64 {
        self.share().clamp(LEAST_BACKGROUND, MOST_BACKGROUND)
    }

    /// The log likelihood of this sample if each request fails with this probability.
    fn likelihood(self, share: f64) -> f64 {
        self.failed * share.ln() + (self.answers - self.failed) * (1.0 - share).ln()
    }
}

/// The log odds that the share is the same at a pace that is `part` of the one before, rather than
/// that a limiter lets as many through as before and at most half the share remains.
///
/// Both are averaged over all shares, uniformly in their logit.
pub fn odds(before: Sample, slow: Sample, part: f64) -> f64 {
    let (mut constant, mut fell) = (0.0, 0.0);
    for step in -20..=20 {
        let share = 1.0 / (1.0 + (f64::from(step) / 4.0).exp());
        let at_first = before.likelihood(share);
        constant += (at_first + slow.likelihood(share)).exp();
        let refused = 1.0 - (1.0 - share) / part;
        for fall in FALLS {
            let then = slow.likelihood(refused.max(share * fall));
            fell += (at_first + then).exp() / FALLS.len() as f64;
        }
    }
    constant.ln() - fell.ln()
}
