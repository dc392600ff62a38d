//! How many requests a second: what the user allows, and what the service turns out to allow.
//!
//! Nothing is kept until the service refuses a request; then `learned.rs` finds what it allows.

use std::time::Duration;

use tokio::time::Instant;

use super::learned::Learned;
use super::log::Log;
use super::refusal::{Refusal, RefusedBy};
use super::spacing::{FOREVER, LATENESS, Spacing, seconds};
use super::unavailable;

/// A longer gap between two requests is idle time, unless requests were held back.
const IDLE: Duration = Duration::from_millis(100);
/// No lower pace is tried, in requests a second.
const SLOWEST_TRIAL: f64 = 1.0;
/// A learned rate that is less than such a part of an earlier one has collapsed.
const PARTS: f64 = 4.0;

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
    /// The pace at which 503s are on trial.
    trial: Option<Trial>,
    /// A pace that is being measured.
    measured: Option<Measured>,
    /// What was learned without 503s.
    kept: Option<Learned>,
    /// What is known to pass, if 503s mean "too fast", in requests a second.
    floor: f64,
    /// What was learned from 503s, while it is lifted.
    suspended: Option<Learned>,
}

/// A refusal, until it is waited out.
#[derive(Debug, Clone, Copy)]
struct Episode {
    began: Instant,
    first: u64,
    refused_before: u64,
    told: bool,
    by: RefusedBy,
}

/// A pace to try, and what to search from if 503s turn out to mean "too fast".
#[derive(Debug, Clone, Copy)]
struct Trial {
    rate: f64,
    spaced: Spacing,
    search: Learned,
}

/// A pace that is measured, from the request with this number on.
#[derive(Debug, Clone, Copy)]
struct Measured {
    sent: u64,
    search: Learned,
    /// The time in which requests came or were held back, without idle time.
    busy: Duration,
    last: Instant,
    held: Duration,
}

impl Measured {
    fn take(&mut self, now: Instant) {
        let gap = now.saturating_duration_since(self.last);
        self.busy += gap.min(IDLE + self.held);
        (self.last, self.held) = (now, Duration::ZERO);
    }
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
            trial: None,
            measured: None,
            kept: None,
            floor: 0.0,
            suspended: None,
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
        if let Some(until) = self.trial.and_then(|trial| trial.spaced.due(now)) {
            let why = Why::Learned;
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
        if let Some(trial) = &mut self.trial {
            trial
                .spaced
                .take(now, seconds(trial.rate.recip()), LATENESS);
        }
        if let Some(measured) = &mut self.measured {
            measured.take(now);
        }
        Turn::Come(self.log.send(now))
    }

