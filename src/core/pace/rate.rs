//! How many requests a second: what the user allows, and what the service turns out to allow.
//!
//! Nothing is kept until the service refuses a request; then `learned.rs` finds what it allows.

use std::time::Duration;

use tokio::time::Instant;

use super::learned::Learned;
use super::log::Log;
use super::spacing::{FOREVER, LATENESS, Spacing, seconds};

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
            if let Some(until) = learned.due(now) {
                let why = Why::Learned;
                return Turn::Wait { until, why };
            }
            learned.take(now);
            if learned.is_past() {
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

    /// All wait.
    pub fn hold(&mut self, now: Instant, wait: Duration) {
        let until = now + wait.min(FOREVER);
        self.held = Some(self.held.map_or(until, |held| held.max(until)));
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
        self.hold(now, wait);
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
        self.learned = learned.map(|learned| learned.emptied(episode.began, episode.told));
        self.log.begin(now);
    }

    /// Whether as many passed as were refused, once the first was: that says little of a rate.
    fn is_stray(&self, episode: Episode) -> bool {
        let refused = self.log.refused() - episode.refused_before;
        let later = self.log.sent().saturating_sub(episode.first);
        refused <= later.saturating_sub(refused.saturating_sub(1))
    }
}
