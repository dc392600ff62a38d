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

/// Whether the service is down. Before the first answer there is no outage, so that a mistyped address
/// fails soon.
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
    /// Requests have failed since then without an answer in between. 503s may come from a limit.
    Failing { since: Instant },
    /// Requests wait while one at a time probes.
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

/// How long one call may wait.
#[derive(Debug)]
pub struct Patience {
    /// The deadline of the call.
    pub deadline: Option<Instant>,
    /// The longest wait for outages to end.
    pub most: Duration,
    /// When it met its first outage. Later ones do not extend the wait.
    since: Option<Instant>,
}

/// A probe to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// When its outage began, which identifies the outage.
    since: Instant,
    /// Every second probe requests the smallest page of users, because only the call's own URL may
    /// fail.
    pub for_users: bool,
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

    /// When the patience ends, if the call has met an outage.
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

    /// Admits a call that does not wait: true if it is selected to probe, false if there is no outage or
    /// it has no patience.
    pub fn admit(&self, patience: &mut Patience, now: Instant) -> Result<bool, Wait> {
        let State::Down(down) = self.state else {
            return Ok(false);
        };
        // A deadline before the first probe is not spent on waiting: there may be no outage.
        let comes_first = |end: Instant| down.probes == 0 && end < down.next_probe;
        if patience.most.is_zero() || patience.deadline.is_some_and(comes_first) {
            return Ok(false);
        }
        patience.since.get_or_insert(now);
        match patience.end().unwrap_or(down.next_probe) {
            end if end <= now => Ok(false),
            end if down.is_probed => Err(Wait::ProbeResult(end)),
            _ if down.next_probe <= now => Ok(true),
            end => Err(Wait::NextProbe(end.min(down.next_probe))),
        }
    }

    /// Begins the probe that is due.
    pub fn begin_probe(&mut self, now: Instant) -> Option<Probe> {
        let State::Down(down) = &mut self.state else {
            return None;
        };
        down.is_probed = true;
        down.probes += 1;
        let is_first = down.probes == 1;
        Some(Probe {
            since: down.since,
            for_users: down.probes.is_multiple_of(2),
            first_after: is_first.then(|| now.saturating_duration_since(down.since)),
        })
    }

    /// Ends a probe, also if it was dropped, so that another can be sent.
    pub fn end_probe(&mut self, probe: Probe) {
        if let State::Down(down) = &mut self.state
            && down.since == probe.since
        {
            down.is_probed = false;
        }
    }

    /// Records an answer, which ends an outage. If a probe had confirmed the outage, returns its length
    /// and whether a probe failed: then the pace was not the cause.
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
    pub fn fail(&mut self, number: u64, failed: Failed, probe: Option<Probe>, now: Instant) {
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
                // A limit also answers 503, but not for long while few requests are sent.
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

    /// Whether a failed call waits for the outage to end, which costs no retry. A call that waited
    /// before pays for its failures until a probe confirms the next outage.
    pub fn holds(&self, patience: &mut Patience, now: Instant) -> Option<Hold> {
        let State::Down(down) = self.state else {
            return None;
        };
        let suspects = down.probes == 0 && patience.since.is_some();
        if self.admit(patience, now) == Ok(false) {
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