    /// A turn ahead of those who wait for what was learned: a stated wait and the user's limit hold.
    pub fn turn_alone(&mut self, now: Instant) -> Turn {
        if let Some(until) = self.held.filter(|until| *until > now) {
            let why = Why::Held;
            return Turn::Wait { until, why };
        }
        if let Some(until) = self.spaced.due(now) {
            let why = Why::Limit;
            return Turn::Wait { until, why };
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
        if let Some(measured) = &mut self.measured {
            measured.held = measured.held.max(wait.min(FOREVER));
        }
        self.held = Some(self.held.map_or(until, |held| held.max(until)));
    }

    /// A request was answered by a wait that says nothing of the rate so far.
    pub fn hold_back(&mut self, refusal: Refusal) {
        self.log.refuse(refusal.number, refusal.sent);
        self.hold(refusal.now, refusal.wait);
    }

    /// A request was refused: all wait.
    pub fn refuse(&mut self, refusal: Refusal) {
        let Refusal {
            by,
            number,
            sent,
            now,
            wait,
            told,
        } = refusal;
        if by == RefusedBy::TooManyRequests || !told {
            self.log.refuse(number, sent);
        }
        self.hold(now, wait);
        // What was sent before an earlier refusal was known is part of that.
        if number > self.settled {
            self.settled = self.log.sent();
            self.episode = Some(Episode {
                began: now,
                first: number,
                refused_before: self.log.refused().saturating_sub(1),
                told,
                by,
            });
        }
    }

    /// These 503s may be refusals; the pace is measured from here on.
    pub fn measure(&mut self, refusals: &[Refusal], now: Instant) {
        for refusal in refusals.iter().filter(|refusal| !refusal.told) {
            self.log.refuse(refusal.number, refusal.sent);
        }
        self.measured = Some(Measured {
            sent: self.log.sent(),
            search: Learned::search(&self.log, 0.0, now),
            busy: Duration::ZERO,
            last: now,
            held: self
                .held
                .map_or(Duration::ZERO, |held| held.saturating_duration_since(now)),
        });
    }

    /// What is learned from here on is learned from 503s.
    pub fn keep(&mut self) {
        self.kept = self.learned;
    }

    /// 503s may be refusals: a lower pace is tried, which is this part of the one measured.
    pub fn suspect(&mut self, part: f64, heeded: bool, now: Instant) {
        if !heeded {
            self.keep();
        }
        let Some(mut measured) = self.measured.take() else {
            return;
        };
        measured.take(now);
        let span = measured.busy.as_secs_f64();
        let before = (self.log.sent() - measured.sent) as f64 / span.max(0.001);
        self.trial = Some(Trial {
            rate: before,
            spaced: Spacing::from(now),
            search: measured.search,
        });
        self.slow_down(part, now);
        self.log.restart(now);
    }

    /// The pace that is tried becomes this part of what it is.
    pub fn slow_down(&mut self, part: f64, now: Instant) {
        if let Some(trial) = &mut self.trial {
            trial.rate = (trial.rate * part).max(SLOWEST_TRIAL);
            trial.spaced = Spacing::from(now + seconds(trial.rate.recip()));
        }
    }

    /// The pace that was tried is slow enough: the limit is searched from there if it is to be
    /// found anew.
    pub fn end_trial(&mut self, anew: bool, now: Instant) {
        if let Some(trial) = self.trial.take() {
            self.learned = match self.learned {
                // A rate that was learned from 429 is in force already.
                Some(learned)
                    if self.kept.is_some() || !anew && learned.rate() < PARTS * trial.rate =>
                {
                    Some(learned.resumed(now))
                }
                _ => {
                    self.floor = trial.rate;
                    Some(trial.search.starting_at(trial.rate, now))
                }
            };
            self.log.restart(now);
        }
    }

    /// What was learned from 503s is dropped.
    pub fn restore(&mut self, now: Instant) {
        self.learned = self.kept;
        self.trial = None;
        self.suspended = None;
        self.episode = None;
        self.log.restart(now);
    }

    /// Searches anew, from above what was learned.
    pub fn lift(&mut self, now: Instant) {
        self.suspended = self.learned;
        self.learned = self.learned.map(|learned| learned.lifted(now));
        self.episode = None;
        self.log.restart(now);
    }

    /// The search was refused: what was learned before holds again, unless it proved far more.
    pub fn confirm(&mut self, now: Instant) {
        let Some(suspended) = self.suspended.take() else {
            return;
        };
        let proven = suspended.far_below(&self.log);
        self.floor = proven.unwrap_or_else(|| suspended.rate()) / PARTS;
        if proven.is_none() {
            self.learned = Some(suspended.emptied(now, false));
            self.episode = None;
            self.log.restart(now);
        }
    }

    /// What the learned rate is like.
    pub fn state(&self) -> unavailable::Learned {
        match self.learned {
            Some(learned) if learned.rate() < self.floor => unavailable::Learned::Collapsed,
            Some(learned) if !learned.is_idle() => unavailable::Learned::Limits,
            _ => unavailable::Learned::Free,
        }
    }

    #[cfg(test)]
    pub fn learned(&self) -> Option<f64> {
        self.learned.as_ref().map(Learned::rate)
    }

    /// A refusal has been waited out, and all that was sent before it has been answered, or nearly.
    fn conclude(&mut self, now: Instant) {
        let Some(episode) = self.episode.take() else {
            self.log.restart(now);
            return;
        };
        let waited = now.saturating_duration_since(episode.began).as_secs_f64();
        let known = self.log.taken_recently() >= 1.0;
        let learned = match self.learned.take() {
            None if !known => None,
            // That 503s are refusals has been found from more than one.
            None if episode.by == RefusedBy::TooManyRequests
                && self.is_stray(episode)
                && !self.doubted =>
            {
                self.doubted = true;
                None
            }
            None => {
                let search = Learned::search(&self.log, waited, now);
                self.floor = search.rate() / PARTS;
                Some(search)
            }
            Some(before) if known => Some(before.refine(&self.log, waited, now)),
            before => before,
        };
        self.learned = learned.map(|learned| learned.emptied(episode.began, episode.told));
        if episode.by == RefusedBy::TooManyRequests {
            self.kept = self.learned;
        }
        self.log.begin(now);
    }

    /// Whether as many passed as were refused, once the first was: that says little of a rate.
    fn is_stray(&self, episode: Episode) -> bool {
        let refused = self.log.refused() - episode.refused_before;
        let later = self.log.sent().saturating_sub(episode.first);
        refused <= later.saturating_sub(refused.saturating_sub(1))
    }
}
