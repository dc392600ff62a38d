//! Clients that ask as fast as their pace lets them, against services that refuse, in plain numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use tokio::time::Instant;

use super::rate::{Rate, Refusal, Turn};
use super::window::Window;

/// What a service refuses by.
#[derive(Debug, Clone, Copy)]
pub enum Limiter {
    Bucket {
        per_second: f64,
        burst: f64,
    },
    /// So many in each stretch of so many seconds; the first began earlier.
    Fixed {
        count: f64,
        every: f64,
    },
}

/// What it says of the wait.
#[derive(Debug, Clone, Copy)]
pub enum Says {
    WholeSeconds,
    /// An epoch in whole seconds.
    Epoch,
    Nothing,
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub limiter: Limiter,
    pub says: Says,
    pub latency: f64,
    pub max_concurrency: usize,
    pub rate_limit: Option<f64>,
    pub clients: usize,
    pub seconds: f64,
    /// At this second it allows so many a second.
    pub change: Option<(f64, f64)>,
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub taken: f64,
    pub refused: f64,
    /// What the limiter would have let through in this time.
    pub allowed: f64,
    pub by_client: Vec<f64>,
    pub most_under_way: usize,
    /// When requests were sent.
    pub sent: Vec<f64>,
}

impl Outcome {
    pub fn share(&self) -> f64 {
        self.taken / self.allowed
    }

    pub fn refused_share(&self) -> f64 {
        self.refused / (self.taken + self.refused)
    }
}

impl Default for Run {
    fn default() -> Self {
        Self {
            limiter: Limiter::Bucket {
                per_second: 100.0,
                burst: 20.0,
            },
            says: Says::WholeSeconds,
            latency: 0.0,
            max_concurrency: 16,
            rate_limit: None,
            clients: 1,
            seconds: 60.0,
            change: None,
            seed: 1,
        }
    }
}

struct Service {
    limiter: Limiter,
    left: f64,
    at: f64,
    allowed: f64,
}

impl Service {
    const OFFSET: f64 = 0.3;

    fn new(limiter: Limiter) -> Self {
        let (Limiter::Bucket { burst: left, .. } | Limiter::Fixed { count: left, .. }) = limiter;
        Self {
            limiter,
            left,
            at: 0.0,
            allowed: left,
        }
    }

    fn pass(&mut self, now: f64) {
        match self.limiter {
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
        Err(match self.limiter {
            Limiter::Bucket { per_second, .. } => (1.0 - self.left) / per_second,
            Limiter::Fixed { every, .. } => every - (now + Self::OFFSET * every).rem_euclid(every),
        })
    }
}

struct Client {
    rate: Rate,
    window: Window,
    under_way: usize,
    /// Requests up to this number were sent before the window was last halved.
    halved: u64,
    wakes: u64,
}

/// In the order of time, which is in nanoseconds.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake,
    Answer {
        number: u64,
        sent: u64,
        wait: Option<u64>,
    },
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

pub fn run(run: Run) -> Outcome {
    let base = Instant::now();
    let at = |time: u64| base + Duration::from_nanos(time);
    let mut chance = fastrand::Rng::with_seed(run.seed);
    let mut service = Service::new(run.limiter);
    let mut clients: Vec<Client> = (0..run.clients)
        .map(|_| Client {
            rate: Rate::new(run.rate_limit),
            window: Window::new(run.max_concurrency),
            under_way: 0,
            halved: 0,
            wakes: 0,
        })
        .collect();
    for (client, start) in clients.iter_mut().zip((0..).step_by(500_000_000)) {
        client.wakes = start;
    }
    let mut events = BinaryHeap::new();
    for index in 0..run.clients {
        // Each begins half a second after the one before.
        events.push(Reverse((index as u64 * 500_000_000, index, Event::Wake)));
    }
    let mut outcome = Outcome {
        taken: 0.0,
        refused: 0.0,
        allowed: 0.0,
        by_client: vec![0.0; run.clients],
        most_under_way: 0,
        sent: Vec::new(),
    };
    let mut change = run.change;
    while let Some(Reverse((time, index, event))) = events.pop() {
        let now = time as f64 / 1e9;
        if now > run.seconds {
            break;
        }
        if let Some((_, rate)) = change.take_if(|(when, _)| *when <= now) {
            service.pass(now);
            if let Limiter::Bucket { per_second, .. } = &mut service.limiter {
                *per_second = rate;
            }
        }
        let client = &mut clients[index];
        match event {
            // Another one that comes sooner took its place.
            Event::Wake if client.wakes != time => continue,
            Event::Wake => client.wakes = 0,
            Event::Answer { number, sent, wait } => {
                match wait {
                    None => {
                        let latency = Duration::from_nanos(time - sent);
                        client.window.answer(latency, client.under_way, at(time));
                    }
                    Some(wait) => {
                        if number > client.halved {
                            client.halved = client.rate.sent();
                            client.window.halve();
                        }
                        client.rate.refuse(Refusal {
                            number,
                            sent: at(sent),
                            now: at(time),
                            wait: Duration::from_nanos(wait),
                            told: !matches!(run.says, Says::Nothing),
                        });
                    }
                }
                client.under_way -= 1;
            }
        }
        while client.under_way < client.window.size() {
            let until = match client.rate.turn(at(time)) {
                Turn::Wait { until, .. } => until,
                Turn::Come(number) => {
                    client.under_way += 1;
                    outcome.most_under_way = outcome.most_under_way.max(client.under_way);
                    outcome.sent.push(now);
                    let arrival = now + run.latency / 2.0 + 0.000_05;
                    let wait = service.take(arrival).err().map(|wait| match run.says {
                        Says::WholeSeconds => wait.ceil().max(1.0),
                        Says::Epoch => {
                            let wall = 0.123 + arrival;
                            (wall + wait.ceil()).ceil() - wall
                        }
                        Says::Nothing => chance.f64() * 0.2,
                    });
                    match wait {
                        None => {
                            outcome.taken += 1.0;
                            outcome.by_client[index] += 1.0;
                        }
                        Some(_) => outcome.refused += 1.0,
                    }
                    // Now and then something else has the processor.
                    let late = match chance.f64() < 0.01 {
                        true => chance.f64() * 0.01,
                        false => chance.f64() * 0.000_4,
                    };
                    let back = nanoseconds(arrival + run.latency / 2.0 + 0.000_1 + late);
                    let answer = Event::Answer {
                        number,
                        sent: time,
                        wait: wait.map(nanoseconds),
                    };
                    events.push(Reverse((back, index, answer)));
                    continue;
                }
            };
            // Timers go by whole milliseconds, and are a little late.
            let due = until.duration_since(base).as_nanos() as u64;
            let wake = due.div_ceil(1_000_000) * 1_000_000 + chance.u64(..300_000);
            if client.wakes == 0 || wake < client.wakes {
                client.wakes = wake;
                events.push(Reverse((wake, index, Event::Wake)));
            }
            break;
        }
    }
    service.pass(run.seconds);
    let fastest = (run.max_concurrency * run.clients) as f64 / (run.latency + 0.000_3);
    outcome.allowed = service.allowed.min(fastest * run.seconds);
    outcome
}
