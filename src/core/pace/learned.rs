//! The rate that a service allows, learned from its refusals.
//!
//! The limiter is modelled as a token bucket of unknown size and unknown refill rate. Each refusal
//! shows that the bucket was empty at that time, so the number of requests since it was full gives
//! both values, more precisely over longer spans. The rate is searched from below, first in
//! strides, then in small steps between the proven and the refuted rate. Then it is held, the
//! longer the more a refusal costs, before it is tested again.

use std::time::Duration;

use tokio::time::Instant;

use super::log::{Burst, Log};
use super::spacing::{FOREVER, LATENESS, Spacing, seconds};

/// The search starts at the burst divided by the wait, with a burst of at least this many requests.
const FEWEST: f64 = 4.0;
/// In a search the rate grows by this power of e per second.
const STRIDE: f64 = 4.0;
/// A rate above this is no limit.
const FASTEST: f64 = 1e6;
/// The part of a measured burst that is used. Below the least part, refusals are blamed on the
/// rate.
const TRUST: f64 = 0.9;
const LEAST_TRUST: f64 = 0.5;
/// Proven and refuted rates this close, as a logarithm, need no search.
const NARROW: f64 = 0.2;
/// Falls by this power of e are doubted: if the wait overfills the bucket, the rate measured over
/// it is lower than what is allowed.
const DOUBTFUL: f64 = 1.4;
/// How far apart they are assumed to be, as a logarithm, if one contradicts the other.
const CONFLICT: f64 = 0.1;
/// A rate is held for this many times what the next refusal would cost, within the bounds (seconds)
/// below.
const PATIENCE: f64 = 60.0;
const SHORTEST_PATIENCE: f64 = 5.0;
const LONGEST_PATIENCE: f64 = 600.0;
/// A test of a rate raises it by this part over its holding time.
const TEST: f64 = 0.02;
/// The multiple of the learned rate to try, to see whether there is a limit at all.
const LIFT: f64 = 4.0;
const SHORTEST_LEG: Duration = Duration::from_secs(3);

/// Turns at the rate that the service is believed to allow.
#[derive(Debug, Clone, Copy)]
pub struct Learned {
    burst: Burst,
    /// The part of a burst that is used.
    trust: f64,
    spaced: Spacing,
    /// Requests per second, as of `at`.
    rate: f64,
    at: Instant,
    climb: Climb,
    /// The rate at the last refusal.
    refused: f64,
    /// A refusal does not immediately lower the rate below this, since it is known to pass.
    lowest: f64,
    /// There were spare turns when the last one was taken.
    idle: bool,
}

impl Learned {
    /// After the first refusal: searches from below, in strides.
    pub fn search(log: &Log, waited: f64, now: Instant) -> Self {
        let burst = log.burst();
        let slowest = burst.count.max(FEWEST) / waited.max(1.0);
        Self {
            burst,
            trust: TRUST,
            spaced: Spacing::default(),
            rate: log.proven(burst).max(slowest),
            at: now,
            climb: Climb::in_strides(),
            refused: FASTEST,
            lowest: 0.0,
            idle: false,
        }
    }

    /// Starts at this rate, at which nothing was refused.
    pub fn starting_at(self, rate: f64, now: Instant) -> Self {
        Self {
            rate,
            at: now,
            spaced: Spacing::from(now),
            burst: match self.burst.is_spread() {
                true => Burst {
                    count: 1.0,
                    over: 0.0,
                },
                false => self.burst,
            },
            climb: Climb::from(rate),
            lowest: rate / 2.0,
            ..self
        }
    }

    /// Continues unchanged after something else limited the rate.
    pub fn resumed(self, now: Instant) -> Self {
        Self {
            at: now,
            spaced: Spacing::from(now),
            ..self
        }
    }

    /// Searches in strides from well above the learned rate, to see whether there is a limit at
    /// all.
    pub fn lifted(self, now: Instant) -> Self {
        Self {
            trust: 0.0,
            rate: LIFT * self.rate,
            at: now,
            climb: Climb::in_strides(),
            refused: FASTEST,
            idle: false,
            ..self
        }
    }

