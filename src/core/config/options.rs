//! The options that clients sharing a connection pool may differ in.
//!
//! Deserializing is the only check of their values: an error's text follows the option's name, which
//! `serde_path_to_error` knows.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::retry::OnRateLimit;

/// The default outage patience of a call.
pub const OUTAGE_PATIENCE: Duration = Duration::from_secs(60);
/// The default outage patience of a sync.
pub const OUTAGE_PATIENCE_OF_A_SYNC: Duration = Duration::from_secs(600);

/// How a client sends requests. Durations are deserialized from seconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Options {
    /// For one attempt, from connecting to the last byte; `None` means no timeout.
    #[serde(deserialize_with = "time_limit")]
    pub timeout: Option<Duration>,
    /// For a whole call, including retries, waits and pages.
    #[serde(deserialize_with = "time_limit")]
    pub deadline: Option<Duration>,
    #[serde(deserialize_with = "at_least::<0, _, _>")]
    pub max_retries: u32,
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub max_concurrency: usize,
    /// Requests per second; `None` means no limit.
    #[serde(deserialize_with = "rate")]
    pub rate_limit: Option<f64>,
    #[serde(deserialize_with = "on_rate_limit")]
    pub on_rate_limit: OnRateLimit,
    /// Of one response, after decompression.
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub max_response_bytes: u64,
    /// How long a call waits while the whole service is down; zero disables waiting.
    #[serde(deserialize_with = "patience")]
    pub outage_patience: Duration,
}

/// Seconds, more than 0; `None` for no limit.
fn time_limit<'de, D: Deserializer<'de>>(given: D) -> Result<Option<Duration>, D::Error> {
    let seconds = Option::<f64>::deserialize(given)?;
    let limit = |seconds| match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(D::Error::custom(format!(
            "must be more than 0 seconds and finite, not {seconds}; None means no limit"
        ))),
    };
    seconds.map(limit).transpose()
}

/// Seconds, 0 or more; required.
fn patience<'de, D: Deserializer<'de>>(given: D) -> Result<Duration, D::Error> {
    let seconds = Option::<f64>::deserialize(given)?;
    let length = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    length.ok_or_else(|| {
        let given = seconds.map_or_else(|| "None".to_owned(), |seconds| seconds.to_string());
        D::Error::custom(format!(
            "must be 0 or more seconds and finite, not {given}; 0 disables it"
        ))
    })
}

/// A whole number, `LEAST` or more.
fn at_least<'de, const LEAST: i64, D: Deserializer<'de>, T: TryFrom<i64>>(
    given: D,
) -> Result<T, D::Error> {
    let number = i64::deserialize(given)?;
    if number < LEAST {
        return Err(D::Error::custom(format!(
            "must be {LEAST} or more, not {number}"
        )));
    }
    T::try_from(number).map_err(|_| D::Error::custom(format!("must be smaller, not {number}")))
}

/// Requests a second, more than 0; `None` for no limit.
fn rate<'de, D: Deserializer<'de>>(given: D) -> Result<Option<f64>, D::Error> {
    match Option::<f64>::deserialize(given)? {
        Some(rate) if !(rate.is_finite() && rate > 0.0) => Err(D::Error::custom(format!(
            "must be more than 0 requests per second, not {rate}"
        ))),
        rate => Ok(rate),
    }
}

fn on_rate_limit<'de, D: Deserializer<'de>>(given: D) -> Result<OnRateLimit, D::Error> {
    match String::deserialize(given)?.as_str() {
        "wait" => Ok(OnRateLimit::Wait),
        "raise" => Ok(OnRateLimit::Raise),
        other => Err(D::Error::custom(format!(
            "must be \"wait\" or \"raise\", not {other:?}"
        ))),
    }
}

/// The defaults that users see are in `_client/options.py`.
#[cfg(test)]
impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Some(Duration::from_secs(30)),
            deadline: None,
            max_retries: 5,
            max_concurrency: 16,
            rate_limit: None,
            on_rate_limit: OnRateLimit::Wait,
            max_response_bytes: 64 * 1024 * 1024,
            outage_patience: OUTAGE_PATIENCE,
        }
    }
}
