//! What is retried and after which wait.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::error::StatusFailure;

fn status(status: u16, retry_after: Option<u64>) -> ErrorKind {
    ErrorKind::Status(Box::new(StatusFailure {
        status,
        headers: Vec::new(),
        body: Bytes::new(),
        request_id: None,
        retry_after: retry_after.map(Duration::from_secs),
    }))
}

const FIRST: Situation = Situation {
    retries_done: 0,
    max_retries: 5,
    is_known: true,
    on_rate_limit: OnRateLimit::Wait,
    remaining: None,
    chance: 1.0,
};

fn retry(milliseconds: u64) -> Verdict {
    Verdict::Retry {
        wait: Duration::from_millis(milliseconds),
    }
}

#[test]
fn a_stated_wait_is_obeyed_unless_the_deadline_or_the_caller_says_otherwise() {
    use OnRateLimit::{Raise, Wait};
    let late = Verdict::PastDeadline {
        wait: Duration::from_secs(30),
    };
    for (code, stated, retries_done, on_rate_limit, remaining, expected) in [
        (429, Some(30), 0, Wait, None, retry(30_000)),
        (429, Some(30), 0, Wait, Some(10), late),
        (429, Some(1), 0, Raise, None, Verdict::GiveUp),
        (503, Some(1), 0, Raise, None, retry(1_000)),
        (503, Some(1), 5, Wait, None, Verdict::GiveUp),
        // The gate knows for how long.
        (429, None, 0, Wait, None, retry(0)),
    ] {
        let situation = Situation {
            retries_done,
            on_rate_limit,
            remaining: remaining.map(Duration::from_secs),
            ..FIRST
        };
        let verdict = decide(&status(code, stated), situation);
        assert_eq!(verdict, expected, "{code} {stated:?} {situation:?}");
    }
}

#[test]
fn a_mistyped_address_fails_within_a_second() {
    let failure = ErrorKind::Connect("dns error".to_owned());
    for (is_known, retries_done, wait) in [(false, 4, 200), (true, 0, 200), (true, 4, 3_200)] {
        let situation = Situation {
            is_known,
            retries_done,
            ..FIRST
        };
        assert_eq!(decide(&failure, situation), retry(wait));
    }
}

#[test]
fn each_failure_says_something_else_about_the_service() {
    for (codes, expected) in [
        (&[429][..], Sign::Refused),
        (&[503], Sign::Unavailable),
        (&[502, 504, 520, 524, 530], Sign::Down),
        (&[404, 408, 500, 519, 525], Sign::Answer),
    ] {
        for code in codes {
            assert_eq!(sign(&status(*code, None)), expected, "{code}");
        }
    }
    assert_eq!(sign(&ErrorKind::Timeout(Duration::ZERO)), Sign::Timeout);
    assert_eq!(sign(&ErrorKind::TruncatedBody(String::new())), Sign::Broken);
}

#[test]
fn only_what_may_pass_by_itself_is_transient() {
    for passing in [408, 429, 500, 502, 503, 504, 599] {
        assert!(is_transient(&status(passing, None)), "{passing}");
    }
    for lasting in [301, 400, 401, 403, 404, 405, 406, 422] {
        assert!(!is_transient(&status(lasting, None)), "{lasting}");
    }
    assert!(is_transient(&ErrorKind::TruncatedBody(String::new())));
    assert!(!is_transient(&ErrorKind::ResponseTooLarge { limit: 1 }));
}

proptest! {
    #[test]
    fn a_backoff_never_passes_its_bound(done in 0_u32..100, chance in 0.0_f64..=1.0) {
        let wait = backoff(done, chance);
        prop_assert!(wait <= LONGEST_BACKOFF);
        prop_assert!(wait <= FIRST_BACKOFF * 2_u32.saturating_pow(done.min(20)));
    }

    #[test]
    fn seconds_are_a_wait_and_no_header_makes_it_panic(
        seconds in 0_u64..1_000_000_000, value in ".{0,30}|[ 0-9.e+-]{0,30}",
    ) {
        let text = seconds.to_string();
        let wait = wait_from_headers(|name| (name == "retry-after").then_some(&*text), UNIX_EPOCH);
        prop_assert_eq!(wait, Some(Duration::from_secs(seconds)));
        let _ = wait_from_headers(|_| Some(value.as_str()), SystemTime::now());
    }
}

#[test]
fn what_the_service_asks_for_is_read_in_every_form() {
    let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let (after, reset) = ("retry-after", "x-ratelimit-reset");
    for (name, value, seconds) in [
        (after, " 30 ", Some(30)),
        (after, "Tue, 14 Nov 2023 22:13:50 GMT", Some(30)),
        (after, "Tue, 14 Nov 2023 00:00:00 GMT", Some(0)),
        (after, "1700000030", Some(30)),
        (after, "1699999999", Some(0)),
        (after, "1800000000000", Some(100_000_000)),
        (after, "315360000", Some(315_360_000)),
        // More than a `Duration` can hold.
        (after, "99999999999999999999", None),
        (reset, "30", Some(30)),
        (reset, "999999999", Some(999_999_999)),
        (reset, "1700000030", Some(30)),
        (reset, "1700000030000", Some(30)),
        (reset, "1700000030000000000", Some(30)),
        (reset, "Tue, 14 Nov 2023 22:13:50 +0000", Some(30)),
        (after, "", None),
        (after, "-1", None),
        (after, "soon", None),
        (after, "NaN", None),
        (after, "1e3", None),
    ] {
        let wait = wait_from_headers(|header| (header == name).then_some(value), now);
        assert_eq!(wait, seconds.map(Duration::from_secs), "{name}: {value}");
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
        let wait = wait_from_headers(header, now);
        assert_eq!(wait, Some(Duration::from_secs(30)));
    }
}