    /// The rate that has been proven since, if it is far higher.
    pub fn far_below(&self, log: &Log) -> Option<f64> {
        Some(log.proven(self.burst)).filter(|proven| *proven > 2.0 * self.rate)
    }

    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// After later refusals: searches from the proven towards the refuted rate.
    pub fn refine(self, log: &Log, waited: f64, now: Instant) -> Self {
        let mut burst = self.burst;
        let (mut proven, mut refuted) = (log.proven(burst), log.refuted(burst));
        // The sooner the refusal, the less is known about its cause.
        let most = self.rate * (1.0 - 0.1 / (1.0 + log.lasted()));
        // Less than the burst was taken: nothing was left over before, and nothing was lost since.
        let scarce = log
            .between()
            .filter(|(count, _)| *count + 1.0 < 0.8 * burst.least());
        let lowest = if self.rate > 2.0 * self.lowest {
            self.lowest
        } else {
            self.lowest / 2.0
        };
        let slowest = lowest.max(FEWEST / 4.0 / waited.max(1.0));
        if let Some((count, span)) = scarce {
            let at_once = log.lasted() * self.rate < 1.0;
            if at_once && self.trust > 0.0 {
                // The burst may be smaller than it seemed, especially if it was spread out.
                let length = if burst.is_spread() { 1.0 } else { 8.0 };
                return Self {
                    trust: 0.0,
                    rate: (count / span).min(most).max(slowest),
                    at: now,
                    climb: Climb::over(length, STRIDE / 2.0),
                    refused: self.rate,
                    lowest,
                    ..self
                };
            }
            refuted = refuted.min((count + 1.0) / span).max(proven);
        } else if self.trust == 0.0 {
            // Nothing was saved up, so the cause is the rate, or a bucket that was full before.
            refuted = refuted
                .min((log.taken_recently() + 1.0) / log.lasted())
                .max(proven);
        } else if log.taken_recently() < 1.5 * burst.at(self.rate) {
            // It came too soon for the rate to be the cause, unless little was saved up.
            let most = if self.trust < LEAST_TRUST {
                self.rate / 2.0
            } else {
                most
            };
            return Self {
                trust: self.trust / 2.0,
                rate: most.max(proven.min(self.rate)),
                at: now,
                climb: self.climb.eased(),
                refused: self.rate,
                lowest,
                ..self
            };
        } else if proven > refuted {
            burst.count = (burst.count * 0.7).max(1.0);
            (proven, refuted) = (log.proven(burst), log.refuted(burst));
        }
        refuted = refuted.min(2.0 * self.rate.max(proven).max(burst.fastest()));
        let rate = proven.min(refuted).min(most).max(slowest);
        let width = if proven < refuted {
            (refuted / rate).ln().max(0.0)
        } else {
            CONFLICT
        };
        let again = (self.rate / self.refused).ln().abs() < CONFLICT;
        let (rate, climb) = if width < NARROW || again {
            let width = width.min(NARROW);
            let cost = waited - burst.at(rate) / rate;
            let patience = (cost * PATIENCE).clamp(SHORTEST_PATIENCE, LONGEST_PATIENCE);
            let likely = (rate * (0.25 * width).exp()).min(most);
            (likely, Climb::over(patience, width / 6.0))
        } else {
            let length = (60.0 / (rate * refuted).sqrt()).clamp(3.0, 8.0);
            (rate, Climb::over(length, width))
        };
        let fell = (self.rate / rate).ln();
        let climb = if scarce.is_none() && fell > DOUBTFUL {
            Climb::over(8.0, fell / 2.0)
        } else {
            climb.slower_than(self.climb)
        };
        Self {
            burst,
            trust: match scarce {
                Some(_) => TRUST,
                None => (self.trust * 1.5).min(TRUST),
            },
            spaced: self.spaced,
            rate,
            at: now,
            climb,
            refused: self.rate,
            lowest,
            idle: false,
        }
    }

    /// The service had no capacity at `refused`. If it did not say when there will be room
    /// (`told`), assume one interval between turns later.
    pub fn emptied(self, refused: Instant, told: bool) -> Self {
        let room = if told {
            refused
        } else {
            refused + seconds(self.rate.recip())
        };
        Self {
            spaced: Spacing::from(room),
            ..self
        }
    }

    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// When the next turn comes, if that is in the future.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        self.spaced.due(now)
    }

    /// Takes a turn that is due.
    pub fn take(&mut self, now: Instant) {
        let burst = if self.climb.is_in_strides() {
            self.burst.least()
        } else {
            self.burst.at(self.rate)
        };
        let depth = (burst * self.trust - 1.0).max(0.0);
        let saved = seconds(depth / self.rate);
        // A rate that is not used up is not tested.
        self.idle = self.spaced.is_idle(now, saved + LATENESS);
        if !self.idle {
            let passed = now.saturating_duration_since(self.at);
            self.rate = self.climb.grown(self.rate, passed);
        }
        self.at = now;
        let distance = self.climb.distance(self.rate);
        self.spaced.take(now, seconds(distance), saved);
    }

    /// Whether it no longer limits anything.
    pub fn is_past(&self) -> bool {
        self.rate > FASTEST
    }
}

/// How a rate grows while nothing is refused.
#[derive(Debug, Clone, Copy)]
struct Climb {
    /// By this power of e per second, until the leg ends.
    growth: f64,
    left: Duration,
    /// Each following leg is half as long, and steeper accordingly.
    leg: Duration,
    next: f64,
}

impl Climb {
    fn in_strides() -> Self {
        Self {
            growth: STRIDE,
            left: FOREVER,
            leg: FOREVER,
            next: STRIDE,
        }
    }

    /// From a low rate, in shorter strides at first.
    fn from(rate: f64) -> Self {
        if rate >= STRIDE {
            return Self::in_strides();
        }
        let length = SHORTEST_LEG.as_secs_f64();
        Self::over(length, rate * length)
    }

    /// By this power of e over this many seconds.
    fn over(length: f64, power: f64) -> Self {
        let growth = power / length;
        Self {
            growth,
            left: seconds(length),
            leg: seconds(length),
            next: (2.0 * growth).max(TEST / length),
        }
    }

    fn is_in_strides(self) -> bool {
        self.growth >= STRIDE
    }

    /// Climbs at most a third as fast as before, to run into the refused rate less quickly.
    fn slower_than(self, other: Self) -> Self {
        let growth = self.growth.min(other.growth / 3.0);
        let next = (2.0 * growth).max(TEST / self.leg.as_secs_f64());
        Self {
            growth,
            next,
            ..self
        }
    }

    fn eased(self) -> Self {
        Self {
            growth: self.growth / 3.0,
            left: SHORTEST_LEG,
            leg: SHORTEST_LEG,
            ..self
        }
    }

    fn grown(&mut self, mut rate: f64, mut length: Duration) -> f64 {
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
    fn distance(self, rate: f64) -> f64 {
        if self.growth > 0.0 {
            (self.growth / rate).ln_1p() / self.growth
        } else {
            rate.recip()
        }
    }
}
