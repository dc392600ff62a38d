//! The results of requests, and what follows for later ones.

use std::time::Duration;

use tokio::time::Instant;

use super::finding::Finding;
use super::rate::{Rate, Turn};
use super::refusal::{Refusal, RefusedBy};
use super::unavailable::Unavailable;
use super::unstated::InARow;
use super::window::Window;

/// How many requests at once and per second, from the results of earlier ones.
#[derive(Debug)]
pub struct State {
    window: Window,
    rate: Rate,
    unavailable: Unavailable,
    /// Requests up to this number were sent before the window was last halved.
    halved: u64,
}

impl State {
    pub fn new(max_concurrency: usize, rate_limit: Option<f64>) -> Self {
        Self {
            window: Window::new(max_concurrency),
            rate: Rate::new(rate_limit),
            unavailable: Unavailable::new(),
            halved: 0,
        }
    }

    /// Takes a turn if it has come.
    pub fn turn(&mut self, now: Instant) -> Turn {
        self.rate.turn(now)
    }

    /// Takes a turn ahead of others; see [`Rate::turn_alone`].
    pub fn turn_alone(&mut self, now: Instant) -> Turn {
        self.rate.turn_alone(now)
    }

    /// Until when all requests are held back.
    pub fn held(&self) -> Option<Instant> {
        self.rate.held()
    }

    /// How many requests may be in flight now.
    pub fn size(&self) -> usize {
        self.window.size()
    }

    /// How many requests may ever be in flight.
    pub fn most(&self) -> usize {
        self.window.most()
    }

    pub fn silent_until(&mut self, now: Instant) -> Option<Instant> {
        self.window.silent_until(now)
    }

    pub fn wait_no_longer(&mut self, now: Instant) {
        self.window.wait_no_longer(now);
    }

    /// Records a response that was not a server error.
    pub fn answered(&mut self, number: u64, latency: Duration, under_way: usize, now: Instant) {
        self.window.answer(latency, under_way, now);
        self.rate.passed(number);
        let finding = self.judge(number, None);
        self.follow(finding, now);
    }

    /// See [`Rate::refused_in_a_row`].
    pub fn refused_in_a_row(&self, number: u64, now: Instant) -> InARow {
        self.rate.refused_in_a_row(number, now)
    }

    /// Records a 429 without a stated wait whose call gave up; see [`Rate::gave_up`].
    pub fn gave_up(&mut self, number: u64, exhausted: bool) {
        self.overloaded(number);
        self.rate.gave_up(exhausted);
    }

    /// Records that the service refused the request.
    pub fn refused(&mut self, refusal: Refusal) {
        match refusal.by {
            RefusedBy::TooManyRequests => {
                self.overloaded(refusal.number);
                self.rate.refuse(refusal);
            }
            RefusedBy::Unavailable => {
                // A stated wait is obeyed, whatever it means.
                if refusal.told {
                    self.rate.hold_back(refusal);
                }
                let finding = self.judge(refusal.number, Some(refusal));
                self.follow(finding, refusal.now);
            }
        }
    }

    /// Halves the window, unless the request was sent before it was last halved.
    pub fn overloaded(&mut self, number: u64) {
        if number > self.halved {
            self.halved = self.rate.sent();
            self.window.halve();
        }
    }

    /// Drops what was learned from 503s.
    pub fn forget_unavailable(&mut self, now: Instant) {
        self.unavailable = Unavailable::new();
        self.rate.keep_conclusion();
        self.rate.restore(now);
    }

    #[cfg(test)]
    pub fn hold_back(&mut self, refusal: Refusal) {
        self.rate.hold_back(refusal);
    }

    #[cfg(test)]
    pub fn learned(&self) -> Option<f64> {
        self.rate.learned()
    }

    fn judge(&mut self, number: u64, refusal: Option<Refusal>) -> Finding {
        let (sent, learned) = (self.rate.sent(), self.rate.state());
        self.unavailable.answered(number, refusal, sent, learned)
    }

    fn follow(&mut self, finding: Finding, now: Instant) {
        if !matches!(finding, Finding::Nothing) {
            self.rate.keep_conclusion();
        }
        match finding {
            Finding::Nothing => {}
            Finding::Believed(refusals) => {
                self.rate.keep();
                self.refuse(&refusals);
            }
            Finding::Watched(refusals) => self.rate.measure(&refusals, now),
            Finding::Suspected { part, obeyed } => self.rate.suspect(part, obeyed, now),
            Finding::Slower(part) => self.rate.slow_down(part, now),
            Finding::TooFast { anew } => self.rate.end_trial(anew, now),
            Finding::Refused(refusals) => self.refuse(&refusals),
            Finding::Unrelated => self.rate.restore(now),
            Finding::Lifted => self.rate.lift(now),
            Finding::Confirmed(refusals) => {
                self.refuse(&refusals);
                self.rate.confirm(now);
            }
        }
    }

    fn refuse(&mut self, refusals: &[Refusal]) {
        for refusal in refusals {
            self.overloaded(refusal.number);
            self.rate.refuse(*refusal);
        }
    }
}
