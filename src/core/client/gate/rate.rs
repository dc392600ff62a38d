//! The rate learned from refusals, and until when the gate is closed.

use std::time::Duration;

use tokio::time::Instant;

use super::{FEW, FOREVER, NOISE};
use crate::process::chance;
use crate::retry::jittered;

/// The new goal as a share of the refused rate: low enough to stay below the limit for most of a
/// plateau, high enough to use it.
const BELOW: f64 = 0.95;
/// During the search for a limit, the rate grows e-fold in a quarter of its wait, within these bounds in
/// seconds. Faster growth overshoots; slower growth wastes a short read.
const SEARCH: (f64, f64) = (0.6, 20.0);
/// How long the rate takes to reach its goal: 20 waits, within these bounds in seconds. Each refusal
/// costs one wait, so testing the limit costs a twentieth.
const PLATEAU: (f64, f64, f64) = (20.0, 2.0, 120.0);

/// How long consecutive 429s without a stated wait close the gate, in milliseconds. With the default of
/// five retries a call outlasts a limit per minute, and does not wait much longer than a limit per
/// second or per ten seconds. Under longer limits, calls soon run out of retries.
const HOLDS: [u64; 6] = [150, 750, 3_000, 8_000, 50_000, 1_000];

/// Evenly spaced turns. Delays by timers are compensated.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spacing {
    next: Option<Instant>,
}

impl Spacing {
    /// When the next turn comes, if that is in the future.
    pub fn due(self, now: Instant) -> Option<Instant> {
        self.next.filter(|next| *next > now)
    }

    /// Takes a turn that is due, at `rate` per second.
    pub fn take(&mut self, now: Instant, rate: f64) {
        let earliest = now.checked_sub(NOISE).unwrap_or(now);
        let turn = self.next.map_or(now, |next| next.max(earliest));
        self.next = turn.checked_add(seconds(1.0 / rate));
    }
}

/// The learned rate, if any, and whether the gate is closed.
#[derive(Debug, Default)]
pub struct Rate {
    /// Until when the gate is closed for all.
    pub closed: Option<Instant>,
    learned: Option<Learned>,
    /// What was learned before the last refusals.
    before: Option<Learned>,
    /// When the first request passed after the gate opened, its number, and how many failed since.
    opened: Option<Instant>,
    first: u64,
    failed: u64,
    refused: Option<Refused>,
    /// The number of the last request sent before the last refusal was received.
    known: u64,
    /// Refusals since a request last passed.
    in_a_row: usize,
    /// One refusal after few requests was already ignored as chance.
    was_chance: bool,
}

/// A refusal, and how many requests had passed before it since the gate opened.
#[derive(Debug, Clone, Copy)]
struct Refused {
    at: Instant,
    opened: Instant,
    passed: f64,
    /// The first request after the wait was refused too.
    again: bool,
    /// It is evaluated when the gate opens.
    is_new: bool,
    /// The first refusal, after so few requests that it may not come from a limit.
    is_chance: bool,
}

#[derive(Debug, Clone, Copy)]
struct Learned {
    /// Requests per second.
    rate: f64,
    start: f64,
    growth: Growth,
    /// Seconds during which requests used the rate.
    used: f64,
    at: Instant,
    spacing: Spacing,
}

/// How a rate changes while nothing is refused.
#[derive(Debug, Clone, Copy)]
enum Growth {
    /// Before the limit is known: e-fold per `stride` seconds; constant if that is infinite.
    Search { stride: f64 },
    /// Along a cubic: fast at first, slowly near `goal`, which it reaches after `plateau` seconds, then
    /// faster again, in case the limit was raised.
    Known { goal: f64, plateau: f64 },
}

impl Learned {
    fn new(rate: f64, growth: Growth, now: Instant) -> Self {
        Self {
            rate,
            start: rate,
            growth,
            used: 0.0,
            at: now,
            spacing: Spacing { next: Some(now) },
        }
    }

    /// The rate that follows from a refusal, when the gate opens again.
    fn after(refused: Refused, before: Option<Self>, opens: Instant) -> Self {
        let between =
            |from, to: Instant| to.saturating_duration_since(from).as_secs_f64().max(1e-3);
        let wait = between(refused.at, opens);
        // The average over the whole period of the limit; the rate until the refusal was higher.
        let whole = refused.passed / between(refused.opened, opens);
        let Some(before) = before else {
            let stride = (wait / 4.0).clamp(SEARCH.0, SEARCH.1);
            let growth = Growth::Search { stride };
            return Self::new(whole.max(FEW as f64), growth, opens);
        };
        let fastest = if refused.again {
            whole
        } else {
            refused.passed / between(refused.opened, refused.at)
        };
        let goal = BELOW * before.rate;
        let start = BELOW * whole.max(fastest.min(before.rate)).min(goal);
        let (waits, least, most) = PLATEAU;
        let plateau = (waits * wait).clamp(least, most);
        Self::new(start, Growth::Known { goal, plateau }, opens)
    }

