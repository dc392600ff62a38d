//! A rate limit: a token bucket that refills by the lane's clock.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use super::field::Kind::{Whole, Words};
use super::field::Omitted::Nothing;
use super::field::{Field, Value, named};
use super::grammar::Parser;
use crate::switch::switch_enum;

switch_enum! {
    /// What a refused request is told about the wait.
    Says {
        /// `Retry-After`, in whole seconds (RFC 9110, section 10.2.3).
        RetryAfter = "retry_after",
        /// `X-RateLimit-Limit`, `-Remaining` and `-Reset` (an epoch in seconds), on every answer.
        Headers = "headers",
        /// Only the status.
        Nothing = "nothing",
    }
}

/// How many requests a lane accepts; more are refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Tokens added per second.
    pub per_second: f64,
    /// The bucket size: how many requests may come at once.
    pub burst: u64,
    pub says: Says,
    /// The status for refused requests: 429, or 503 as in nginx's `limit_req`.
    pub status: u16,
}

/// The largest bucket size, and the largest number of tokens per second.
const MOST: u64 = 1_000_000;
/// The fewest tokens per second: one in about twelve days.
const LEAST: f64 = 0.000_001;

static BURST: Field = named("burst", Whole(1, MOST), Nothing);
static SAYS: Field = named("says", Words(Says::WORDS), Nothing);
static STATUS: Field = named("status", Words(&["429", "503"]), Nothing);

/// `10/s burst=20 says=retry_after status=429`; the default burst is the number per second, and at
/// least 1.
impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text };
        let start = parser;
        let per_second = parser.word().parse::<f64>().ok();
        let per_second = per_second.filter(|_| parser.token('/') && parser.word() == "s");
        let Some(per_second) = per_second else {
            return start.expected("a rate begins with requests per second, such as 10/s");
        };
        if !(LEAST..=MOST as f64).contains(&per_second) {
            return Err(format!(
                "per_second: must be from {LEAST} to {MOST}, not {per_second:e}"
            ));
        }
        let mut values = [None, None, None];
        while !parser.at_end() {
            parser.assignment(&[&BURST, &SAYS, &STATUS], &mut values)?;
        }
        let [burst, says, status] = values;
        Ok(Self {
            per_second,
            burst: match burst {
                Some(Value::Whole(burst)) => burst,
                _ => (per_second as u64).max(1),
            },
            says: match says {
                Some(Value::Word(word)) => word.parse()?,
                _ => Says::default(),
            },
            status: match status {
                Some(Value::Word("503")) => 503,
                _ => 429,
            },
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (per_second, burst, says) = (self.per_second, self.burst, self.says);
        write!(formatter, "{per_second}/s burst={burst} says={says}")?;
        match self.status {
            429 => Ok(()),
            status => write!(formatter, " status={status}"),
        }
    }
}

/// The tokens of one lane.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    pub rate: Rate,
    tokens: f64,
    filled: Instant,
}

/// The bucket's decision on one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub admitted: bool,
    /// The headers for the response.
    pub headers: Vec<(&'static str, String)>,
}

impl Bucket {
    /// A full bucket.
    pub const fn new(rate: Rate, now: Instant) -> Self {
        Self {
            rate,
            tokens: rate.burst as f64,
            filled: now,
        }
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now: Instant, wall: SystemTime) -> Turn {
        let (per_second, burst) = (self.rate.per_second, self.rate.burst);
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * per_second).min(burst as f64);
        self.filled = now;
        // Tolerate rounding: a stated wait must be long enough.
        let admitted = self.tokens >= 1.0 - 1e-6;
        if admitted {
            self.tokens = (self.tokens - 1.0).max(0.0);
        }
        let wait = ((1.0 - self.tokens) / per_second).max(0.0).ceil();
        let headers = match self.rate.says {
            Says::Headers => {
                let until = wall + Duration::try_from_secs_f64(wait).unwrap_or_default();
                let reset = until.duration_since(UNIX_EPOCH).unwrap_or_default();
                let reset = reset.as_secs() + u64::from(reset.subsec_nanos() > 0);
                vec![
                    ("x-ratelimit-limit", burst.to_string()),
                    ("x-ratelimit-remaining", (self.tokens as u64).to_string()),
                    ("x-ratelimit-reset", reset.to_string()),
                ]
            }
            Says::RetryAfter if !admitted => vec![("retry-after", wait.max(1.0).to_string())],
            Says::RetryAfter | Says::Nothing => Vec::new(),
        };
        Turn { admitted, headers }
    }
}
