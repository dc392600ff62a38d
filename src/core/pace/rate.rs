//! Requests per second: what the user allows, and what the service turns out to allow.
//!
//! Nothing is limited until the service refuses a request; then `learned.rs` finds the limit.

use std::time::Duration;

use tokio::time::Instant;

use super::bans::{Bans, Verdict};
use super::finding::LearnedState;
use super::learned::Learned;
use super::log::Log;
use super::refusal::{Refusal, RefusedBy};
use super::spacing::{FOREVER, LATENESS, Spacing, seconds};
use super::unstated::{InARow, Unstated};

/// A longer gap between two requests is idle time, unless requests were held back.
const IDLE: Duration = Duration::from_millis(100);
/// The lowest pace tried, in requests per second.
const SLOWEST_TRIAL: f64 = 1.0;
/// A learned rate lower than an earlier one divided by this has collapsed.
const PARTS: f64 = 4.0;

/// Turns under everything that limits the rate.
#[derive(Debug)]
pub struct Rate {
    limit: Option<Duration>,
    spaced: Spacing,
    held: Option<Instant>,
    log: Log,
    episode: Option<Episode>,
    /// Requests up to this number were sent before the last refusal was known.
    settled: u64,
    /// Once, a request was refused while others passed: that may have had another reason.
    doubted: bool,
    learned: Option<Learned>,
    /// The pace of a trial of 503s.
    trial: Option<Trial>,
    /// A pace that is being measured.
    measured: Option<Measured>,
    /// What was learned without 503s.
    kept: Option<Learned>,
    bans: Bans,
    /// The rate known to pass, if 503s mean "too fast", in requests per second.
    floor: f64,
    /// What was learned from 503s, while it is lifted.
    suspended: Option<Learned>,
    unstated: Unstated<Believed>,
}

/// What was believed before a refusal's wait was over.
#[derive(Debug)]
struct Believed {
    episode: Episode,
    log: Log,
    learned: Option<Learned>,
    kept: Option<Learned>,
    doubted: bool,
    floor: f64,
}

/// A refusal, until its wait is over.
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

/// The answer to a request's attempt to take a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The request may be sent; its number.
    Come(u64),
    Wait {
        until: Instant,
        why: Why,
    },
}

/// The reason for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The user's `rate_limit`.
    Limit,
    /// A refusal by the service.
    Held,
    /// The learned rate.
    Learned,
}

impl Rate {
    /// At most `limit` requests per second.
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
            bans: Bans::default(),
            floor: 0.0,
            suspended: None,
            unstated: Unstated::default(),
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

    /// Takes a turn ahead of those waiting for the learned rate; stated waits and the user's limit
    /// apply.
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

    /// Until when all requests are held back.
    pub fn held(&self) -> Option<Instant> {
        self.held
    }

    /// Holds back all requests.
    pub fn hold(&mut self, now: Instant, wait: Duration) {
        let until = now + wait.min(FOREVER);
        if let Some(measured) = &mut self.measured {
            measured.held = measured.held.max(wait.min(FOREVER));
        }
        self.held = Some(self.held.map_or(until, |held| held.max(until)));
    }

    /// Records a refusal whose wait says nothing about the rate.
    pub fn hold_back(&mut self, refusal: Refusal) {
        self.log.refuse(refusal.number, refusal.sent);
        self.hold(refusal.now, refusal.wait);
    }

