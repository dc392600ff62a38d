//! How a rate grows while nothing is refused.

use std::time::Duration;

use super::spacing::{FOREVER, seconds};

/// A rate above this is no limit.
pub const FASTEST: f64 = 1e6;
/// In a search the rate grows by this power of e per second.
pub const STRIDE: f64 = 4.0;
/// A test of a rate raises it by this part over its holding time.
const TEST: f64 = 0.02;
const SHORTEST_LEG: Duration = Duration::from_secs(3);

/// The growth of the current leg and of the next ones.
#[derive(Debug, Clone, Copy)]
pub struct Climb {
    /// By this power of e per second, until the leg ends.
    growth: f64,
    left: Duration,
    /// Each following leg is half as long, and steeper accordingly.
    leg: Duration,
    next: f64,
}

impl Climb {
    pub fn in_strides() -> Self {
        Self {
            growth: STRIDE,
            left: FOREVER,
            leg: FOREVER,
            next: STRIDE,
        }
    }

    /// From a low rate, in shorter strides at first.
    pub fn from(rate: f64) -> Self {
        if rate >= STRIDE {
            return Self::in_strides();
        }
        let length = SHORTEST_LEG.as_secs_f64();
        Self::over(length, rate * length)
    }

    /// By this power of e over this many seconds.
    pub fn over(length: f64, power: f64) -> Self {
        let growth = power / length;
        Self {
            growth,
            left: seconds(length),
            leg: seconds(length),
            next: (2.0 * growth).max(TEST / length),
        }
    }

    pub fn is_in_strides(self) -> bool {
        self.growth >= STRIDE
    }

    /// Climbs at most a third as fast as before, to run into the refused rate less quickly.
    pub fn slower_than(self, other: Self) -> Self {
        let growth = self.growth.min(other.growth / 3.0);
        let next = (2.0 * growth).max(TEST / self.leg.as_secs_f64());
        Self {
            growth,
            next,
            ..self
        }
    }

    pub fn eased(self) -> Self {
        Self {
            growth: self.growth / 3.0,
            left: SHORTEST_LEG,
            leg: SHORTEST_LEG,
            ..self
        }
    }

    pub fn grown(&mut self, mut rate: f64, mut length: Duration) -> f64 {
        while length >= self.left && rate < FASTEST {
            rate *= (self.growth * self.left.as_secs_f64()).exp();
            length -= self.left;
            // Not refused soon after the change: the service's limit may have risen.
            self.leg = (self.leg / 2).max(SHORTEST_LEG);
            self.left = self.leg;
            self.growth = self.next;
            self.next = (2.0 * self.growth).min(STRIDE);
        }
        self.left = self.left.saturating_sub(length);
        rate * (self.growth * length.as_secs_f64()).exp()
    }

    /// Seconds from one turn to the next, from this rate on.
    pub fn distance(self, rate: f64) -> f64 {
        if self.growth > 0.0 {
            (self.growth / rate).ln_1p() / self.growth
        } else {
            rate.recip()
        }
    }
}
