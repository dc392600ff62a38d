//! What is retried and after which wait.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::error::StatusFailure;

pub fn status(status: u16, retry_after: Option<u64>) -> ErrorKind {
    ErrorKind::Status(Box::new(StatusFailure {
        status,
        headers: Vec::new(),
        body: Bytes::new(),
        request_id: None,
        retry_after: retry_after.map(Duration::from_secs),
    }))
}

fn situation() -> Situation {
    Situation {
        retries_done: 0,
        max_retries: 5,
        on_rate_limit: OnRateLimit::Wait,
        remaining: None,
        chance: 1.0,
    }
}

#[test]
fn a_wait_that_was_asked_for_is_obeyed_to_the_second() {
    let verdict = decide(&status(429, Some(30)), situation());
    assert_eq!(
        verdict,
        Verdict::Retry {
            wait: Duration::from_secs(30)
        }
    );
}

#[test]
fn a_wait_past_the_deadline_is_not_begun() {
    let late = Situation {
        remaining: Some(Duration::from_secs(10)),
        ..situation()
    };
    let verdict = decide(&status(429, Some(30)), late);
    assert_eq!(
        verdict,
        Verdict::PastDeadline {
            wait: Duration::from_secs(30)
        }
    );
}

#[test]
fn a_worker_that_wants_to_reschedule_is_told_at_once() {
    let raise = Situation {
        on_rate_limit: OnRateLimit::Raise,
        ..situation()
    };
    assert_eq!(decide(&status(429, Some(1)), raise), Verdict::GiveUp);
    assert!(matches!(
        decide(&status(503, Some(1)), raise),
        Verdict::Retry { .. }
    ));
}

#[test]
fn each_failure_says_something_else_about_the_service() {
    for (code, expected) in [
        (429, Sign::Refused),
        (503, Sign::Unavailable),
        (502, Sign::Down),
        (504, Sign::Down),
        (522, Sign::Down),
        (530, Sign::Down),
        (404, Sign::Answer),
        (408, Sign::Answer),
        (500, Sign::Answer),
    ] {
        assert_eq!(sign(&status(code, None)), expected, "{code}");
    }
    assert_eq!(sign(&ErrorKind::Timeout(Duration::ZERO)), Sign::Late);
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
    fn retries_never_pass_their_number(done in 0_u32..10, max in 0_u32..10, chance in 0.0_f64..=1.0) {
        let verdict = decide(&status(503, None), Situation {
            retries_done: done, max_retries: max, chance, ..situation()
        });
        prop_assert_eq!(matches!(verdict, Verdict::Retry { .. }), done < max);
    }
}

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
