//! A numeric simulation: clients that send as fast as their pace allows, and services that refuse.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::rate::Turn;
use super::refusal::{Refusal, RefusedBy};
use super::state::State;
use super::unstated::InARow;

/// The algorithm of a rate limiter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limiter {
    Unlimited,
    Bucket {
        per_second: f64,
        burst: f64,
    },
    /// This many per window of this many seconds; the first window began earlier.
    Fixed {
        count: f64,
        every: f64,
    },
    /// This many within this many seconds from the first; one more is answered by a ban of this
    /// many seconds, as by Cloudflare's rules.
    Ban {
        count: f64,
        every: f64,
        banned: f64,
    },
}

/// How it states the wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WaitHeader {
    WholeSeconds,
    /// An epoch in whole seconds.
    Epoch,
    Nothing,
}

/// Requests that pass the limiter but get a 503 all the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unhealthy {
    No,
    /// The last of this many backends behind round robin.
    OneOf(u64),
    /// At random.
    Share(f64),
}

/// What changes during a run.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    Limiter(Limiter),
    PerSecond(f64),
    Unhealthy(Unhealthy),
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub limiter: Limiter,
    pub by: RefusedBy,
    pub wait_header: WaitHeader,
    pub unhealthy: Unhealthy,
    /// The wait in seconds that it asks for, if any.
    pub unhealthy_wait: Option<f64>,
    pub latency: f64,
    /// Per client, which has as many calls in flight.
    pub max_concurrency: usize,
    pub rate_limit: Option<f64>,
    pub clients: usize,
    pub seconds: f64,
    /// What changes, and at which second.
    pub changes: &'static [(f64, Change)],
    pub max_retries: u32,
    /// The pace ignores 503s, except for their Retry-After.
    pub blind: bool,
    pub seed: u64,
}

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Requests that the limiter let through.
    pub taken: f64,
    pub refused: f64,
    /// What the limiter would have let through in this time.
    pub allowed: f64,
    pub by_client: Vec<f64>,
    pub most_under_way: usize,
    /// When requests were sent.
    pub sent: Vec<f64>,
    /// When calls succeeded.
    pub done: Vec<f64>,
    /// Calls that ran out of retries.
    pub failed: f64,
    /// The clients' learned rates at the end.
    pub learned: Vec<Option<f64>>,
    /// The clients' slots at the end.
    pub sizes: Vec<usize>,
}

impl Outcome {
    pub fn share(&self) -> f64 {
        self.taken / self.allowed
    }

    pub fn refused_share(&self) -> f64 {
        self.refused / (self.taken + self.refused)
    }

    /// Calls per second between two times.
    pub fn throughput(&self, from: f64, to: f64) -> f64 {
        let within = self.done.iter().filter(|at| (from..to).contains(*at));
        within.count() as f64 / (to - from)
    }
}

impl Default for Run {
    fn default() -> Self {
        Self {
            limiter: Limiter::Bucket {
                per_second: 100.0,
                burst: 20.0,
            },
            by: RefusedBy::TooManyRequests,
            wait_header: WaitHeader::WholeSeconds,
            unhealthy: Unhealthy::No,
            unhealthy_wait: None,
            latency: 0.0,
            max_concurrency: 16,
            rate_limit: None,
            clients: 1,
            seconds: 60.0,
            changes: &[],
            max_retries: 5,
            blind: false,
            seed: 1,
        }
    }
}

struct Service {
    limiter: Limiter,
    unhealthy: Unhealthy,
    left: f64,
    at: f64,
    /// When the window began, or when the ban ends.
    since: f64,
    allowed: f64,
    passed: u64,
}

impl Service {
    const OFFSET: f64 = 0.3;

    fn new(run: &Run) -> Self {
        let mut service = Self {
            limiter: Limiter::Unlimited,
            unhealthy: run.unhealthy,
            left: 0.0,
            at: 0.0,
            since: 0.0,
            allowed: 0.0,
            passed: 0,
        };
        service.limit(run.limiter);
        service
    }

    fn limit(&mut self, limiter: Limiter) {
        self.limiter = limiter;
        self.left = match limiter {
            Limiter::Unlimited => f64::INFINITY,
            Limiter::Bucket { burst, .. } => burst,
            Limiter::Fixed { count, .. } | Limiter::Ban { count, .. } => count,
        };
        self.since = self.at;
        self.allowed += self.left;
    }

    fn change(&mut self, change: Change, now: f64) {
        self.pass(now);
        match (change, &mut self.limiter) {
            (Change::Limiter(limiter), _) => self.limit(limiter),
            (Change::PerSecond(rate), Limiter::Bucket { per_second, .. }) => *per_second = rate,
            (Change::PerSecond(_), _) => {}
            (Change::Unhealthy(unhealthy), _) => self.unhealthy = unhealthy,
        }
    }

