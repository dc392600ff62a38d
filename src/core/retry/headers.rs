//! The wait that the headers of a response ask for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

// Values from here on are an epoch; below, a number of seconds (2001-09-09 as either).
const EPOCH_FROM: Duration = Duration::from_secs(1_000_000_000);
// A Retry-After this near to the present, as an epoch, is one.
const NEAR: Duration = Duration::from_secs(366 * 24 * 60 * 60);
// From here on an epoch is in milliseconds (2001-09-09; in seconds it would be the year 33658).
const MILLISECONDS_FROM: Duration = Duration::from_secs(1_000_000_000_000);

/// The wait that a refusal asks for: `Retry-After` in seconds or as a date (RFC 9110, 10.2.3), or as
/// an epoch near the present, as some services send it. If there is none, the time until a limit is
/// reset: `X-RateLimit-Reset` as an epoch, down to nanoseconds, as a number of seconds or as a date. A
/// limit of which something remains is not why it was refused. If `Retry-After` is zero, the limit
/// counts if the service says that nothing remains.
///
/// Dates and epochs are by the service's clock, which its `Date` tells; without one, it is `now`.
pub fn wait_from_headers<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: SystemTime,
) -> Option<Duration> {
    let now = header("date").and_then(date).unwrap_or(now);
    let retry_after = header("retry-after").and_then(|value| seconds_or_date(value.trim(), now));
    if retry_after.is_some_and(|wait| !wait.is_zero()) {
        return retry_after;
    }
    match header("x-ratelimit-remaining").and_then(seconds) {
        Some(remaining) if !remaining.is_zero() => retry_after,
        None if retry_after.is_some() => retry_after,
        _ => header("x-ratelimit-reset")
            .and_then(|value| seconds_epoch_or_date(value.trim(), now))
            .or(retry_after),
    }
}

/// Some services send an epoch: it is near, and a wait of decades is not meant.
fn seconds_or_date(value: &str, now: SystemTime) -> Option<Duration> {
    let Some(length) = seconds(value) else {
        let then = date(value)?;
        return Some(then.duration_since(now).unwrap_or(Duration::ZERO));
    };
    match now.duration_since(UNIX_EPOCH) {
        Ok(elapsed) if length >= EPOCH_FROM && length.abs_diff(elapsed) <= NEAR => {
            Some(length.saturating_sub(elapsed))
        }
        _ => Some(length),
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

fn seconds_epoch_or_date(value: &str, now: SystemTime) -> Option<Duration> {
    let Some(length) = seconds(value) else {
        return seconds_or_date(value, now);
    };
    if length < EPOCH_FROM {
        return Some(length);
    }
    // Milliseconds, microseconds and nanoseconds are each a thousand times as many.
    let mut epoch = length;
    while epoch >= MILLISECONDS_FROM {
        epoch /= 1000;
    }
    let elapsed = now.duration_since(UNIX_EPOCH).ok()?;
    Some(epoch.saturating_sub(elapsed))
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::retry::agreement;

    fn wait_from(name: &str, value: &str) -> Option<Duration> {
        let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        wait_from_headers(|header| (header == name).then_some(value), now)
    }

    #[test]
    fn what_the_service_asks_for_is_read_in_every_form() {
        let thirty = Some(Duration::from_secs(30));
        assert_eq!(wait_from("retry-after", "30"), thirty);
        assert_eq!(wait_from("retry-after", " 30 "), thirty);
        assert_eq!(
            wait_from("retry-after", "Tue, 14 Nov 2023 22:13:50 GMT"),
            thirty
        );
        assert_eq!(wait_from("x-ratelimit-reset", "30"), thirty);
        assert_eq!(wait_from("x-ratelimit-reset", "1700000030"), thirty);
        for zeros in ["000", "000000", "000000000"] {
            let epoch = format!("1700000030{zeros}");
            assert_eq!(wait_from("x-ratelimit-reset", &epoch), thirty);
        }
        for date in [
            "Tue, 14 Nov 2023 22:13:50 UTC",
            "Tue, 14 Nov 2023 22:13:50 +0000",
        ] {
            assert_eq!(wait_from("retry-after", date), thirty);
            assert_eq!(wait_from("x-ratelimit-reset", date), thirty);
        }
        assert_eq!(
            wait_from("retry-after", "Tue, 14 Nov 2023 00:00:00 GMT"),
            Some(Duration::ZERO)
        );
        for nonsense in ["", "-1", "soon", "NaN", "inf", "1e3"] {
            assert_eq!(wait_from("retry-after", nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_limit_that_is_not_spent_asks_for_no_wait() {
        for (retry_after, remaining, wait) in [
            (None, None, Some(30)),
            (None, Some("0"), Some(30)),
            (None, Some("7"), None),
            (Some("0"), Some("0"), Some(30)),
            (Some("0"), Some("7"), Some(0)),
            (Some("0"), None, Some(0)),
            (Some("5"), Some("0"), Some(5)),
        ] {
            let header = |header: &str| match header {
                "retry-after" => retry_after,
                "x-ratelimit-remaining" => remaining,
                "x-ratelimit-reset" => Some("30"),
                _ => None,
            };
            let wait = wait.map(Duration::from_secs);
            let given = wait_from_headers(header, UNIX_EPOCH);
            assert_eq!(given, wait, "{retry_after:?} {remaining:?}");
        }
    }

    #[test]
    fn dates_are_by_the_clock_of_the_service() {
        let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        for (name, value) in [
            ("retry-after", "Tue, 14 Nov 2023 23:13:50 GMT"),
            ("x-ratelimit-reset", "1700003630"),
        ] {
            let header = |header: &str| match header {
                "date" => Some("Tue, 14 Nov 2023 23:13:20 GMT"),
                _ => (header == name).then_some(value),
            };
            assert_eq!(
                wait_from_headers(header, now),
                Some(Duration::from_secs(30))
            );
        }
    }

    #[test]
    fn an_epoch_near_the_present_is_no_wait_of_decades() {
        let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        for (epoch, wait) in [
            ("1700000030", 30),
            ("1699999999", 0),
            ("1800000000", 1_800_000_000),
        ] {
            let header = |header: &str| (header == "retry-after").then_some(epoch);
            let wait = Some(Duration::from_secs(wait));
            assert_eq!(wait_from_headers(header, now), wait, "{epoch}");
        }
    }

    #[test]
    fn a_wait_of_years_is_one_too() {
        for (years, seconds) in [("315360000", 315_360_000), ("99999999999", 99_999_999_999)] {
            let wait = Some(Duration::from_secs(seconds));
            assert_eq!(wait_from("retry-after", years), wait);
        }
        // More than a `Duration` can hold.
        assert_eq!(wait_from("retry-after", "99999999999999999999"), None);
    }

    #[test]
    fn what_the_fuzzer_starts_from_is_read_as_a_plain_reading_does() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/retry_after");
        let mut waits = 0;
        for file in fs::read_dir(corpus).unwrap() {
            waits += usize::from(agreement::check(&fs::read(file.unwrap().path()).unwrap()));
        }
        assert!(waits > 10, "{waits}");
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(value in ".{0,30}") {
            let _ = wait_from_headers(|_| Some(value.as_str()), SystemTime::now());
        }
    }
}
