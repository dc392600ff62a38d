//! An outage of the whole service is one event, not one for each request in flight.
//!
//! It begins when two requests in a row fail with a connection error, 502, 503 or 504, and no
//! request sent since the first of them got any other response. One failure alone may be a single
//! unhealthy backend, and is retried as usual. A 503 may also mean "too fast", so 503s must keep
//! coming for half a second, or number `MANY`, without any other response, or use up the retries of
//! a request.
//!
//! Until any other response comes, all requests wait while one at a time probes: after
//! `FIRST_PROBE`, then at intervals that double up to `LONGEST_PROBE`, with jitter so that clients
//! do not return together, or at the time that Retry-After states. Every second probe of a
//! call requests another URL, because the call's own may be all that fails. An outage that ends
//! before the first probe does not count as one.
//!
//! A service that has never answered has no outage: a wrong base URL fails at once.

mod patience;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use self::patience::FOREVER;
pub use self::patience::Patience;
use super::error::ErrorKind;
use super::observer::OutageNote;
use super::process::chance;
use backread_clock::Clock;

/// The wait before an outage's first probe, and the longest one between later probes.
const FIRST_PROBE: Duration = Duration::from_millis(500);
const LONGEST_PROBE: Duration = Duration::from_secs(5);
/// This many 503s in a row are unlikely to come from a rate limiter; if they do, the wait is short.
const MANY: u32 = 32;
/// Calls that have not probed yet go first: the others may fail for another reason.
const PRECEDENCE: Duration = Duration::from_millis(50);
/// Each probe's wait varies by up to this fraction.
const JITTER: f64 = 0.2;

/// The outage state that all requests of a client share.
#[derive(Debug)]
pub struct Outages {
    state: Mutex<State>,
    changed: Notify,
    clock: Clock,
}

#[derive(Debug, Default)]
struct State {
    sent: u64,
    /// The latest request that was answered; 0 before the first.
    answered: u64,
    /// The failures since the last response: when the first came, and how many.
    failures: Option<(Instant, u32)>,
    closed: bool,
    current: Option<Outage>,
    /// The total length of past outages.
    past: Duration,
}

#[derive(Debug)]
struct Outage {
    began: Instant,
    next_probe: Instant,
    /// The wait between the next probe and the one after.
    interval: Duration,
    probing: bool,
    /// Whether a probe was sent.
    confirmed: Arc<AtomicBool>,
    /// Whether a probe, which is sent alone, failed.
    at_any_pace: bool,
}

/// An outage that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    pub lasted: Duration,
    /// Requests failed even when sent one at a time: the pace was not the cause.
    pub at_any_pace: bool,
}

/// Permission to send a request.
#[derive(Debug)]
pub enum Pass<'a> {
    /// There is no outage.
    Open,
    /// This request probes whether the outage is over.
    Probe(Probe<'a>),
    /// The call's deadline comes before it is known whether there is an outage.
    Hurried,
    /// The call's patience is exhausted: one last attempt.
    Last,
}

/// The one request that probes. If it is dropped without an answer, another takes its place at
/// once.
#[derive(Debug)]
pub struct Probe<'a> {
    outages: &'a Outages,
    outage: Arc<AtomicBool>,
    /// Its result has been recorded.
    ended: bool,
    /// The call's previous probe, its own request, failed.
    elsewhere: bool,
    /// For the first probe: how long the outage had lasted by then.
    first_after: Option<Duration>,
}

/// A failure that may be part of an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    /// The request's number.
    pub number: u64,
    /// The wait that the service requested, if any.
    pub retry_after: Option<Duration>,
    /// The status may come from a rate limiter, which answers 503, too.
    pub may_be_too_fast: bool,
    /// No retries are left.
    pub is_last: bool,
}

/// The consequence of a failure that is part of an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Down {
    /// Until the next probe.
    pub next_probe: Duration,
    /// Whether this failure set the time of the next probe.
    pub scheduled: bool,
}

/// The deadline comes before the next probe, or passed while another request probed (then no wait).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastDeadline {
    pub wait: Option<Duration>,
}

/// What proxies answer while a service is down; 520 to 524 and 530 are Cloudflare's.
pub fn is_of_outage(status: u16) -> bool {
    matches!(status, 502..=504 | 520..=524 | 530)
}

/// Whether such a failure can be part of an outage.
pub fn is_sign(failure: &ErrorKind) -> bool {
    match failure {
        ErrorKind::Connect(_) => true,
        ErrorKind::Status(failure) => is_of_outage(failure.status),
        _ => false,
    }
}

impl Pass<'_> {
    /// Whether there is no outage.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// Whether to probe with a request other than the call's own, whose URL alone may fail.
    pub fn probes_elsewhere(&self) -> bool {
        matches!(self, Self::Probe(probe) if probe.elsewhere)
    }

    /// The notes to report with the attempt: the first probe reports the outage, once.
    pub fn notes(&mut self) -> Vec<OutageNote> {
        match self {
            Self::Probe(probe) => {
                let began = |before| OutageNote::Began { before };
                probe.first_after.take().map(began).into_iter().collect()
            }
            Self::Open | Self::Hurried | Self::Last => Vec::new(),
        }
    }
}

