//! Checks the parser of Retry-After against a simpler one; for the tests and the fuzzer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::wait_from_headers;

const RETRY_AFTER: &str = "retry-after";
const RESET: &str = "x-ratelimit-reset";
const YEAR: u64 = 366 * 24 * 60 * 60;

/// Whether two headers, and the wall clock's seconds in a third line, ask for a wait. Panics if the
/// parser and the reference disagree.
pub fn check(lines: &[u8]) -> bool {
    let text = String::from_utf8_lossy(lines);
    let mut lines = text.split('\n');
    let (retry_after, reset) = (lines.next(), lines.next());
    let elapsed: u32 = lines.next().and_then(|line| line.parse().ok()).unwrap_or(0);
    let elapsed = u64::from(elapsed);
    let now = UNIX_EPOCH + Duration::from_secs(elapsed);

    let wait = wait_from_headers(
        |name| match name {
            RETRY_AFTER => retry_after,
            RESET => reset,
            _ => None,
        },
        now,
    );
    let by_reset = wait_from_headers(|name| reset.filter(|_| name == RESET), now);
    if let Some(number) = retry_after.and_then(whole) {
        assert_eq!(wait, length(until(number, now)));
    }
    if let Some(number) = reset.and_then(whole) {
        assert_eq!(by_reset, length(until(number, now)));
    }
    for later in [0, 1, 3_600, YEAR].map(Duration::from_secs) {
        let date = httpdate::fmt_http_date(now + later);
        let found = wait_from_headers(|name| (name == RETRY_AFTER).then_some(date.as_str()), now);
        assert_eq!(found, Some(later), "{date}");
    }
    wait.is_some()
}

/// A number with few enough digits that no parser rounds it.
fn whole(header: &str) -> Option<u64> {
    let header = header.trim();
    let plain = header.len() <= 15 && header.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| header.parse().ok()).flatten()
}

/// The wait in milliseconds that a reset header asks for.
fn until(number: u64, now: SystemTime) -> u128 {
    let elapsed = now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_millis());
    let number = u128::from(number);
    match number {
        0..1_000_000_000 => number * 1000,
        1_000_000_000..1_000_000_000_000 => (number * 1000).saturating_sub(elapsed),
        _ => number.saturating_sub(elapsed),
    }
}

fn length(milliseconds: u128) -> Option<Duration> {
    Some(Duration::from_millis(u64::try_from(milliseconds).ok()?))
}
