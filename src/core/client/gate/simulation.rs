//! Services with limits, simulated: how much of a limit clients use, and how often they are refused.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::state::State;
use super::{Failed, Hold, Patience, Wait};
use crate::retry::{Sign, Verdict};

/// The longest first backoff of a call; it doubles with each retry.
const BACKOFF: f64 = 0.2;

/// How a service limits each `every` seconds to `count` requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Unlimited,
    /// It holds `count`, and is filled in `every` seconds.
    Bucket,
    Fixed,
    Sliding,
    /// A client that exceeds a window is refused for this many seconds.
    Ban(f64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limiter {
    pub kind: Kind,
    pub count: f64,
    pub every: f64,
}

impl Limiter {
    pub const NONE: Self = Self::new(Kind::Unlimited, f64::INFINITY, 1.0);

    pub const fn new(kind: Kind, count: f64, every: f64) -> Self {
        Self { kind, count, every }
    }

    pub const fn bucket(rate: f64, burst: f64) -> Self {
        Self::new(Kind::Bucket, burst, burst / rate)
    }
}

/// What a refusal says about the wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Says {
    WholeSeconds,
    Epoch,
    Nothing,
}

#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub limiter: Limiter,
    pub sign: Sign,
    pub says: Says,
    /// The share of requests that an unhealthy backend fails.
    pub unhealthy: f64,
    pub latency: f64,
    pub clients: usize,
    pub max_concurrency: usize,
    pub rate_limit: Option<f64>,
    /// After half the time, the bucket fills at this rate.
    pub then: Option<f64>,
    pub seconds: f64,
    /// The run ends after this number of successful calls.
    pub calls: usize,
    pub seed: u64,
}

impl Run {
    pub fn of(limiter: Limiter) -> Self {
        Self {
            limiter,
            sign: Sign::Refused,
            says: Says::WholeSeconds,
            unhealthy: 0.0,
            latency: 0.005,
            clients: 1,
            max_concurrency: 16,
            rate_limit: None,
            then: None,
            seconds: 60.0,
            calls: usize::MAX,
            seed: 1,
        }
    }
}

#[derive(Debug, Default)]
pub struct Outcome {
    /// Requests that the limiter let through, and the most that it would have.
    pub taken: f64,
    pub allowed: f64,
    pub refused: f64,
    /// Calls that succeeded, and calls that ran out of retries.
    pub done: usize,
    pub failed: usize,
    pub sent: Vec<f64>,
    pub ended: f64,
}

struct Service {
    limiter: Limiter,
    left: f64,
    at: f64,
    /// When the window began, or when the ban ends.
    since: f64,
    allowed: f64,
    taken: VecDeque<f64>,
}

impl Service {
    fn new(limiter: Limiter) -> Self {
        Self {
            limiter,
            left: limiter.count,
            at: 0.0,
            since: 0.0,
            allowed: limiter.count,
            taken: VecDeque::new(),
        }
    }

    fn pass(&mut self, now: f64) {
        let Limiter { kind, count, every } = self.limiter;
        let mut fresh = (now - self.at) * count / every;
        match kind {
            Kind::Unlimited => {}
            Kind::Bucket => self.left = (self.left + fresh).min(count),
            Kind::Fixed => {
                // A window does not begin with the first request.
                let window = |at: f64| (at / every + 0.3).floor();
                fresh = (window(now) - window(self.at)) * count;
                self.left = if fresh > 0.0 { count } else { self.left };
            }
            Kind::Sliding => {
                while self.taken.front().is_some_and(|at| *at <= now - every) {
                    self.taken.pop_front();
                }
                self.left = count - self.taken.len() as f64;
            }
            Kind::Ban(_) => {
                let window = if self.left < 0.0 { 0.0 } else { every };
                if now >= self.since + window {
                    (self.left, self.since) = (count, now);
                }
            }
        }
        self.allowed += fresh;
        self.at = now;
    }

    /// Seconds until there is room, if there is none.
    fn take(&mut self, now: f64) -> Result<(), f64> {
        self.pass(now);
        if self.left >= 1.0 - 1e-6 {
            self.left -= 1.0;
            self.taken.push_back(now);
            return Ok(());
        }
        let Limiter { kind, count, every } = self.limiter;
        Err(match kind {
            Kind::Unlimited => 0.0,
            Kind::Bucket => (1.0 - self.left) * every / count,
            Kind::Fixed => every - (now + 0.3 * every).rem_euclid(every),
            Kind::Sliding => self.taken.front().map_or(0.0, |at| at + every - now),
            Kind::Ban(banned) => {
                if self.left >= 0.0 {
                    (self.left, self.since) = (-1.0, now + banned);
                }
                self.since - now
            }
        })
    }
}

struct Client {
    state: State,
    /// The retries of the calls that are ready to send.
    ready: VecDeque<u32>,
    wakes: u64,
}

/// Ordered by time, in nanoseconds.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake,
    Retry(u32),
    /// A response to a request of this number; with its wait in nanoseconds if it was refused.
    Heard {
        number: u64,
        sent: u64,
        retries: u32,
        refused: Option<Option<u64>>,
    },
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn impatient() -> Patience {
    Patience::new(None, Duration::ZERO)
}