    /// Records a refusal: all requests wait.
    pub fn refuse(&mut self, refusal: Refusal) {
        let Refusal {
            by,
            number,
            sent,
            now,
            wait,
            told,
        } = refusal;
        self.hold(now, wait);
        // Requests sent before an earlier refusal was known belong to its episode.
        let anew = number > self.settled;
        if refusal.is_unstated() && self.unstated.goes_on(number, now) {
            self.log.disregard();
            if anew {
                self.settled = self.log.sent();
                self.take_back();
            }
            return;
        }
        if anew {
            self.log.settle();
        }
        if by == RefusedBy::TooManyRequests || !told {
            self.log.refuse(number, sent);
        }
        if anew {
            self.unstated = match refusal.is_unstated() {
                true => Unstated::begin(self.log.sent(), self.held),
                false => Unstated::default(),
            };
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

    /// The 429s without a stated wait so far, if this request is refused so.
    pub fn refused_in_a_row(&self, number: u64, now: Instant) -> InARow {
        let sent = self.log.sent();
        self.unstated.in_a_row(number, self.settled, sent, now)
    }

    /// Records that the call of a request that was refused so has given up: the waits of others
    /// begin anew, unless they have all been too short.
    pub fn gave_up(&mut self, exhausted: bool) {
        if !exhausted {
            self.unstated = Unstated::default();
        }
    }

    /// Records that this request was answered.
    pub fn passed(&mut self, number: u64) {
        self.unstated.passed(number);
    }

    /// What is learned from 503s from here on replaces what was believed.
    pub fn keep_conclusion(&mut self) {
        self.unstated.keep_conclusion();
    }

    /// The last wait was too short: continues the refusal before it.
    fn take_back(&mut self) {
        if let Some(believed) = self.unstated.go_on(self.held) {
            let Believed {
                episode,
                log,
                learned,
                kept,
                doubted,
                floor,
            } = *believed;
            self.episode = Some(episode);
            self.log = log.continued(&self.log);
            self.learned = learned;
            self.kept = kept;
            self.doubted = doubted;
            self.floor = floor;
        }
    }

    /// These 503s may be refusals; measures the pace from here on.
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

    /// Saves the learned rate: from here on it is learned from 503s.
    pub fn keep(&mut self) {
        self.kept = self.learned;
    }

    /// 503s may be refusals: tries a lower pace, this part of the measured one.
    pub fn suspect(&mut self, part: f64, obeyed: bool, now: Instant) {
        if !obeyed {
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

    /// Lowers the trial's pace to this part of itself.
    pub fn slow_down(&mut self, part: f64, now: Instant) {
        if let Some(trial) = &mut self.trial {
            trial.rate = (trial.rate * part).max(SLOWEST_TRIAL);
            trial.spaced = Spacing::from(now + seconds(trial.rate.recip()));
        }
    }

    /// The trial's pace is slow enough: the limit is searched from there if it must be found anew.
    pub fn end_trial(&mut self, anew: bool, now: Instant) {
        if let Some(trial) = self.trial.take() {
            self.learned = match self.learned {
                // A rate learned from 429s is already in force.
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

    /// Drops what was learned from 503s.
    pub fn restore(&mut self, now: Instant) {
        self.learned = self.kept;
        self.trial = None;
        self.suspended = None;
        self.episode = None;
        self.log.restart(now);
    }

    /// Searches anew, from above the learned rate.
    pub fn lift(&mut self, now: Instant) {
        self.suspended = self.learned;
        self.learned = self.learned.map(|learned| learned.lifted(now));
        self.episode = None;
        self.log.restart(now);
    }

    /// The search was refused: restores the learned rate, unless far more was proved.
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

    /// The state of the learned rate.
    pub fn state(&self) -> LearnedState {
        match self.learned {
            Some(learned) if learned.rate() < self.floor => LearnedState::Collapsed,
            Some(learned) if !learned.is_idle() => LearnedState::Limits,
            _ => LearnedState::Free,
        }
    }

    #[cfg(test)]
    pub fn learned(&self) -> Option<f64> {
        self.learned.as_ref().map(Learned::rate)
    }

    /// A refusal's wait is over, and nearly all requests sent before it have been answered.
    fn conclude(&mut self, now: Instant) {
        let Some(episode) = self.episode.take() else {
            self.log.restart(now);
            return;
        };
        let unstated = self.unstated.is_under_way();
        if unstated {
            self.unstated.believe(Believed {
                episode,
                log: self.log.clone(),
                learned: self.learned,
                kept: self.kept,
                doubted: self.doubted,
                floor: self.floor,
            });
        }
        let waited = now.saturating_duration_since(episode.began).as_secs_f64();
        let known = self.log.taken_recently() >= 1.0;
        let mut banned = false;
        let bans = match unstated {
            true => Verdict::Unknown,
            false => self.bans.conclude(waited, self.log.lasted(), self.learned),
        };
        match bans {
            Verdict::NotBans(before) => {
                let before = before.map(|before| before.resumed(now));
                self.learned = before.map(|before| before.emptied(episode.began, episode.told));
                if episode.by == RefusedBy::TooManyRequests {
                    self.kept = self.learned;
                }
                self.log.begin(now);
                return;
            }
            Verdict::Bans => banned = true,
            Verdict::Unknown => {}
        }
        let learned = match self.learned.take() {
            None if !known => None,
            // That 503s are refusals was established from more than one.
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
                match banned {
                    true => Some(search.after_ban(&self.log, waited, now)),
                    false => Some(search),
                }
            }
            Some(before) if known && banned => Some(before.after_ban(&self.log, waited, now)),
            Some(before) if known => Some(before.refine(&self.log, waited, now)),
            before => before,
        };
        self.learned = learned.map(|learned| learned.emptied(episode.began, episode.told));
        if episode.by == RefusedBy::TooManyRequests {
            self.kept = self.learned;
        }
        self.log.begin(now);
    }

    /// Whether as many passed as were refused after the first refusal: that says little about a
    /// rate.
    fn is_stray(&self, episode: Episode) -> bool {
        let refused = self.log.refused() - episode.refused_before;
        let later = self.log.sent().saturating_sub(episode.first);
        refused <= later.saturating_sub(refused.saturating_sub(1))
    }
}
