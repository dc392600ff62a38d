//! Whether to retry, and after how long, also by the headers of a response: pure functions of their
//! arguments, without a clock or randomness.

#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::error::ErrorKind;

/// The longest backoff before the first retry; the bound doubles with each retry.
pub const FIRST_BACKOFF: Duration = Duration::from_millis(200);
/// The longest backoff. A wait that the service asks for may be longer.
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(20);
/// Closed gates and probes last up to this fraction longer, so that clients do not return together.
const JITTER: f64 = 0.1;

// Values from here on are an epoch; below, a number of seconds (2001-09-09 as either).
const EPOCH_FROM: Duration = Duration::from_secs(1_000_000_000);
// From here on an epoch is in milliseconds (2001-09-09; in seconds it would be the year 33658).
const MILLISECONDS_FROM: Duration = Duration::from_secs(1_000_000_000_000);

/// What a 429 does: wait and retry, or fail at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRateLimit {
    Wait,
    Raise,
}

/// All inputs of the decision.
#[derive(Debug, Clone, Copy)]
pub struct Situation {
    pub retries_done: u32,
    pub max_retries: u32,
    /// The service has answered before.
    pub is_known: bool,
    pub on_rate_limit: OnRateLimit,
    /// Time left before the deadline; `None` if there is none.
    pub remaining: Option<Duration>,
    /// A random number from 0 to 1, for full jitter.
    pub chance: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Retry { wait: Duration },
    GiveUp,
    PastDeadline { wait: Duration },
}

/// What a failure says about the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It is up: any other status.
    Answer,
    /// 429: too many requests.
    Refused,
    /// 503: too many requests, or an outage.
    Unavailable,
    /// It is down: no connection, or a status that proxies send then (520 to 524 and 530 are
    /// Cloudflare's).
    Down,
    /// No response in time: it may be overloaded.
    Timeout,
    /// Nothing: the response was incomplete or not HTTP.
    Broken,
}

pub fn sign(failure: &ErrorKind) -> Sign {
    match failure {
        ErrorKind::Status(failure) => match failure.status {
            429 => Sign::Refused,
            503 => Sign::Unavailable,
            502 | 504 | 520..=524 | 530 => Sign::Down,
            _ => Sign::Answer,
        },
        ErrorKind::Decode { .. } => Sign::Answer,
        ErrorKind::Connect(_) => Sign::Down,
        ErrorKind::Timeout(_) => Sign::Timeout,
        _ => Sign::Broken,
    }
}

/// Failures that may be retried. Reads are idempotent (RFC 9110, 9.2.2), so that is every transient
/// one.
pub fn is_transient(failure: &ErrorKind) -> bool {
    match failure {
        ErrorKind::Connect(_)
        | ErrorKind::NotHttp(_)
        | ErrorKind::Timeout(_)
        | ErrorKind::TruncatedBody(_) => true,
        ErrorKind::Status(failure) => matches!(failure.status, 408 | 429 | 500..=510 | 512..=599),
        _ => false,
    }
}

/// The wait that the service requested, if any.
pub fn retry_after(failure: &ErrorKind) -> Option<Duration> {
    match failure {
        ErrorKind::Status(failure) => failure.retry_after.filter(|wait| !wait.is_zero()),
        _ => None,
    }
}

/// Decides on a transient failure, or on a success whose body was not JSON.
pub fn decide(failure: &ErrorKind, situation: Situation) -> Verdict {
    let (retries_done, chance) = (situation.retries_done, situation.chance);
    let is_refused = sign(failure) == Sign::Refused;
    let is_connect = matches!(failure, ErrorKind::Connect(_));
    let raises = is_refused && situation.on_rate_limit == OnRateLimit::Raise;
    if raises || retries_done >= situation.max_retries {
        return Verdict::GiveUp;
    }
    let wait = match retry_after(failure) {
        Some(stated) => stated,
        // The gate decides for how long it closes.
        None if is_refused => Duration::ZERO,
        // A mistyped address fails within a second.
        None if !situation.is_known && is_connect => backoff(0, chance),
        None => backoff(retries_done, chance),
    };
    match situation.remaining {
        Some(remaining) if wait >= remaining => Verdict::PastDeadline { wait },
        _ => Verdict::Retry { wait },
    }
}

/// The wait, or a little longer.
pub fn jittered(wait: Duration, chance: f64) -> Duration {
    wait.mul_f64(1.0 + JITTER * chance.clamp(0.0, 1.0))
}

/// Full jitter: any wait from zero to the doubled bound, so that clients do not return at once.
fn backoff(retries_done: u32, chance: f64) -> Duration {
    let doubled = FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(retries_done));
    doubled.min(LONGEST_BACKOFF).mul_f64(chance.clamp(0.0, 1.0))
}

/// The wait that a refusal asks for: `Retry-After` (RFC 9110, 10.2.3), or if there is none, the time
/// until a limit is reset: `X-RateLimit-Reset`. Services send both as a number of seconds, as a date or
/// as an epoch, down to nanoseconds. A limit of which something remains is not why it was refused. If
/// `Retry-After` is zero, the limit counts if the service says that nothing remains.
///
/// Dates and epochs are by the service's clock, which its `Date` tells; without one, it is `now`.
pub fn wait_from_headers<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: SystemTime,
) -> Option<Duration> {
    let now = header("date").and_then(date).unwrap_or(now);
    let retry_after = header("retry-after").and_then(|value| wait(value.trim(), now));
    if retry_after.is_some_and(|wait| !wait.is_zero()) {
        return retry_after;
    }
    match header("x-ratelimit-remaining").and_then(seconds) {
        Some(remaining) if !remaining.is_zero() => retry_after,
        None if retry_after.is_some() => retry_after,
        _ => header("x-ratelimit-reset")
            .and_then(|value| wait(value.trim(), now))
            .or(retry_after),
    }
}

/// The time in a header. RFC 9110 wants `GMT`; some write the same zone otherwise.
pub fn date(value: &str) -> Option<SystemTime> {
    let otherwise = ["UTC", "+0000"]
        .iter()
        .find_map(|zone| value.strip_suffix(zone));
    match otherwise {
        Some(value) => httpdate::parse_http_date(&format!("{value}GMT")).ok(),
        None => httpdate::parse_http_date(value).ok(),
    }
}

/// The time until a date or an epoch, or a number of seconds.
fn wait(value: &str, now: SystemTime) -> Option<Duration> {
    let Some(length) = seconds(value) else {
        return Some(date(value)?.duration_since(now).unwrap_or_default());
    };
    if length < EPOCH_FROM {
        return Some(length);
    }
    // Milliseconds, microseconds and nanoseconds are each a thousand times as many.
    let mut epoch = length;
    while epoch >= MILLISECONDS_FROM {
        epoch /= 1000;
    }
    Some(epoch.saturating_sub(now.duration_since(UNIX_EPOCH).ok()?))
}

// RFC 9110 does not allow fractions, but services send them.
fn seconds(value: &str) -> Option<Duration> {
    let plain = value
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = if plain {
        value.parse().ok()?
    } else {
        return None;
    };
    Duration::try_from_secs_f64(number).ok()
}