pub fn run(run: Run) -> Outcome {
    let base = Instant::now();
    let at = |time: u64| base + Duration::from_nanos(time);
    fastrand::seed(run.seed);
    crate::process::chance();
    let mut service = Service::new(run.limiter);
    let mut outcome = Outcome::default();
    let mut events = BinaryHeap::new();
    let mut clients = Vec::new();
    for index in 0..run.clients {
        // They start half a second apart.
        let wakes = index as u64 * 500_000_000;
        clients.push(Client {
            state: State::new(run.max_concurrency, run.rate_limit),
            ready: vec![0; run.max_concurrency].into(),
            wakes,
        });
        events.push(Reverse((wakes, index, Event::Wake)));
    }
    let mut then = run.then;
    while let Some(Reverse((time, index, event))) = events.pop() {
        let now = time as f64 / 1e9;
        if now > run.seconds || outcome.done >= run.calls {
            outcome.ended = now;
            break;
        }
        if now > run.seconds / 2.0
            && let Some(then) = then.take()
        {
            service.limiter = Limiter::bucket(then, run.limiter.count);
        }
        let client = &mut clients[index];
        match event {
            // An earlier wake-up replaced this one.
            Event::Wake if client.wakes != time => continue,
            Event::Wake => client.wakes = 0,
            Event::Retry(retries) => client.ready.push_back(retries),
            Event::Heard {
                number,
                sent,
                refused: None,
                ..
            } => {
                let took = Duration::from_nanos(time - sent);
                client.state.answered(number, took, at(time));
                client.state.in_flight -= 1;
                outcome.done += 1;
                client.ready.push_back(0);
            }
            Event::Heard {
                number,
                retries,
                refused: Some(wait),
                ..
            } => {
                let stated = wait.map(Duration::from_nanos);
                let backoff = BACKOFF * 2_f64.powi(retries.cast_signed()) * fastrand::f64();
                let wait = stated.unwrap_or(Duration::from_secs_f64(backoff));
                let verdict = match retries {
                    0..5 => Verdict::Retry { wait },
                    _ => Verdict::GiveUp,
                };
                let failed = Failed {
                    sign: run.sign,
                    stated,
                    verdict,
                };
                let patience = &mut impatient();
                let (hold, _) = client
                    .state
                    .failed(number, failed, None, patience, at(time));
                client.state.in_flight -= 1;
                match (verdict, hold) {
                    (Verdict::Retry { .. }, Hold::No) => {
                        let retry = Event::Retry(retries + 1);
                        events.push(Reverse((time + nanoseconds(backoff), index, retry)));
                    }
                    (Verdict::Retry { .. }, _) => client.ready.push_back(retries + 1),
                    _ => {
                        outcome.failed += 1;
                        client.ready.push_back(0);
                    }
                }
            }
        }
        while client.state.in_flight < client.state.window.size
            && let Some(retries) = client.ready.front().copied()
        {
            match client.state.turn(&mut impatient(), (true, true), at(time)) {
                Ok((number, _)) => {
                    client.ready.pop_front();
                    let arrival = now + run.latency / 2.0 + 0.000_05;
                    let refused = service.take(arrival).err().map(|wait| match run.says {
                        Says::WholeSeconds => Some(nanoseconds(wait.ceil().max(1.0))),
                        Says::Epoch => {
                            let wall = arrival + 0.123;
                            Some(nanoseconds((wall + wait.ceil()).ceil() - wall))
                        }
                        Says::Nothing => None,
                    });
                    match refused {
                        None => outcome.taken += 1.0,
                        Some(_) => outcome.refused += 1.0,
                    }
                    let down = (fastrand::f64() < run.unhealthy).then_some(None);
                    outcome.sent.push(now);
                    // Occasionally another process has the CPU.
                    let busy = fastrand::f64() < 0.01;
                    let late = 0.000_1 + fastrand::f64() * if busy { 0.01 } else { 0.000_4 };
                    let back = nanoseconds(arrival + run.latency / 2.0 + late);
                    let heard = Event::Heard {
                        number,
                        sent: time,
                        retries,
                        refused: refused.or(down),
                    };
                    events.push(Reverse((back, index, heard)));
                }
                Err(Wait::Turn(until)) => {
                    // Timers have whole milliseconds, and fire a little late.
                    let due = until.duration_since(base).as_nanos() as u64;
                    let wake = due.div_ceil(1_000_000) * 1_000_000 + fastrand::u64(..300_000);
                    if client.wakes == 0 || wake < client.wakes {
                        client.wakes = wake;
                        events.push(Reverse((wake, index, Event::Wake)));
                    }
                    break;
                }
                Err(wait) => panic!("{wait:?} although there is no outage"),
            }
        }
    }
    service.pass(run.seconds);
    let fastest = (run.max_concurrency * run.clients) as f64 / (run.latency + 0.000_3);
    outcome.allowed = service.allowed.min(fastest * run.seconds);
    outcome
}