impl Outages {
    pub fn new(clock: Clock) -> Self {
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
            clock,
        }
    }

    /// Waits while there is an outage, unless this request is to probe.
    ///
    /// # Errors
    /// `PastDeadline` if the call's deadline, `end`, comes first; a wait beyond it is not begun.
    pub async fn pass(
        &self,
        patience: &mut Patience,
        end: Option<Instant>,
    ) -> Result<Pass<'_>, PastDeadline> {
        loop {
            // Registered before the state is read, so that no change is missed.
            let changed = self.changed.notified();
            let until = {
                let now = self.clock.now();
                let mut state = self.state();
                let closed = state.closed;
                let Some(outage) = state.current.as_mut().filter(|_| !closed) else {
                    return Ok(Pass::Open);
                };
                let patient_until = patience.meet(&outage.confirmed, now);
                if patient_until <= now {
                    return Ok(Pass::Last);
                }
                let due = match patience.probes {
                    0 => outage.next_probe,
                    _ => outage.next_probe + PRECEDENCE,
                };
                if !outage.probing && due <= now {
                    outage.probing = true;
                    let elsewhere = patience.probes % 2 == 1;
                    patience.probes += 1;
                    let first = !outage.confirmed.swap(true, Ordering::Relaxed);
                    return Ok(Pass::Probe(Probe {
                        outages: self,
                        outage: Arc::clone(&outage.confirmed),
                        ended: false,
                        elsewhere,
                        first_after: first.then(|| now.saturating_duration_since(outage.began)),
                    }));
                }
                let until = if outage.probing {
                    patient_until
                } else {
                    patient_until.min(due)
                };
                if end.is_some_and(|end| end < outage.next_probe)
                    && !outage.confirmed.load(Ordering::Relaxed)
                {
                    return Ok(Pass::Hurried);
                }
                if end.is_some_and(|end| end <= now || (!outage.probing && end < until)) {
                    let wait = (!outage.probing).then(|| until.saturating_duration_since(now));
                    return Err(PastDeadline { wait });
                }
                until
            };
            let until = end.map_or(until, |end| until.min(end));
            // Whichever comes first, check the outage again.
            let _ = self.clock.wait_for(changed, Some(until)).await;
        }
    }

    /// Whether requests wait. A request admitted before an outage began waits after all.
    pub fn is_on(&self) -> bool {
        let state = self.state();
        state.current.is_some() && !state.closed
    }

    /// Ends all waits, because the client is closed.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_waiters();
    }

    /// Registers a request and returns its number.
    pub fn send(&self) -> u64 {
        let mut state = self.state();
        state.sent += 1;
        state.sent
    }

    /// Records a response that rules out an outage; one under way is over.
    pub fn answer(&self, number: u64) -> Option<Ended> {
        let now = self.clock.now();
        let mut state = self.state();
        state.answered = state.answered.max(number);
        state.failures = None;
        let outage = state.current.take()?;
        self.changed.notify_waiters();
        if !outage.confirmed.load(Ordering::Relaxed) {
            return None;
        }
        let lasted = now.saturating_duration_since(outage.began);
        state.past += lasted;
        Some(Ended {
            lasted,
            at_any_pace: outage.at_any_pace,
        })
    }

    /// Records a failure, which may begin an outage, and says what it means if there is one.
    pub fn fail(
        &self,
        failed: Failed,
        mut pass: Pass<'_>,
        patience: &mut Patience,
    ) -> Option<Down> {
        let Failed {
            number,
            retry_after,
            ..
        } = failed;
        let now = self.clock.now();
        let probed = matches!(pass, Pass::Probe(_));
        let mut state = self.state();
        let failed_since = *patience.failed.get_or_insert(state.sent);
        if state.answered == 0 {
            return None;
        }
        if let Pass::Probe(probe) = &mut pass
            && let Some(outage) = state.current.as_mut()
            && Arc::ptr_eq(&outage.confirmed, &probe.outage)
        {
            // Set together with the time of the next probe, or another would take its place at
            // once.
            probe.ended = true;
            outage.probing = false;
        }
        let begins = state.current.is_none();
        if begins {
            // A request sent later was answered. If a call has met an outage before and still
            // fails, any answer to a request sent since its first failure shows that the whole
            // service is not down.
            let alone = patience.outages > 0 && state.answered > failed_since;
            if state.answered > number || alone {
                return None;
            }
            let Some((began, count)) = &mut state.failures else {
                state.failures = Some((now, 1));
                return None;
            };
            *count += 1;
            let (began, many) = (*began, *count >= MANY);
            let lasting = many || now.saturating_duration_since(began) >= FIRST_PROBE;
            if failed.may_be_too_fast && !failed.is_last && !lasting {
                return None;
            }
            state.current = Some(Outage {
                began,
                next_probe: now + jittered(FIRST_PROBE),
                interval: 2 * FIRST_PROBE,
                probing: false,
                confirmed: Arc::default(),
                at_any_pace: false,
            });
        }
        let outage = state.current.as_mut()?;
        patience.meet(&outage.confirmed, now);
        if let Some(retry_after) = retry_after {
            outage.next_probe = now + retry_after.clamp(FIRST_PROBE, FOREVER);
        } else if probed {
            outage.next_probe = now + jittered(outage.interval) - PRECEDENCE;
        }
        if probed {
            outage.at_any_pace = true;
            outage.interval = (2 * outage.interval).min(LONGEST_PROBE);
        }
        Some(Down {
            next_probe: outage.next_probe.saturating_duration_since(now),
            scheduled: begins || probed || retry_after.is_some(),
        })
    }

    /// How long the service has been down, in all outages together.
    pub fn total(&self) -> Duration {
        let state = self.state();
        let confirmed = |outage: &&Outage| outage.confirmed.load(Ordering::Relaxed);
        let current = state.current.as_ref().filter(confirmed);
        state.past
            + current.map_or(Duration::ZERO, |outage| {
                self.clock.now().saturating_duration_since(outage.began)
            })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if !self.ended
            && let Some(outage) = &mut self.outages.state().current
            && Arc::ptr_eq(&outage.confirmed, &self.outage)
        {
            outage.probing = false;
        }
        self.outages.changed.notify_waiters();
    }
}

fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(1.0 - JITTER + 2.0 * JITTER * chance())
}
