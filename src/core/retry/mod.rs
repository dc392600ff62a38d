//! Whether to retry, and after how long: a pure function of its arguments, without a clock or
//! randomness.

#[cfg(any(test, fuzzing))]
pub mod agreement;
mod headers;

use std::time::Duration;

use super::error::ErrorKind;

pub use headers::{date, wait_from_headers};

/// The longest backoff before the first retry; the bound doubles with each retry.
pub const FIRST_BACKOFF: Duration = Duration::from_millis(200);
/// The longest backoff. A wait that the service asks for may be longer.
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(20);
/// How long the gate is closed by 429s in a row without a stated wait, in milliseconds. With the
/// default of five retries they outlast a limit that is counted per minute, and those of a second or
/// ten are not waited for much longer than they last; a longer limit fails each call soon.
const HOLDS: [u64; 6] = [150, 750, 3_000, 8_000, 50_000, 1_000];
/// Holds and probes are later by up to this fraction, so that clients do not return together.
const JITTER: f64 = 0.2;

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
    /// How many 429s without a stated wait have come in a row, including this one.
    pub refused_in_a_row: u32,
    pub max_retries: u32,
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
    /// It is up: any status that is not one of those below.
    Answer,
    /// 429: it takes no more requests for now.
    Refused,
    /// 503: it takes no more for now, or is down.
    Unavailable,
    /// It is down: no connection, or what proxies answer then. 520 to 524 and 530 are Cloudflare's.
    Down,
    /// It is overloaded, or seems to be: no response in time.
    Late,
    /// Nothing: the response broke off, or was none.
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
        ErrorKind::Timeout(_) => Sign::Late,
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
    let Situation {
        retries_done,
        chance,
        ..
    } = situation;
    let is_refused = sign(failure) == Sign::Refused;
    let raises = is_refused && situation.on_rate_limit == OnRateLimit::Raise;
    if raises || retries_done >= situation.max_retries {
        return Verdict::GiveUp;
    }
    let wait = match retry_after(failure) {
        Some(stated) => stated,
        None if is_refused => hold(situation.refused_in_a_row, chance),
        None => backoff(retries_done, chance),
    };
    match situation.remaining {
        Some(remaining) if wait >= remaining => Verdict::PastDeadline { wait },
        _ => Verdict::Retry { wait },
    }
}

/// How long so many refusals in a row without a stated wait close the gate.
pub fn hold(in_a_row: u32, chance: f64) -> Duration {
    let index = usize::try_from(in_a_row)
        .unwrap_or(usize::MAX)
        .clamp(1, HOLDS.len())
        - 1;
    jittered(Duration::from_millis(HOLDS[index]), chance)
}

pub fn jittered(wait: Duration, chance: f64) -> Duration {
    wait.mul_f64(1.0 + JITTER * chance.clamp(0.0, 1.0))
}

/// Full jitter: any wait from zero to the doubled bound, so that clients do not return at once.
fn backoff(retries_done: u32, chance: f64) -> Duration {
    let doubled = FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(retries_done));
    doubled.min(LONGEST_BACKOFF).mul_f64(chance.clamp(0.0, 1.0))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::error::StatusFailure;
    use bytes::Bytes;
    use proptest::prelude::*;

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
            refused_in_a_row: 1,
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

    #[test]
    fn refusals_of_everything_are_outlasted_for_a_minute() {
        for (chance, expected) in [(0.0, 61.9), (1.0, 74.28)] {
            let waits = (0..5).map(|retries_done| {
                let refused_in_a_row = retries_done + 1;
                let situation = Situation {
                    retries_done,
                    refused_in_a_row,
                    chance,
                    ..situation()
                };
                match decide(&status(429, None), situation) {
                    Verdict::Retry { wait } => wait,
                    verdict => panic!("{verdict:?}"),
                }
            });
            assert_eq!(waits.sum::<Duration>().as_secs_f64(), expected);
        }
        assert_eq!(hold(60, 0.0), Duration::from_secs(1));
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
}
