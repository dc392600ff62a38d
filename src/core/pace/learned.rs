//! The rate that a service allows, learned from its refusals.
//!
//! The limiter is modelled as a token bucket of unknown size and unknown refill rate. Each refusal
//! shows that the bucket was empty at that time, so the number of requests since it was full gives
//! both values, more precisely over longer spans. The rate is searched from below, first in
//! strides, then in small steps between the proven and the refuted rate. Then it is held, the
//! longer the more a refusal costs, before it is tested again.

use tokio::time::Instant;

use super::climb::{Climb, FASTEST, STRIDE};
use super::log::{Burst, Log};
use super::spacing::{LATENESS, Spacing, seconds};

/// The search starts at the burst divided by the wait, with a burst of at least this many requests.
const FEWEST: f64 = 4.0;
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
/// The multiple of the learned rate to try, to see whether there is a limit at all.
const LIFT: f64 = 4.0;
/// After a ban, the part of the refused rate to continue at.
const AFTER_BAN: f64 = 0.75;
/// The part of a computed rate to continue at.
const NEARLY: f64 = 0.95;
/// The first search after bans climbs by this power of e over as long as a ban lasts.
const UP_FROM_BURSTS: f64 = 1.5;
/// A rate is held for this many times a ban.
const BAN_PATIENCE: f64 = 10.0;

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
    banned: Option<Banned>,
}

/// What is known of a service whose refusals are bans, longer than the window in which it counts.
#[derive(Debug, Clone, Copy)]
struct Banned {
    /// Requests in one window.
    count: f64,
    /// The rate that came of bursts between bans.
    lowest: f64,
    /// How many refusals came within one window.
    in_one_window: u32,
    /// More than one window has passed between two bans.
    counted: bool,
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
            banned: None,
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

    /// After bans: bursts do not pay, so it searches for a rate that is never refused, upwards from
    /// what bursts between bans gave.
    pub fn after_ban(self, log: &Log, waited: f64, now: Instant) -> Self {
        let (taken, lasted) = (log.taken_recently(), log.lasted());
        let slow = Self {
            trust: 0.0,
            at: now,
            refused: self.rate,
            idle: false,
            ..self
        };
        let Some(mut banned) = self.banned else {
            let lowest = taken / (waited + lasted);
            return Self {
                rate: lowest,
                climb: Climb::over(waited, UP_FROM_BURSTS),
                banned: Some(Banned {
                    count: taken,
                    lowest,
                    in_one_window: 0,
                    counted: false,
                }),
                ..slow
            };
        };
        let patience = (BAN_PATIENCE * waited).max(LONGEST_PATIENCE);
        let held = Climb::over(patience, NARROW / 6.0);
        let (mut rate, climb) = if taken < 1.5 * banned.count && !banned.counted {
            // The window has not ended yet: it is between what has passed and the ban.
            banned.in_one_window += 1;
            let window = match banned.in_one_window {
                1 if lasted < waited => (lasted.max(1.0) * waited).sqrt(),
                _ => waited,
            };
            let rate = NEARLY * taken / window;
            banned.lowest = banned.lowest.min(rate);
            (rate, held)
        } else {
            banned.counted = true;
            let again = (self.rate / self.refused).ln().abs() < 2.0 * CONFLICT;
            match again {
                true => (self.rate * (1.0 + AFTER_BAN) / 2.0, held),
                false => (self.rate * AFTER_BAN, Climb::over(patience, NARROW)),
            }
        };
        if rate > banned.lowest * AFTER_BAN {
            rate = rate.max(banned.lowest);
        }
        banned.lowest = banned.lowest.min(rate);
        Self {
            rate,
            climb,
            banned: Some(banned),
            ..slow
        }
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
            banned: None,
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