    fn pass(&mut self, now: f64) {
        match self.limiter {
            Limiter::Unlimited => {}
            Limiter::Bucket { per_second, burst } => {
                let filled = (now - self.at) * per_second;
                self.allowed += filled;
                self.left = (self.left + filled).min(burst);
            }
            Limiter::Fixed { count, every } => {
                let stretch = |at: f64| ((at + Self::OFFSET * every) / every).floor();
                let stretches = stretch(now) - stretch(self.at);
                self.allowed += stretches * count;
                if stretches > 0.0 {
                    self.left = count;
                }
            }
            Limiter::Ban { count, every, .. } => {
                self.allowed += (now - self.at) * count / every;
                let ends = if self.left < 0.0 {
                    self.since
                } else {
                    self.since + every
                };
                if now >= ends {
                    (self.left, self.since) = (count, now);
                }
            }
        }
        self.at = now;
    }

    /// Seconds until there is room, if there is none.
    fn take(&mut self, now: f64) -> Result<(), f64> {
        self.pass(now);
        if self.left >= 1.0 - 1e-6 {
            self.left -= 1.0;
            return Ok(());
        }
        if let Limiter::Ban { banned, .. } = self.limiter
            && self.left >= 0.0
        {
            (self.left, self.since) = (-1.0, now + banned);
        }
        Err(match self.limiter {
            Limiter::Unlimited => 0.0,
            Limiter::Bucket { per_second, .. } => (1.0 - self.left) / per_second,
            Limiter::Fixed { every, .. } => every - (now + Self::OFFSET * every).rem_euclid(every),
            Limiter::Ban { .. } => self.since - now,
        })
    }

    /// Whether a request that passed reaches a backend that is down.
    fn is_down(&mut self, chance: &mut fastrand::Rng) -> bool {
        self.passed += 1;
        match self.unhealthy {
            Unhealthy::No => false,
            Unhealthy::OneOf(backends) => self.passed.is_multiple_of(backends),
            Unhealthy::Share(share) => chance.f64() < share,
        }
    }
}

struct Client {
    state: State,
    under_way: usize,
    /// The calls that are ready to send.
    ready: VecDeque<Retried>,
    wakes: u64,
}

/// A call's retries, and how many refusals in a row there had been at its first one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Retried {
    retries: u32,
    first_refused: Option<InARow>,
}

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    Fine,
    /// Refused or unavailable, with a wait in nanoseconds if one is stated.
    Refused {
        by_limit: bool,
        wait: Option<u64>,
    },
}

/// Ordered by time, in nanoseconds.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake,
    /// A call's backoff is over.
    Retry(Retried),
    Answered {
        number: u64,
        sent: u64,
        call: Retried,
        answer: Answer,
    },
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

struct Simulation {
    run: Run,
    base: Instant,
    chance: fastrand::Rng,
    service: Service,
    events: BinaryHeap<Reverse<(u64, usize, Event)>>,
    outcome: Outcome,
}

pub fn run(run: Run) -> Outcome {
    let mut simulation = Simulation {
        run,
        base: Instant::now(),
        chance: fastrand::Rng::with_seed(run.seed),
        service: Service::new(&run),
        events: BinaryHeap::new(),
        outcome: Outcome {
            taken: 0.0,
            refused: 0.0,
            allowed: 0.0,
            by_client: vec![0.0; run.clients],
            most_under_way: 0,
            sent: Vec::new(),
            done: Vec::new(),
            failed: 0.0,
            learned: Vec::new(),
            sizes: Vec::new(),
        },
    };
    // Clients start half a second apart.
    let starts = (0..run.clients as u64).map(|index| index * 500_000_000);
    let mut clients: Vec<Client> = starts
        .map(|start| Client {
            state: State::new(run.max_concurrency, run.rate_limit),
            under_way: 0,
            ready: vec![Retried::default(); run.max_concurrency].into(),
            wakes: start,
        })
        .collect();
    for (index, client) in clients.iter().enumerate() {
        let start = Reverse((client.wakes, index, Event::Wake));
        simulation.events.push(start);
    }
    let mut changes = run.changes.iter().peekable();
    while let Some(Reverse((time, index, event))) = simulation.events.pop() {
        let now = time as f64 / 1e9;
        if now > run.seconds {
            break;
        }
        while let Some((when, change)) = changes.next_if(|(when, _)| *when <= now) {
            simulation.service.change(*change, *when);
        }
        simulation.step(&mut clients[index], index, time, event);
    }
    let Simulation {
        mut service,
        mut outcome,
        ..
    } = simulation;
    service.pass(run.seconds);
    let fastest = (run.max_concurrency * run.clients) as f64 / (run.latency + 0.000_3);
    outcome.allowed = service.allowed.min(fastest * run.seconds);
    for client in &clients {
        outcome.learned.push(client.state.learned());
        outcome.sizes.push(client.state.size());
    }
    outcome
}

impl Simulation {
    fn at(&self, time: u64) -> Instant {
        self.base + Duration::from_nanos(time)
    }

