//! Instants in microseconds since 1970-01-01T00:00:00Z.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::clock::Clock;

// What Python's datetime can hold: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999Z.
const EARLIEST: i64 = -62_135_596_800_000_000;
const LATEST: i64 = 253_402_300_799_999_999;

/// An instant of the years 1 to 9999, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_microsecond())
    }

    /// What the clock's wall shows.
    pub fn by(clock: &Clock) -> Self {
        let now = jiff::Timestamp::try_from(clock.wall()).unwrap_or(jiff::Timestamp::MAX);
        Self(now.as_microsecond().clamp(EARLIEST, LATEST))
    }

    /// `None` outside the years 1 to 9999.
    pub fn from_microseconds(microseconds: i64) -> Option<Self> {
        (EARLIEST..=LATEST)
            .contains(&microseconds)
            .then_some(Self(microseconds))
    }

    pub fn microseconds(self) -> i64 {
        self.0
    }

    /// Reads ISO 8601 with any precision (cut to microseconds) and any offset; without an offset it
    /// is UTC, which interface 2.1 says all of them are.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let microseconds = match text.parse::<jiff::Timestamp>() {
            Ok(instant) => instant.as_microsecond(),
            Err(_) => text
                .trim_end_matches(" UTC")
                .parse::<DateTime>()
                .ok()?
                .to_zoned(TimeZone::UTC)
                .ok()?
                .timestamp()
                .as_microsecond(),
        };
        Self::from_microseconds(microseconds)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimestampVisitor;

        impl Visitor<'_> for TimestampVisitor {
            type Value = Timestamp;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an ISO 8601 timestamp of the years 1 to 9999")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::parse(text)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(TimestampVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn any_offset_and_precision_is_read() {
        let expected = Timestamp::parse("2024-03-05T09:31:07.042Z").unwrap();
        assert_eq!(expected.microseconds(), 1_709_631_067_042_000);
        for same in [
            "2024-03-05T10:31:07.042+01:00",
            "2024-03-05T09:31:07.042000Z",
            "2024-03-05T09:31:07.042000999Z",
            "2024-03-05 09:31:07.042Z",
            "2024-03-05T09:31:07.042",
            "2024-03-05 09:31:07.042 UTC",
        ] {
            assert_eq!(Timestamp::parse(same), Some(expected), "{same}");
        }
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for refused in [
            "",
            "yesterday",
            "0000-00-00T00:00:00Z",
            "-000044-03-15T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(refused), None, "{refused}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            let _ = Timestamp::parse(&text);
        }
    }
}
