//! Whether to retry, and after how long: a pure function of its arguments, without a clock or
//! randomness.

#[cfg(any(test, fuzzing))]
pub mod agreement;
mod headers;

use std::time::Duration;

use super::error::ErrorKind;
use super::pace::RefusedBy;

pub use headers::{date, wait_from_headers};

/// The longest backoff before the first retry; the bound doubles with each retry.
pub const FIRST_BACKOFF: Duration = Duration::from_millis(200);
/// The longest backoff. A wait that the service asks for may be longer.
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(20);
/// The waits before further requests while the service answers nothing but 429 without a stated wait,
/// in milliseconds. With the default of five retries they outlast a limit that is counted per minute, and
/// those of a second or ten are not waited for much longer than they last.
const REFUSED_WAITS: [u64; 4] = [700, 3_000, 8_000, 50_000];
/// They are longer by up to this fraction, so that clients do not return together.
const REFUSED_JITTER: f64 = 0.1;

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
    /// How many 429s without a stated wait came since this call's first one, each after the wait for
    /// the one before and without an answer in between.
    pub refused_since: u32,
    /// The same since the first of them, of whichever call: how many waits were too short.
    pub waits_refused: u32,
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

/// What a failure says about the service's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Nothing: the service answered, or could not be reached.
    Unknown,
    /// The service is overloaded.
    Over,
    /// The service takes no more requests for now, or, if 503 says so, is down; with the wait that
    /// it asks for, if any.
    Refused {
        by: RefusedBy,
        wait: Option<Duration>,
    },
}

pub fn load(failure: &ErrorKind) -> Load {
    let ErrorKind::Status(failure) = failure else {
        return match failure {
            ErrorKind::Timeout(_) => Load::Over,
            _ => Load::Unknown,
        };
    };
    let wait = failure.retry_after.filter(|wait| !wait.is_zero());
    let by = match failure.status {
        429 => RefusedBy::TooManyRequests,
        503 => RefusedBy::Unavailable,
        _ => return Load::Unknown,
    };
    Load::Refused { by, wait }
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
    if let ErrorKind::Status(failure) = failure
        && failure.status == 429
        && situation.on_rate_limit == OnRateLimit::Raise
    {
        return Verdict::GiveUp;
    }
    let retry_after = retry_after(failure);
    let (refused_since, waits_refused) = match is_unstated_refusal(failure) {
        true => (situation.refused_since, situation.waits_refused),
        false => (0, 0),
    };
    if situation.retries_done.max(refused_since) >= situation.max_retries {
        return Verdict::GiveUp;
    }
    let wait = retry_after.unwrap_or_else(|| {
        refused_wait(waits_refused, situation.chance)
            .unwrap_or_else(|| backoff(situation.retries_done, situation.chance))
    });
    match situation.remaining {
        Some(remaining) if wait >= remaining => Verdict::PastDeadline { wait },
        _ => Verdict::Retry { wait },
    }
}

/// Whether it is a 429 that does not say how long to wait.
pub fn is_unstated_refusal(failure: &ErrorKind) -> bool {
    let by = RefusedBy::TooManyRequests;
    load(failure) == Load::Refused { by, wait: None }
}

/// The wait after this many were too short; `None` for the first, and once all were.
fn refused_wait(waits: u32, chance: f64) -> Option<Duration> {
    let index = usize::try_from(waits.checked_sub(1)?).ok()?;
    let wait = Duration::from_millis(*REFUSED_WAITS.get(index)?);
    let jitter = REFUSED_JITTER * chance.clamp(0.0, 1.0);
    Some(wait.mul_f64(1.0 + jitter))
}

/// Whether all waits were too short after this many refusals in a row.
pub fn is_exhausted(in_a_row: u32) -> bool {
    refused_wait(in_a_row.saturating_sub(1), 0.0).is_none() && in_a_row > 1
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
            refused_since: 0,
            waits_refused: 0,
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
    fn only_429_503_and_silence_say_something_of_the_load() {
        for (code, by) in [
            (429, RefusedBy::TooManyRequests),
            (503, RefusedBy::Unavailable),
        ] {
            for wait in [None, Some(30)] {
                let refused = Load::Refused {
                    by,
                    wait: wait.map(Duration::from_secs),
                };
                assert_eq!(load(&status(code, wait)), refused);
            }
        }
        for code in [404, 408, 500, 502, 504] {
            assert_eq!(load(&status(code, None)), Load::Unknown, "{code}");
        }
        assert_eq!(load(&ErrorKind::Timeout(Duration::ZERO)), Load::Over);
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
        for chance in [0.0, 1.0] {
            let waits = (0..5).map(|refused| {
                let situation = Situation {
                    retries_done: refused,
                    refused_since: refused,
                    waits_refused: refused,
                    chance,
                    ..situation()
                };
                match decide(&status(429, None), situation) {
                    Verdict::Retry { wait } => wait,
                    verdict => panic!("{verdict:?}"),
                }
            });
            let waited = waits.sum::<Duration>().as_secs_f64();
            assert!((60.0..70.0).contains(&waited), "{waited} s");
        }
    }

    #[test]
    fn waiting_together_a_call_gives_up_as_soon_as_one_alone() {
        let situation = Situation {
            refused_since: 5,
            ..situation()
        };
        assert_eq!(decide(&status(429, None), situation), Verdict::GiveUp);
        for failure in [status(429, Some(1)), status(500, None)] {
            assert!(matches!(decide(&failure, situation), Verdict::Retry { .. }));
        }
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
