//! The wait that the headers of a response ask for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

// Values from here on are an epoch; below, a number of seconds (2001-09-09 as either).
const EPOCH_FROM: Duration = Duration::from_secs(1_000_000_000);
// From here on an epoch is in milliseconds (2001-09-09; in seconds it would be the year 33658).
const MILLISECONDS_FROM: Duration = Duration::from_secs(1_000_000_000_000);

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
