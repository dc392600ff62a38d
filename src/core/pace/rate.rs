//! How many requests a second: what the user allows, and what the service turns out to allow.
//!
//! Nothing is kept until the service refuses a request. What it refuses by is taken for a bucket
//! of unknown size that fills at an unknown rate: each refusal says that it was empty then, so
//! what was taken since it was full gives both, and the more exactly the longer that is. The rate
//! is searched from below, first in strides, then in small steps between what is proven and what
//! is refuted, and then kept until a patience is over that is the longer the more a refusal costs.

use std::time::Duration;

use tokio::time::Instant;

use super::log::{Burst, Log};
use super::spacing::Spacing;

// Ten years: a clock can hold it, and nobody waits for more.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// A wake-up may be so late without lowering the rate that the user allows.
const LATENESS: Duration = Duration::from_millis(10);
/// The search begins at what came at once in the time waited, and at least at so many in it.
const FEWEST: f64 = 4.0;
/// A search grows by this power of e a second.
const STRIDE: f64 = 4.0;
/// A rate above it is none.
const FASTEST: f64 = 1e6;
/// What is proven and what is refuted are so close, as a logarithm, that no search is needed.
const NARROW: f64 = 0.2;
/// How far they are taken to be apart, as a logarithm, where one contradicts the other.
const CONFLICT: f64 = 0.1;
/// A rate is kept for so many times what the next refusal would cost, within these seconds.
const PATIENCE: f64 = 60.0;
const SHORTEST_PATIENCE: f64 = 5.0;
const LONGEST_PATIENCE: f64 = 600.0;
const SHORTEST_LEG: Duration = Duration::from_secs(3);
const LONGEST_LEG: Duration = Duration::from_secs(30);

/// Turns under all that limits the rate.
#[derive(Debug)]
pub struct Rate {
    limit: Option<Duration>,
    spaced: Spacing,
    held: Option<Instant>,
    log: Log,
    episode: Option<Episode>,
    /// Requests up to this number were sent before the last refusal was known.
    settled: u64,
    /// A request was refused while others passed, once: it may have been for another reason.
    doubted: bool,
    learned: Option<Learned>,
}

/// A refusal, until it is waited out.
#[derive(Debug, Clone, Copy)]
struct Episode {
    began: Instant,
    first: u64,
    refused_before: u64,
    told: bool,
}

/// What is known when a request is refused.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    pub number: u64,
    pub sent: Instant,
    pub now: Instant,
    pub wait: Duration,
    /// The service asked for just this wait.
    pub told: bool,
}

/// What a request is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It may go; its number.
    Come(u64),
    Wait {
        until: Instant,
        why: Why,
    },
}

/// Who asks for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The user, by a `rate_limit`.
    Limit,
    /// The service, by a refusal.
    Held,
    /// Nobody: so much is known of what the service allows.
    Learned,
}

impl Rate {
    /// At most `limit` requests a second.
    pub fn new(limit: Option<f64>) -> Self {
        Self {
            limit: limit.map(|rate| seconds(rate.recip())),
            spaced: Spacing::default(),
            held: None,
            log: Log::new(),
            episode: None,
            settled: 0,
            doubted: false,
            learned: None,
        }
    }

    /// Takes a turn if it has come.
    pub fn turn(&mut self, now: Instant) -> Turn {
        if let Some(until) = self.held {
            if until > now {
                let why = Why::Held;
                return Turn::Wait { until, why };
            }
            self.held = None;
            self.conclude(now);
        }
        if let Some(until) = self.spaced.due(now) {
            let why = Why::Limit;
            return Turn::Wait { until, why };
        }
        if let Some(learned) = &mut self.learned {
            if let Some(until) = learned.spaced.due(now) {
                let why = Why::Learned;
                return Turn::Wait { until, why };
            }
            learned.take(now);
            if learned.rate > FASTEST {
                self.learned = None;
            }
        }
        if let Some(distance) = self.limit {
            self.spaced.take(now, distance, LATENESS);
        }
        Turn::Come(self.log.send(now))
    }

    /// The number of the last request.
    pub fn sent(&self) -> u64 {
        self.log.sent()
    }

    /// Until when all are held back.
    pub fn held(&self) -> Option<Instant> {
        self.held
    }

    /// A request was refused: all wait.
    pub fn refuse(&mut self, refusal: Refusal) {
        let Refusal {
            number,
            sent,
            now,
            wait,
            told,
        } = refusal;
        self.log.refuse(number, sent);
        let until = now + wait.min(LONGEST);
        self.held = Some(self.held.map_or(until, |held| held.max(until)));
        // What was sent before an earlier refusal was known is part of that.
        if number > self.settled {
            self.settled = self.log.sent();
            self.episode = Some(Episode {
                began: now,
                first: number,
                refused_before: self.log.refused().saturating_sub(1),
                told,
            });
        }
    }

    /// A refusal has been waited out, and all that was sent before it has been answered, or nearly.
    fn conclude(&mut self, now: Instant) {
        let Some(episode) = self.episode.take() else {
            return;
        };
        let waited = now.saturating_duration_since(episode.began).as_secs_f64();
        let known = self.log.taken_recently() >= 1.0;
        let learned = match self.learned.take() {
            None if !known => None,
            None if self.is_stray(episode) && !self.doubted => {
                self.doubted = true;
                None
            }
            None => Some(Learned::search(&self.log, waited, now)),
            Some(before) if known => Some(before.refine(&self.log, waited, now)),
            before => before,
        };
        self.learned = learned.map(|mut learned| {
            // The service said when there is room; else it comes as far after the refusal as it does.
            let room = match episode.told {
                true => episode.began,
                false => episode.began + seconds(learned.rate.recip()),
            };
            learned.spaced = Spacing::from(room);
            learned
        });
        self.log.begin(now);
    }

