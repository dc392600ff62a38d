//! How a response is sent: the combined effect of the faults that fire on a request.

use std::num::NonZeroUsize;
use std::time::Duration;

use hyper::header::HeaderValue;

/// How a response is sent. By default at once, unchanged and whole, which costs nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delivery {
    /// How long the response is delayed.
    pub delay: Duration,
    /// What is sent instead of the response, or of a part of it.
    pub change: Option<Change>,
    pub ending: Option<Ending>,
    pub drip: Option<Drip>,
    /// The rules that fired, as written.
    pub rules: Vec<String>,
}

/// What is sent instead.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Another response.
    Answer {
        status: u16,
        retry_after: Option<u64>,
        body: String,
    },
    ContentType(HeaderValue),
}

/// How a response ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    pub how: How,
    /// After this much of the body; `None` means that not even the head is sent.
    pub after_bytes: Option<u64>,
}

/// What ends a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The connection is reset.
    Reset,
    /// The connection is closed normally, although Content-Length promised more.
    Close,
    /// The body is cut, and Content-Length states the length of the part.
    Short,
    /// Nothing more is sent until the client disconnects.
    Stall,
    /// The response is whole, and the next request on the connection closes it.
    Stale,
}

/// The body in pieces, each after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drip {
    pub bytes: NonZeroUsize,
    pub pause: Duration,
}

/// How late a response is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    Fixed(Duration),
    /// Drawn for each request, in milliseconds: half of the responses come before the median; a
    /// larger spread (the standard deviation of the logarithm) makes the latest ones later.
    Lognormal {
        median: f64,
        spread: f64,
    },
}

/// The longest delay in milliseconds, a day; use `stall` for longer.
pub(super) const LONGEST_DELAY: f64 = 86_400_000.0;

impl Latency {
    /// The time for one request, from two random numbers in `[0, 1)`.
    fn draw(self, (first, second): (f64, f64)) -> Duration {
        match self {
            Self::Fixed(time) => time,
            Self::Lognormal { median, spread } => {
                // Box-Muller transform: two uniform numbers give a normally distributed one.
                let normal =
                    (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos();
                let milliseconds = (median * (spread * normal).exp()).min(LONGEST_DELAY);
                Duration::from_secs_f64(milliseconds / 1000.0)
            }
        }
    }
}

/// What one fault does to a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Delay(Latency),
    Change(Change),
    End(Ending),
    Drip(Drip),
}

impl Delivery {
    /// Whether the response is sent as if there were no faults.
    pub fn is_plain(&self) -> bool {
        !self.is_late() && self.change.is_none() && self.ending.is_none()
    }

    /// Whether all of a body of `length` bytes arrives, sooner or later.
    pub fn is_whole(&self, length: u64) -> bool {
        let arrives = |ending: Ending| ending.after_bytes.is_some_and(|bytes| bytes >= length);
        self.ending.is_none_or(arrives)
    }

    /// Whether it takes so long that the client may give up.
    pub const fn is_late(&self) -> bool {
        !self.delay.is_zero() || self.drip.is_some()
    }

    /// Whether an effect can still be added. Delays add up, and a drip combines with everything; of
    /// the others, a response has at most one.
    pub(super) fn has_room_for(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Delay(_) => true,
            Effect::Drip(_) => self.drip.is_none(),
            Effect::Change(_) | Effect::End(_) => self.change.is_none() && self.ending.is_none(),
        }
    }

    /// Adds the effect of a rule, which is given as written; a random time is drawn from two numbers
    /// in `[0, 1)`.
    pub(super) fn add(&mut self, effect: &Effect, chances: (f64, f64), rule: &str) {
        match effect {
            Effect::Delay(latency) => self.delay = self.delay.saturating_add(latency.draw(chances)),
            Effect::Drip(drip) => self.drip = Some(*drip),
            Effect::Change(change) => self.change = Some(change.clone()),
            Effect::End(ending) => self.ending = Some(*ending),
        }
        self.rules.push(rule.to_owned());
    }
}
