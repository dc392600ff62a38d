//! How many requests at once: grows while latency holds, halves when the service is overloaded.

use std::time::Duration;

use tokio::time::Instant;

use super::{FEW, NOISE};

/// Without any response, the size doubles after this time.
const SILENCE: Duration = Duration::from_millis(250);
/// The least latency is taken over the current period of this length and the previous one.
const LATELY: Duration = Duration::from_secs(10);

/// The number of requests that may be in flight.
#[derive(Debug)]
pub struct Window {
    pub size: usize,
    pub most: usize,
    /// Up to this size it doubles in each round trip.
    doubles_to: usize,
    least: Option<Least>,
    /// Responses until the round is over, and below, the least latency among them.
    left: usize,
    round: Option<Duration>,
    /// The most requests in flight during the round.
    busiest: usize,
    /// When a response last came, or the size doubled without one.
    heard: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Least {
    before: Duration,
    now: Duration,
    since: Instant,
}

impl Window {
    pub fn new(most: usize) -> Self {
        let size = FEW.min(most).max(1);
        Self {
            size,
            most: most.max(1),
            doubles_to: usize::MAX,
            least: None,
            left: size,
            round: None,
            busiest: 0,
            heard: None,
        }
    }

    /// When the silence will be long enough to double the size, if it still doubles.
    pub fn silent_until(&mut self, now: Instant) -> Option<Instant> {
        let heard = *self.heard.get_or_insert(now);
        (self.size < self.most.min(self.doubles_to)).then(|| heard + SILENCE)
    }

    /// Doubles the size after silence: slow responses are no reason to send one request at a time.
    pub fn wait_no_longer(&mut self, now: Instant) {
        if self.silent_until(now).is_some_and(|until| until <= now) {
            self.size = (2 * self.size).min(self.most);
            self.left = self.size;
            self.heard = Some(now);
        }
    }

    /// Records a response that came while `in_flight` requests were in flight, including its own.
    pub fn answer(&mut self, latency: Duration, in_flight: usize, now: Instant) {
        self.note(latency, now);
        self.heard = Some(now);
        self.round = Some(self.round.map_or(latency, |round| round.min(latency)));
        self.busiest = self.busiest.max(in_flight);
        let used = 2 * self.busiest > self.size;
        if used && self.size < self.doubles_to {
            self.size = (self.size + 1).min(self.most);
        }
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return;
        }
        let slow = match (self.round.take(), self.least) {
            (Some(round), Some(least)) => round > 2 * least.before.min(least.now) + NOISE,
            _ => false,
        };
        if slow {
            self.doubles_to = self.size;
        } else if used && self.size >= self.doubles_to {
            self.size = (self.size + 1).min(self.most);
        }
        self.left = self.size;
        self.busiest = 0;
    }

    /// The service is overloaded.
    pub fn halve(&mut self) {
        self.size = (self.size / 2).max(1);
        self.doubles_to = self.size;
        self.left = self.size;
        self.round = None;
    }

    fn note(&mut self, latency: Duration, now: Instant) {
        let least = self.least.get_or_insert(Least {
            before: latency,
            now: latency,
            since: now,
        });
        if now.saturating_duration_since(least.since) > LATELY {
            *least = Least {
                before: least.now,
                now: latency,
                since: now,
            };
        }
        least.now = least.now.min(latency);
    }
}