    fn grown(&self) -> f64 {
        match self.growth {
            Growth::Search { stride } => self.start * (self.used / stride).exp(),
            Growth::Known { goal, plateau } => {
                let distance = (goal / self.start).ln();
                goal * (distance * (self.used / plateau - 1.0).powi(3)).exp()
            }
        }
    }

    /// Takes a turn, or returns when it will come.
    fn turn(&mut self, now: Instant) -> Result<(), Instant> {
        if let Some(due) = self.spacing.due(now) {
            return Err(due);
        }
        let since = |from: Instant| now.saturating_duration_since(from);
        let idle = self
            .spacing
            .next
            .is_none_or(|next| since(next) >= NOISE + seconds(1.0 / self.rate));
        if !idle {
            self.used += since(self.at).as_secs_f64();
        }
        self.at = now;
        self.rate = self.grown();
        self.spacing.take(now, self.rate);
        Ok(())
    }
}

impl Rate {
    /// Takes the turn of the request with this number, or returns when its turn will come.
    pub fn turn(&mut self, number: u64, now: Instant) -> Result<(), Instant> {
        if let Some(closed) = self.closed.filter(|closed| *closed > now) {
            return Err(closed);
        }
        if let Some(refused) = self.refused.as_mut().filter(|refused| refused.is_new) {
            refused.is_new = false;
            if !refused.is_chance {
                self.learned = Some(Learned::after(*refused, self.before, now));
            }
            self.opened = None;
            self.known = number - 1;
        }
        if let Some(learned) = &mut self.learned {
            learned.turn(now)?;
        }
        if self.opened.is_none() {
            (self.opened, self.first, self.failed) = (Some(now), number, 0);
        }
        Ok(())
    }

    /// Records a request that was not refused.
    pub fn passed(&mut self, number: u64) {
        if number > self.known {
            self.in_a_row = 0;
        }
    }

    /// Records a request that does not count as passed.
    pub fn failed(&mut self, number: u64) {
        self.failed += u64::from(number >= self.first);
    }

    /// Records a refusal after `sent` requests. Closes the gate for the `stated` wait or, without one, for
    /// increasing times; returns the wait. A request that was sent before the last refusal was received
    /// changes nothing, unless its response states a wait.
    pub fn refuse(
        &mut self,
        number: u64,
        sent: u64,
        stated: Option<Duration>,
        now: Instant,
    ) -> Duration {
        let is_new = number > self.known;
        let ended = |closed| now.saturating_duration_since(closed).as_millis() as u64;
        if self.closed.is_some_and(|closed| ended(closed) > HOLDS[4]) {
            // Refusals that long ago are unrelated to this one.
            self.in_a_row = 0;
        }
        if is_new {
            match &mut self.refused {
                Some(refused) if self.in_a_row > 0 => {
                    (refused.again, refused.is_new) = (true, true);
                }
                refused => {
                    let passed = number.saturating_sub(self.first + self.failed);
                    let is_few = self.learned.is_none() && passed < FEW as u64;
                    *refused = Some(Refused {
                        at: now,
                        opened: self.opened.unwrap_or(now),
                        passed: (passed as f64).max(0.5),
                        again: false,
                        is_new: true,
                        is_chance: is_few && !std::mem::replace(&mut self.was_chance, true),
                    });
                    self.before = self.learned;
                }
            }
            self.in_a_row += 1;
            self.known = sent;
        }
        self.failed(number);
        let step = HOLDS.get(self.in_a_row.saturating_sub(1)).or(HOLDS.last());
        let hold = Duration::from_millis(step.copied().unwrap_or_default());
        let until = match stated {
            Some(stated) => now + stated.min(FOREVER),
            None if is_new => now + jittered(hold, chance()),
            None => now,
        };
        let until = self.closed.map_or(until, |closed| closed.max(until));
        self.closed = Some(until);
        until.saturating_duration_since(now)
    }

    /// Sets a constant rate.
    pub fn try_rate(&mut self, rate: f64, now: Instant) {
        let stride = f64::INFINITY;
        self.learned = Some(Learned::new(rate, Growth::Search { stride }, now));
    }

    /// Starts the search for the limit from the current rate.
    pub fn search(&mut self, now: Instant) {
        if let Some(learned) = self.learned {
            let growth = Growth::Search { stride: SEARCH.0 };
            self.learned = Some(Learned {
                spacing: learned.spacing,
                ..Learned::new(learned.rate, growth, now)
            });
        }
    }

    /// Discards the learned rate.
    pub fn forget(&mut self) {
        self.learned = None;
        self.refused = None;
    }

    /// Discards what was learned from the last refusals, if no request has passed since.
    pub fn forget_last(&mut self) {
        if self.in_a_row > 0 {
            self.learned = self.before;
            self.refused = None;
        }
    }
}

fn seconds(length: f64) -> Duration {
    Duration::try_from_secs_f64(length).map_or(FOREVER, |length| length.min(FOREVER))
}