    fn step(&mut self, client: &mut Client, index: usize, time: u64, event: Event) {
        match event {
            // An earlier wake-up replaced this one.
            Event::Wake if client.wakes != time => return,
            Event::Wake => client.wakes = 0,
            Event::Retry(call) => client.ready.push_back(call),
            Event::Answered {
                number,
                sent,
                call,
                answer,
            } => {
                self.answer(client, index, time, (number, sent), call, answer);
                client.under_way -= 1;
            }
        }
        while client.under_way < client.state.size() && !client.ready.is_empty() {
            match client.state.turn(self.at(time)) {
                Turn::Come(number) => self.send(client, index, time, number),
                Turn::Wait { until, .. } => {
                    // Timers have whole milliseconds, and fire a little late.
                    let due = until.duration_since(self.base).as_nanos() as u64;
                    let wake = due.div_ceil(1_000_000) * 1_000_000 + self.chance.u64(..300_000);
                    if client.wakes == 0 || wake < client.wakes {
                        client.wakes = wake;
                        self.events.push(Reverse((wake, index, Event::Wake)));
                    }
                    break;
                }
            }
        }
    }

    fn answer(
        &mut self,
        client: &mut Client,
        index: usize,
        time: u64,
        (number, sent): (u64, u64),
        mut call: Retried,
        answer: Answer,
    ) {
        let Answer::Refused { by_limit, wait } = answer else {
            let latency = Duration::from_nanos(time - sent);
            let now = self.at(time);
            client
                .state
                .answered(number, latency, client.under_way, now);
            self.outcome.done.push(time as f64 / 1e9);
            self.outcome.by_client[index] += 1.0;
            client.ready.push_back(Retried::default());
            return;
        };
        let by = if by_limit {
            self.run.by
        } else {
            RefusedBy::Unavailable
        };
        // As `retry::decide`.
        let (mut since, mut waits) = (0, 0);
        if wait.is_none() && by == RefusedBy::TooManyRequests {
            let in_a_row = client.state.refused_in_a_row(number, self.at(time));
            let first = call.first_refused.unwrap_or(in_a_row);
            let first = if first.since == in_a_row.since {
                first
            } else {
                in_a_row
            };
            call.first_refused = Some(first);
            since = in_a_row.count.saturating_sub(first.count);
            waits = in_a_row.count as usize - 1;
        }
        let last = call.retries.max(since) >= self.run.max_retries;
        let chance = self.chance.f64();
        let of_all = [0.7, 3.0, 8.0, 50.0].get(waits.wrapping_sub(1)).copied();
        let backoff = nanoseconds(match of_all {
            None => chance * (0.2 * f64::from(1_u32 << call.retries.min(7))).min(20.0),
            Some(wait) => (1.0 + 0.1 * chance) * wait,
        });
        let held = match wait {
            Some(wait) => wait,
            None if last => 0,
            None if of_all.is_some() => backoff,
            None => backoff.min(1_000_000_000),
        };
        let refusal = Refusal {
            by,
            number,
            sent: self.at(sent),
            now: self.at(time),
            wait: Duration::from_nanos(held),
            told: wait.is_some(),
        };
        match self.run.blind && by == RefusedBy::Unavailable {
            false if last && wait.is_none() && by == RefusedBy::TooManyRequests => {
                client.state.gave_up(number, waits > 4);
            }
            false => client.state.refused(refusal),
            true if refusal.told => client.state.hold_back(refusal),
            true => {}
        }
        call.retries += 1;
        if last {
            self.outcome.failed += 1.0;
            client.ready.push_back(Retried::default());
        } else if wait.is_some() {
            client.ready.push_back(call);
        } else {
            let retry = Event::Retry(call);
            self.events.push(Reverse((time + backoff, index, retry)));
        }
    }

    fn send(&mut self, client: &mut Client, index: usize, time: u64, number: u64) {
        let now = time as f64 / 1e9;
        let call = client.ready.pop_front().unwrap_or_default();
        client.under_way += 1;
        let outcome = &mut self.outcome;
        outcome.most_under_way = outcome.most_under_way.max(client.under_way);
        outcome.sent.push(now);
        let arrival = now + self.run.latency / 2.0 + 0.000_05;
        let answer = match self.service.take(arrival) {
            Err(wait) => {
                outcome.refused += 1.0;
                let wait = match self.run.wait_header {
                    WaitHeader::WholeSeconds => Some(wait.ceil().max(1.0)),
                    WaitHeader::Epoch => {
                        let wall = 0.123 + arrival;
                        Some((wall + wait.ceil()).ceil() - wall)
                    }
                    WaitHeader::Nothing => None,
                };
                Answer::Refused {
                    by_limit: true,
                    wait: wait.map(nanoseconds),
                }
            }
            Ok(()) => {
                outcome.taken += 1.0;
                match self.service.is_down(&mut self.chance) {
                    true => Answer::Refused {
                        by_limit: false,
                        wait: self.run.unhealthy_wait.map(nanoseconds),
                    },
                    false => Answer::Fine,
                }
            }
        };
        // Occasionally another process has the CPU.
        let late = if self.chance.f64() < 0.01 {
            self.chance.f64() * 0.01
        } else {
            self.chance.f64() * 0.000_4
        };
        let back = nanoseconds(arrival + self.run.latency / 2.0 + 0.000_1 + late);
        let answered = Event::Answered {
            number,
            sent: time,
            call,
            answer,
        };
        self.events.push(Reverse((back, index, answered)));
    }
}
