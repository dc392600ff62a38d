//! Instants in microseconds since 1970-01-01T00:00:00Z.

#[cfg(test)]
mod tests;

use jiff::civil::{DateTime, Time};
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use backread_clock::Clock;

// The first instant with a year of four digits, 0001-01-01T00:00:00Z, and the last that jiff represents:
// 9999-12-30T22:00:00.999999Z.
const EARLIEST: i64 = -62_135_596_800_000_000;
const LATEST: i64 = 253_402_207_200_999_999;

/// An instant of the years 1 to 9999 without the last 26 hours, in microseconds since
/// 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_microsecond())
    }

    /// The wall-clock time.
    pub fn by(clock: &Clock) -> Self {
        let now = jiff::Timestamp::try_from(clock.wall()).unwrap_or(jiff::Timestamp::MAX);
        Self(now.as_microsecond().clamp(EARLIEST, LATEST))
    }

    /// `None` outside the years 1 to 9999, and in the last 26 hours of these.
    pub fn from_microseconds(microseconds: i64) -> Option<Self> {
        (EARLIEST..=LATEST)
            .contains(&microseconds)
            .then_some(Self(microseconds))
    }

    pub fn microseconds(self) -> i64 {
        self.0
    }

    /// Parses ISO 8601 as jiff reads it: with any offset, and with up to nine digits of a second
    /// (truncated to microseconds). Without an offset it is UTC, as interface 2.1 says.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(documented) = text.as_bytes().try_into().ok().and_then(Self::documented) {
            return Some(documented);
        }
        let instant: jiff::Timestamp = text.parse().ok().or_else(|| in_utc(text))?;
        // Cut towards earlier instants, before 1970 too.
        let microseconds = i64::try_from(instant.as_nanosecond().div_euclid(1_000)).ok()?;
        Self::from_microseconds(microseconds)
    }

    /// Parses the documented shape (interface 2.1), `2024-03-05T09:31:07.042Z`, and nothing else.
    pub fn documented(text: &[u8; 24]) -> Option<Self> {
        let (&[date, time, fraction], _) = text.as_chunks() else {
            return None;
        };
        let date = digits(date, *b"0000-00-")?;
        let time = digits(time, *b"00T00:00")?;
        let fraction = digits(fraction, *b":00.000Z")?;
        // A number stands where its first digit is.
        let [y0, _, y2, _, _, month, _, _] = date.map(u32::from);
        let [day, _, _, hour, _, _, minute, _] = time.map(u32::from);
        let [_, second, _, f0, _, f1, _, _] = fraction.map(u32::from);
        let year = y0 * 100 + y2;
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        // Leave leap seconds to the general parser.
        if year == 0 || !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        // Days since 1970-01-01, counting years from March, so that a leap day is the last of its
        // year.
        let shifted = year - u32::from(month <= 2);
        let (centuries, since_march) = (shifted / 100, (153 * ((month + 9) % 12) + 2) / 5);
        let days = 365 * shifted + shifted / 4 - centuries + centuries / 4 + since_march + day;
        let days = i64::from(days) - 719_469;
        let seconds = days * 86_400 + i64::from((hour * 60 + minute) * 60 + second);
        let milliseconds = seconds * 1_000 + i64::from(f0 * 100 + f1);
        Self::from_microseconds(milliseconds * 1_000)
    }

    /// The civil date and time of this instant in UTC.
    pub fn civil(self) -> DateTime {
        let instant = jiff::Timestamp::from_microsecond(self.0).unwrap_or_default();
        Offset::UTC.to_datetime(instant)
    }
}

/// Parses a time without an offset. The name of a zone alone is not an offset.
fn in_utc(text: &str) -> Option<jiff::Timestamp> {
    let pieces = Pieces::parse(text).ok()?;
    if pieces.offset().is_some() || pieces.time_zone_annotation().is_some() {
        return None;
    }
    let time = pieces.time().unwrap_or(Time::midnight());
    Offset::UTC
        .to_timestamp(pieces.date().to_datetime(time))
        .ok()
}

/// Each digit times ten and the next one, where `shape` has zeros; all else counts as zero and must be
/// as in `shape`. Eight bytes are compared, and multiplied, at once.
#[inline(always)]
fn digits(text: [u8; 8], shape: [u8; 8]) -> Option<[u8; 8]> {
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // What brings the least byte that is too large to 128: 10, or 1 where no digit is expected.
    let largest = shape.map(|byte| if byte == b'0' { 0x80 - 10 } else { 0x80 - 1 });
    let found = u64::from_le_bytes(text) ^ u64::from_le_bytes(shape);
    let sums = found.wrapping_add(u64::from_le_bytes(largest));
    ((found | sums) & HIGHS == 0).then(|| (found * 10 + (found >> 8)).to_le_bytes())
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let instant = jiff::Timestamp::from_microsecond(self.0).unwrap_or_default();
        serializer.collect_str(&instant)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let expected = "an ISO 8601 timestamp of the years 1 to 9999";
            D::Error::invalid_value(Unexpected::Str(&text), &expected)
        })
    }
}