    /// Whether as many passed as were refused, once the first was: that says little of a rate.
    fn is_stray(&self, episode: Episode) -> bool {
        let refused = self.log.refused() - episode.refused_before;
        let later = self.log.sent().saturating_sub(episode.first);
        refused <= later.saturating_sub(refused.saturating_sub(1))
    }
}

/// What the service is taken to allow.
#[derive(Debug, Clone, Copy)]
struct Learned {
    burst: Burst,
    /// So much of a burst is made use of.
    trust: f64,
    spaced: Spacing,
    /// Requests a second, as of `at`.
    rate: f64,
    /// The rate at the last refusal.
    refused: f64,
    at: Instant,
    /// It grows by this power of e a second until the leg ends; then twice as fast.
    growth: f64,
    leg: Duration,
    left: Duration,
    next_growth: f64,
}

impl Learned {
    /// After the first refusal: from below, in strides.
    fn search(log: &Log, waited: f64, now: Instant) -> Self {
        let burst = log.burst();
        let slowest = burst.count.max(FEWEST) / waited.max(1.0);
        Self {
            burst,
            trust: 0.9,
            spaced: Spacing::default(),
            rate: log.proven(burst).max(slowest),
            refused: FASTEST,
            at: now,
            growth: STRIDE,
            leg: LONGEST,
            left: LONGEST,
            next_growth: STRIDE,
        }
    }

    /// After a later one: between what is proven and what is refuted.
    fn refine(self, log: &Log, waited: f64, now: Instant) -> Self {
        let mut burst = self.burst;
        let (mut proven, mut refuted) = (log.proven(burst), log.refuted(burst));
        let most = self.rate * (1.0 - 0.1 / (1.0 + log.lasted()));
        // Less than comes at once: nothing was left over before, and nothing was lost since.
        let scarce = log
            .between()
            .filter(|(count, _)| *count + 1.0 < 0.8 * burst.least());
        if let Some((count, span)) = scarce {
            refuted = refuted.min((count + 1.0) / span).max(proven);
        } else if log.taken_recently() < 1.5 * burst.at(self.rate) {
            // It came too soon to be a matter of the rate.
            return Self {
                trust: self.trust / 2.0,
                spaced: Spacing::default(),
                rate: most.max(proven.min(self.rate)),
                refused: self.rate,
                at: now,
                growth: self.growth / 3.0,
                leg: self.leg.max(SHORTEST_LEG).min(LONGEST_LEG),
                left: SHORTEST_LEG,
                ..self
            };
        } else if proven > refuted {
            burst.count = (burst.count * 0.7).max(1.0);
            (proven, refuted) = (log.proven(burst), log.refuted(burst));
        }
        let fastest = burst.count / (burst.over + 0.1);
        refuted = refuted.min(2.0 * self.rate.max(proven).max(fastest));
        let least = FEWEST / 4.0 / waited.max(1.0);
        let rate = proven.min(refuted).min(most).max(least);
        let width = match proven < refuted {
            true => (refuted / rate).ln().max(0.0),
            false => CONFLICT,
        };
        let again = (self.rate / self.refused).ln().abs() < CONFLICT;
        let (rate, leg, growth) = match width < NARROW || again {
            true => {
                let cost = (waited - burst.at(rate) / rate).max(0.0);
                let patience = (cost * PATIENCE).clamp(SHORTEST_PATIENCE, LONGEST_PATIENCE);
                let width = width.min(NARROW);
                let likely = (rate * (0.25 * width).exp()).min(most);
                (likely, seconds(patience), width / 6.0 / patience)
            }
            false => {
                let leg = (60.0 / (rate * refuted).sqrt()).clamp(3.0, 30.0);
                (rate, seconds(leg), width / leg)
            }
        };
        // What was refused before is not run into as fast again.
        let growth = growth.min(self.growth / 3.0);
        Self {
            burst,
            trust: (self.trust * 1.5).min(0.9),
            spaced: Spacing::default(),
            rate,
            refused: self.rate,
            at: now,
            growth,
            leg,
            left: leg,
            next_growth: (2.0 * growth).max(0.02 / leg.as_secs_f64()),
        }
    }

    fn take(&mut self, now: Instant) {
        let burst = match self.growth >= STRIDE {
            true => self.burst.least(),
            false => self.burst.at(self.rate),
        };
        let depth = (burst * self.trust - 1.0).max(0.0);
        let saved = seconds(depth / self.rate);
        // A rate that nobody makes use of is not put to the test.
        if !self.spaced.is_idle(now, saved + LATENESS) {
            self.grow(now.saturating_duration_since(self.at));
        }
        self.at = now;
        let distance = match self.growth > 0.0 {
            true => (self.growth / self.rate).ln_1p() / self.growth,
            false => self.rate.recip(),
        };
        self.spaced.take(now, seconds(distance), saved);
    }

    fn grow(&mut self, mut length: Duration) {
        while length >= self.left && self.rate < FASTEST {
            self.rate *= (self.growth * self.left.as_secs_f64()).exp();
            length -= self.left;
            // Not refused so far, so soon on: what the service allows may have risen.
            self.leg = (self.leg / 2).max(SHORTEST_LEG);
            self.left = self.leg;
            self.growth = self.next_growth;
            self.next_growth = (2.0 * self.growth).min(STRIDE);
        }
        self.rate *= (self.growth * length.as_secs_f64()).exp();
        self.left = self.left.saturating_sub(length);
    }
}

fn seconds(length: f64) -> Duration {
    Duration::try_from_secs_f64(length).map_or(LONGEST, |length| length.min(LONGEST))
}
