//! An outage of the whole service: one event, not one for each request.

use std::time::Duration;

use tokio::time::Instant;

use super::{FOREVER, Failed, Hold, Wait};
use crate::process::chance;
use crate::retry::{Sign, Verdict, jittered};

/// The wait before an outage's first probe: most restarts of a proxy are over by then.
const FIRST_PROBE: Duration = Duration::from_millis(500);
/// The longest wait between probes, so that reading resumes soon after a long outage, too.
const LONGEST_PROBE: Duration = Duration::from_secs(5);

/// Whether the service is down. It is never, before its first answer: a mistyped address fails at
/// once.
#[derive(Debug, Default)]
pub struct Outage {
    state: State,
    /// The latest request that was answered; 0 before the first.
    answered: u64,
    /// The total length of past outages.
    past: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Up,
    /// Requests have failed since then, and none was answered; 503s may be a limit.
    Failing { since: Instant },
    /// Requests wait, and one at a time probes.
    Down(Down),
}

#[derive(Debug, Clone, Copy)]
struct Down {
    since: Instant,
    next_probe: Instant,
    /// The wait between the next probe and the one after.
    interval: Duration,
    probes: u32,
    is_probed: bool,
}

/// How long one call waits.
#[derive(Debug)]
pub struct Patience {
    /// When it must have ended.
    pub deadline: Option<Instant>,
    /// How long it waits for the ends of outages.
    pub most: Duration,
    /// When it met its first outage: later ones do not extend the wait.
    since: Option<Instant>,
}

/// A probe that is to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    /// When its outage began, which tells one outage from another.
    since: Instant,
    /// Every second probe asks for the smallest page of users instead of the call's own request,
    /// whose address may be all that fails.
    pub of_users: bool,
    /// How long the outage had lasted, if this is its first probe.
    pub first_after: Option<Duration>,
}

impl Patience {
    pub fn new(deadline: Option<Instant>, most: Duration) -> Self {
        let since = None;
        Self {
            deadline,
            most,
            since,
        }
    }

    /// When it is over, if the call has met an outage.
    pub fn end(&self) -> Option<Instant> {
        self.since?.checked_add(self.most.min(FOREVER))
    }

    /// Whether the call has waited as long as it may.
    pub fn is_over(&self, now: Instant) -> bool {
        !self.most.is_zero() && self.end().is_some_and(|end| end <= now)
    }
}

impl Outage {
    pub fn is_on(&self) -> bool {
        matches!(self.state, State::Down(_))
    }

    /// Whether a call is to probe, if it does not wait: there is no outage, or it has no patience.
    pub fn lets(&self, patience: &mut Patience, now: Instant) -> Result<bool, Wait> {
        let State::Down(down) = self.state else {
            return Ok(false);
        };
        // A deadline before it is known whether there is an outage is not spent on waiting.
        let comes_first = |end: Instant| down.probes == 0 && end < down.next_probe;
        if patience.most.is_zero() || patience.deadline.is_some_and(comes_first) {
            return Ok(false);
        }
        patience.since.get_or_insert(now);
        match patience.end().unwrap_or(down.next_probe) {
            end if end <= now => Ok(false),
            end if down.is_probed => Err(Wait::Result(end)),
            _ if down.next_probe <= now => Ok(true),
            end => Err(Wait::Probe(end.min(down.next_probe))),
        }
    }

    /// Begins the probe that is due.
    pub fn begin_probe(&mut self, now: Instant) -> Option<Begun> {
        let State::Down(down) = &mut self.state else {
            return None;
        };
        down.is_probed = true;
        down.probes += 1;
        let is_first = down.probes == 1;
        Some(Begun {
            since: down.since,
            of_users: down.probes.is_multiple_of(2),
            first_after: is_first.then(|| now.saturating_duration_since(down.since)),
        })
    }

    /// The probe is over, or was dropped: another takes its place.
    pub fn end_probe(&mut self, probe: Begun) {
        if let State::Down(down) = &mut self.state
            && down.since == probe.since
        {
            down.is_probed = false;
        }
    }

    /// Records an answer, which ends an outage. Returns how long it lasted if a probe confirmed it, and
    /// whether requests failed even when sent one at a time: the pace was not the cause.
    pub fn answer(&mut self, number: u64, now: Instant) -> Option<(Duration, bool)> {
        self.answered = self.answered.max(number);
        let State::Down(down) = std::mem::take(&mut self.state) else {
            return None;
        };
        if down.probes == 0 {
            return None;
        }
        let lasted = now.saturating_duration_since(down.since);
        self.past += lasted;
        Some((lasted, down.interval > 2 * FIRST_PROBE))
    }

    /// Records a failure, which may begin an outage.
    pub fn fail(&mut self, number: u64, failed: Failed, probe: Option<Begun>, now: Instant) {
        let (sign, stated) = (failed.sign, failed.stated);
        let after = |wait| {
            let wait = stated.unwrap_or(jittered(wait, chance()));
            now + wait.clamp(FIRST_PROBE, FOREVER)
        };
        match &mut self.state {
            _ if self.answered == 0 => {}
            // A request that was sent later was answered.
            State::Up | State::Failing { .. } if self.answered > number => {}
            State::Up => {
                if matches!(sign, Sign::Down | Sign::Unavailable) {
                    self.state = State::Failing { since: now };
                }
            }
            State::Failing { since } => {
                // A limit answers 503, too, but not for long if requests are few.
                let lasts = now.saturating_duration_since(*since) >= FIRST_PROBE;
                let counts = lasts || failed.verdict == Verdict::GiveUp;
                if sign == Sign::Down || sign == Sign::Unavailable && counts {
                    self.state = State::Down(Down {
                        since: *since,
                        next_probe: after(FIRST_PROBE),
                        interval: 2 * FIRST_PROBE,
                        probes: 0,
                        is_probed: false,
                    });
                }
            }
            State::Down(down) => {
                let is_probe = probe.is_some_and(|probe| probe.since == down.since);
                if is_probe || stated.is_some() {
                    down.next_probe = after(down.interval);
                }
                if is_probe {
                    down.interval = (2 * down.interval).min(LONGEST_PROBE);
                    down.is_probed = false;
                }
            }
        }
    }

    /// Whether a call that failed waits for the end of the outage, if there is one, instead of using
    /// up a retry. One that has waited before and fails again is the first to suspect another outage.
    pub fn holds(&self, patience: &mut Patience, now: Instant) -> Option<Hold> {
        let State::Down(down) = self.state else {
            return None;
        };
        let suspects = down.probes == 0 && patience.since.is_some();
        if self.lets(patience, now) == Ok(false) {
            return patience.is_over(now).then_some(Hold::TooLong);
        }
        let wait = down.next_probe.saturating_duration_since(now);
        (!suspects).then_some(Hold::Outage(wait))
    }

    /// How long the service has been down, in all outages together.
    pub fn total(&self, now: Instant) -> Duration {
        match self.state {
            State::Down(down) if down.probes > 0 => {
                self.past + now.saturating_duration_since(down.since)
            }
            _ => self.past,
        }
    }
}
