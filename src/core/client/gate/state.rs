//! What is known from earlier requests, and what follows for the next one.

use std::time::Duration;

use tokio::time::Instant;

use super::outage::{Begun, Ended, Outage, Patience, Standing};
use super::rate::{Rate, Spacing};
use super::unavailable::{Judged, Unavailable};
use super::window::Window;
use super::{Failed, Hold, Reported};
use crate::process::chance;
use crate::retry::{self, Sign, Verdict};

/// How many requests are under way, and what earlier ones have shown.
#[derive(Debug)]
pub struct State {
    pub window: Window,
    /// The user's limit in requests per second.
    limit: Option<(f64, Spacing)>,
    rate: Rate,
    unavailable: Unavailable,
    pub outage: Outage,
    sent: u64,
    /// Requests up to this number were sent before the window was last halved.
    halved: u64,
    pub under_way: usize,
}

/// A request at the gate.
#[derive(Debug, Clone, Copy)]
pub struct Asks {
    /// When its call must have ended.
    pub end: Option<Instant>,
    pub is_probe: bool,
    pub has_place: bool,
    /// Nobody waits before it.
    pub is_first: bool,
}

/// What comes next for it.
#[derive(Debug, Clone, Copy)]
pub enum Turn {
    Passes {
        number: u64,
        probe: Option<Begun>,
    },
    /// Its turn comes then; `is_learned` if only the learned rate holds it.
    Waits {
        until: Instant,
        is_learned: bool,
    },
    /// Others wait for their turns, the first of which comes no earlier than this.
    Behind(Instant),
    /// As many are under way as may be.
    NoPlace,
    /// There is an outage, which it waits for until then, and for a probe if there is no time.
    Held(Option<Instant>),
}

impl State {
    pub fn new(max_concurrency: usize, rate_limit: Option<f64>) -> Self {
        Self {
            window: Window::new(max_concurrency),
            limit: rate_limit.map(|rate| (rate, Spacing::default())),
            rate: Rate::default(),
            unavailable: Unavailable::new(),
            outage: Outage::default(),
            sent: 0,
            halved: 0,
            under_way: 0,
        }
    }

    /// Lets a request pass if it may.
    pub fn turn(&mut self, asks: Asks, patience: &mut Patience, now: Instant) -> Turn {
        let standing = match asks.is_probe {
            true => Standing::Probes,
            false => self.outage.standing(patience, asks.end, now),
        };
        match standing {
            Standing::Waits(until) => return Turn::Held(Some(until)),
            Standing::WaitsForProbe => return Turn::Held(patience.end()),
            // The next one that is over rings.
            Standing::Probes if self.under_way >= self.window.most() => return Turn::Held(None),
            Standing::Open if !asks.has_place => return Turn::NoPlace,
            Standing::Open if !asks.is_first => {
                return Turn::Behind(self.rate.closed().unwrap_or(now));
            }
            Standing::Open | Standing::Probes => {}
        }
        let limited = self.limit.and_then(|(_, spacing)| spacing.due(now));
        let closed = self.rate.closed().filter(|closed| *closed > now);
        if let Some(until) = limited.max(closed) {
            let is_learned = false;
            return Turn::Waits { until, is_learned };
        }
        // A probe goes ahead of those that wait, whatever was learned.
        if standing == Standing::Open
            && let Err(until) = self.rate.turn(self.sent + 1, now)
        {
            let is_learned = true;
            return Turn::Waits { until, is_learned };
        }
        if let Some((rate, spacing)) = &mut self.limit {
            spacing.take(now, *rate);
        }
        self.sent += 1;
        self.under_way += 1;
        let begins = standing == Standing::Probes && !asks.is_probe;
        Turn::Passes {
            number: self.sent,
            probe: begins.then(|| self.outage.begin_probe(now)).flatten(),
        }
    }

    /// Records a response that says nothing bad about the service.
    pub fn answered(&mut self, number: u64, latency: Duration, now: Instant) -> Option<Ended> {
        self.window.answer(latency, self.under_way, now);
        self.rate.passed(number);
        let judged = self.unavailable.hear(number, false, self.sent, now);
        self.follow(judged, number, now);
        self.end_outage(number, now)
    }

    /// Records a redirect: what it leads to says more.
    pub fn moved(&mut self, number: u64, latency: Duration, now: Instant) {
        self.window.answer(latency, self.under_way, now);
        self.rate.passed(number);
    }

    /// Records a failure; `end` and `patience` are those of its call.
    pub fn failed(
        &mut self,
        number: u64,
        failed: Failed,
        probe: Option<Begun>,
        (patience, end): (&mut Patience, Option<Instant>),
        now: Instant,
    ) -> Reported {
        let Failed {
            sign,
            stated,
            verdict,
        } = failed;
        let is_answer = matches!(sign, Sign::Answer | Sign::Refused);
        let ended = is_answer.then(|| self.end_outage(number, now)).flatten();
        let is_scheduled = !is_answer && self.outage.fail(number, failed, probe, now);
        if let Some(hold) = self.outage.holds(patience, end, is_scheduled, now) {
            return Reported { ended, hold };
        }
        let mut hold = Hold::No;
        match (sign, stated, verdict) {
            (Sign::Refused, _, Verdict::Retry { wait })
            | (Sign::Unavailable, Some(wait), Verdict::Retry { .. }) => {
                self.refused(number, wait, stated.is_some(), now);
                hold = Hold::Closed(wait);
            }
            (Sign::Unavailable, ..) => {
                let judged = self.unavailable.hear(number, true, self.sent, now);
                self.follow(judged, number, now);
                if judged != Judged::Refusal {
                    self.rate.failed(number);
                }
            }
            (Sign::Refused | Sign::Late, ..) => self.halve(number),
            (Sign::Answer | Sign::Broken | Sign::Down, ..) => {}
        }
        Reported { ended, hold }
    }

    /// Records a refusal, which closes the gate for `wait`.
    fn refused(&mut self, number: u64, wait: Duration, is_stated: bool, now: Instant) {
        self.halve(number);
        self.rate.refuse(number, self.sent, wait, is_stated, now);
    }

    /// How many refusals in a row there are if this request is one.
    pub fn refused_in_a_row(&self, number: u64) -> u32 {
        self.rate.in_a_row(number)
    }

    fn follow(&mut self, judged: Judged, number: u64, now: Instant) {
        match judged {
            Judged::Nothing => {}
            Judged::Refusal => {
                let wait = retry::hold(self.rate.in_a_row(number), chance());
                self.refused(number, wait, false, now);
            }
            Judged::Try(rate) => self.rate.try_rate(rate, now),
            Judged::Search => self.rate.search(now),
            Judged::Forget => self.rate.forget(),
        }
    }

    /// Halves the window, unless the request was sent before it was last halved.
    fn halve(&mut self, number: u64) {
        if number > self.halved {
            self.halved = self.sent;
            self.window.halve();
        }
    }

    fn end_outage(&mut self, number: u64, now: Instant) -> Option<Ended> {
        let ended = self.outage.answer(number, now)?;
        if ended.at_any_pace {
            // Its 503s say nothing about a rate.
            self.rate.forget_last();
            if self.unavailable.is_slower() {
                self.rate.forget();
            }
            self.unavailable = Unavailable::new();
        }
        Some(ended)
    }

    #[cfg(test)]
    pub fn learned(&self) -> Option<f64> {
        self.rate.learned()
    }
}
