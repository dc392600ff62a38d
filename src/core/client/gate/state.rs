//! What earlier requests showed, and whether the next one may be sent.

use std::time::Duration;

use tokio::time::Instant;

use super::outage::{Outage, Patience, Probe};
use super::rate::{Rate, Spacing};
use super::unavailable::Unavailable;
use super::window::Window;
use super::{Failed, Hold, Wait};
use crate::retry::{Sign, Verdict};

/// All that the gate knows.
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
    pub in_flight: usize,
    /// Places, free or taken. More than the window allows if it has just shrunk.
    pub places: usize,
}

impl State {
    pub fn new(max_concurrency: usize, rate_limit: Option<f64>) -> Self {
        let window = Window::new(max_concurrency);
        Self {
            places: window.size,
            window,
            limit: rate_limit.map(|rate| (rate, Spacing::default())),
            rate: Rate::default(),
            unavailable: Unavailable::default(),
            outage: Outage::default(),
            sent: 0,
            halved: 0,
            in_flight: 0,
        }
    }

    /// Admits a request that has a place, is first in line and whose turn has come, or that probes.
    /// Returns its number.
    pub fn turn(
        &mut self,
        patience: &mut Patience,
        (has_place, is_first): (bool, bool),
        now: Instant,
    ) -> Result<(u64, Option<Probe>), Wait> {
        let probes = self.outage.admit(patience, now)?;
        if probes && self.in_flight >= self.window.most {
            return Err(Wait::ProbeResult(patience.end().unwrap_or(now)));
        }
        if !probes && !has_place {
            return Err(Wait::Place);
        }
        if !probes && !is_first {
            return Err(Wait::Turn(self.rate.closed.unwrap_or(now)));
        }
        let number = self.send(probes, now).map_err(Wait::Turn)?;
        self.in_flight += 1;
        let probe = probes.then(|| self.outage.begin_probe(now)).flatten();
        Ok((number, probe))
    }

    /// Takes the next turn and returns the request's number, or returns when the turn will come. A probe
    /// goes `ahead` of waiting requests and ignores the learned rate.
    pub fn send(&mut self, ahead: bool, now: Instant) -> Result<u64, Instant> {
        let limited = self.limit.and_then(|(_, spacing)| spacing.due(now));
        let closed = self.rate.closed.filter(|closed| *closed > now);
        if let Some(until) = limited.max(closed) {
            return Err(until);
        }
        if !ahead {
            self.rate.turn(self.sent + 1, now)?;
        }
        if let Some((rate, spacing)) = &mut self.limit {
            spacing.take(now, *rate);
        }
        self.sent += 1;
        Ok(self.sent)
    }

    /// Records a response other than a sign of overload or outage; returns the length of the outage
    /// that it ended.
    pub fn answered(&mut self, number: u64, latency: Duration, now: Instant) -> Option<Duration> {
        self.window.answer(latency, self.in_flight, now);
        self.rate.passed(number);
        let (sent, rate) = (self.sent, &mut self.rate);
        self.unavailable.record(number, false, sent, rate, now);
        self.end_outage(number, now)
    }

    /// Records a failure; returns what delays the call, and the length of the outage that it ended.
    pub fn failed(
        &mut self,
        number: u64,
        failed: Failed,
        probe: Option<Probe>,
        patience: &mut Patience,
        now: Instant,
    ) -> (Hold, Option<Duration>) {
        let (sign, stated) = (failed.sign, failed.stated);
        let mut ended = None;
        match sign {
            Sign::Answer | Sign::Refused => ended = self.end_outage(number, now),
            _ => self.outage.fail(number, failed, probe, now),
        }
        if let Some(hold) = self.outage.holds(patience, now) {
            return (hold, ended);
        }
        let is_retried = matches!(failed.verdict, Verdict::Retry { .. });
        let hold = match sign {
            Sign::Refused if is_retried => self.refused(number, stated, now),
            Sign::Unavailable if is_retried && stated.is_some() => {
                self.refused(number, stated, now)
            }
            Sign::Unavailable => {
                let (sent, rate) = (self.sent, &mut self.rate);
                if self.unavailable.record(number, true, sent, rate, now) {
                    self.refused(number, None, now);
                } else {
                    self.rate.failed(number);
                }
                Hold::No
            }
            Sign::Refused | Sign::Timeout => {
                self.halve(number);
                Hold::No
            }
            Sign::Answer | Sign::Broken | Sign::Down => Hold::No,
        };
        (hold, ended)
    }

    /// Records a refusal, which closes the gate.
    fn refused(&mut self, number: u64, stated: Option<Duration>, now: Instant) -> Hold {
        self.halve(number);
        Hold::Closed(self.rate.refuse(number, self.sent, stated, now))
    }

    /// Halves the window, unless the request was sent before it was last halved.
    fn halve(&mut self, number: u64) {
        if number > self.halved {
            self.halved = self.sent;
            self.window.halve();
        }
    }

    fn end_outage(&mut self, number: u64, now: Instant) -> Option<Duration> {
        let (lasted, at_any_pace) = self.outage.answer(number, now)?;
        if at_any_pace {
            // The 503s of an outage do not tell a rate.
            self.rate.forget_last();
            self.unavailable.forget(&mut self.rate);
        }
        Some(lasted)
    }
}
