//! Time in the world: milliseconds since 1970, the rhythm of days and weeks, and timestamp formats.

use jiff::Timestamp;

use super::draw::{Draw, Stream};

/// Milliseconds in a second, a minute, an hour, a day, a week.
pub const SECOND: u64 = 1000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;
pub const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// Monday 2019-01-07T00:00Z, when the first user arrives unless a world ends at a given time.
const OPENING: u64 = 17_903 * DAY;

/// What a user's first visit takes at most, from the arrival until the user is last seen.
const LAST_VISIT: u64 = 7 * HOUR;

/// Milliseconds from the opening to user 1; user i arrives at this times the cube root of i, as if
/// the service grew: 100 users in 40 days, 10 million in five years.
const GROWTH: u64 = 743_040_000;

/// The relative activity of the hours of a day: (hours, weight).
const DAY_SHAPE: [(u64, u64); 7] = [(6, 1), (2, 4), (4, 14), (1, 10), (5, 14), (4, 6), (2, 2)];
const DAY_MASS: u64 = 6 + 8 + 56 + 10 + 70 + 24 + 4;
/// The relative activity of Monday to Sunday.
const WEEK_SHAPE: [u64; 7] = [11, 10, 10, 10, 9, 3, 2];
const WEEK_MASS: u64 = 55;
/// The relative activity of each four weeks in a year of 52: sales in winter and before Christmas,
/// a quiet summer.
const YEAR_SHAPE: [u64; 13] = [11, 8, 7, 8, 8, 7, 6, 5, 6, 8, 9, 13, 14];
const YEAR_MASS: u64 = 110;
const YEAR: u64 = 52 * WEEK;

/// The greatest `root` with `root^3 <= value`, exact on every machine.
fn cube_root(value: u128) -> u64 {
    let mut root = (value as f64).cbrt() as u64;
    let cube = |root: u64| u128::from(root).pow(3);
    while cube(root) > value {
        root -= 1;
    }
    while cube(root + 1) <= value {
        root += 1;
    }
    root
}

/// Maps a uniformly distributed time to the rhythm of the week, preserving order.
fn in_rhythm(even: u64) -> u64 {
    let (week, within) = (even / WEEK * WEEK, even % WEEK);
    let mut mass = within * WEEK_MASS;
    let mut day_start = 0;
    for weight in WEEK_SHAPE {
        if mass < weight * WEEK {
            return week + day_start + hour_in_rhythm(mass / (weight * 7));
        }
        mass -= weight * WEEK;
        day_start += DAY;
    }
    week + WEEK - 1
}

/// Maps a uniformly distributed time to the rhythm of the year, preserving order.
fn in_season(even: u64) -> u64 {
    let (year, within) = (even / YEAR * YEAR, even % YEAR);
    let mut mass = within * YEAR_MASS;
    let mut start = 0;
    for weight in YEAR_SHAPE {
        if mass < weight * YEAR {
            return year + start + mass / (weight * 13);
        }
        mass -= weight * YEAR;
        start += YEAR / 13;
    }
    year + YEAR - 1
}

/// The same for a time within one day.
fn hour_in_rhythm(even: u64) -> u64 {
    let mut mass = even * DAY_MASS;
    let mut start = 0;
    for (hours, weight) in DAY_SHAPE {
        let whole = hours * weight * DAY;
        if mass < whole {
            return start + mass / (weight * 24);
        }
        mass -= whole;
        start += hours * HOUR;
    }
    DAY - 1
}

/// The period in which the rows of a world happen.
#[derive(Clone, Copy, Debug)]
pub struct Calendar {
    /// A Monday at 00:00, the beginning of the week in which the first user arrives.
    opening: u64,
    /// How far into that week, before the rhythm of days is applied.
    phase: u64,
    /// No generated time is later than this.
    end: u64,
}

impl Default for Calendar {
    fn default() -> Self {
        Self {
            opening: OPENING,
            phase: 0,
            end: u64::MAX,
        }
    }
}

impl Calendar {
    /// A calendar in which the last of `users` users arrives about a day before `end`; `None` if
    /// the first one would arrive before 1970.
    #[must_use]
    pub fn ending(seed: u64, users: u64, end: u64) -> Option<Self> {
        // The day is for users that are added later.
        let latest = end.checked_sub(LAST_VISIT + DAY)?;
        let even = even_arrival(seed, users.saturating_sub(1));
        // Weeks still begin on a Monday, so days keep their rhythm.
        let opening = latest.checked_sub(in_rhythm(even))?;
        let opening = opening.checked_sub((opening + WEEK - OPENING % WEEK) % WEEK)?;
        let (mut phase, mut too_late) = (0, WEEK);
        while phase + 1 < too_late {
            let middle = phase.midpoint(too_late);
            if opening + in_rhythm(even + middle) <= latest {
                phase = middle;
            } else {
                too_late = middle;
            }
        }
        Some(Self {
            opening,
            phase,
            end,
        })
    }

    /// The given end.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        (self.end < u64::MAX).then_some(self.end)
    }

    /// When the user in row `index` arrived; never earlier than the users before it.
    #[must_use]
    pub fn arrival(&self, seed: u64, index: u64) -> u64 {
        let since_opening = in_rhythm(even_arrival(seed, index) + self.phase);
        (self.opening + since_opening).min(self.end - LAST_VISIT)
    }

    /// How many days after that of `arrival` a visit may begin.
    #[must_use]
    pub const fn days_left(&self, arrival: u64) -> u64 {
        let after_midnight = 2 * HOUR;
        let over = self.end.saturating_sub(after_midnight) / DAY;
        over.saturating_sub(1 + arrival / DAY)
    }

    /// Whether `moment` is past the end.
    #[must_use]
    pub const fn is_over(&self, moment: u64) -> bool {
        moment > self.end
    }
}

/// The time from the opening to the arrival of the user in row `index`, if all hours were alike.
fn even_arrival(seed: u64, index: u64) -> u64 {
    let spread = Draw::new(seed, Stream::Arrival, index, 0).below(1 << 20);
    let place = (u128::from(index) << 75) + (u128::from(spread) << 55);
    let even = (u128::from(cube_root(place)) * u128::from(GROWTH)) >> 25;
    in_season(even as u64)
}

/// 0 for Monday to 6 for Sunday, of a day counted from 1970.
#[must_use]
pub const fn weekday(day: u64) -> u64 {
    (day + 3) % 7
}

/// Year, month and day of a day counted from 1970, in the Gregorian calendar.
const fn civil(day: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that the leap day is the last of its year.
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, carry) = if month_from_march < 10 {
        (month_from_march + 3, 0)
    } else {
        (month_from_march - 9, 1)
    };
    (era * 400 + year_of_era + carry, month, day_of_month)
}

const fn digit(value: u64, divisor: u64) -> u8 {
    b'0' + (value / divisor % 10) as u8
}

/// Writes milliseconds since 1970 as `2024-03-05T09:31:07.042Z`. By hand: with jiff's printer and
/// formatted numbers, pages of messages that are not cached took half as long again.
pub fn write_timestamp(moment: u64, out: &mut Vec<u8>) {
    let (year, month, day) = civil(moment / DAY);
    let (hour, minute) = (moment / HOUR % 24, moment / MINUTE % 60);
    let (second, milli) = (moment / SECOND % 60, moment % SECOND);
    out.extend_from_slice(&[
        digit(year, 1000),
        digit(year, 100),
        digit(year, 10),
        digit(year, 1),
        b'-',
        digit(month, 10),
        digit(month, 1),
        b'-',
        digit(day, 10),
        digit(day, 1),
        b'T',
        digit(hour, 10),
        digit(hour, 1),
        b':',
        digit(minute, 10),
        digit(minute, 1),
        b':',
        digit(second, 10),
        digit(second, 1),
        b'.',
        digit(milli, 100),
        digit(milli, 10),
        digit(milli, 1),
        b'Z',
    ]);
}

/// Reads a timestamp of RFC 3339, whatever its offset and precision; `None` before 1970.
pub fn read_timestamp(text: &str) -> Option<u64> {
    let moment: Timestamp = text.parse().ok()?;
    u64::try_from(moment.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(moment: u64) -> String {
        let mut out = Vec::new();
        write_timestamp(moment, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn timestamps_have_the_documented_shape() {
        assert_eq!(written(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(written(1_709_631_067_042), "2024-03-05T09:31:07.042Z");
        assert_eq!(written(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(written(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(written(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
        assert_eq!(written(OPENING), "2019-01-07T00:00:00.000Z");
        assert_eq!(weekday(OPENING / DAY), 0);
    }

    #[test]
    fn the_shapes_add_up() {
        assert_eq!(
            DAY_SHAPE
                .iter()
                .map(|(hours, weight)| hours * weight)
                .sum::<u64>(),
            DAY_MASS
        );
        assert_eq!(WEEK_SHAPE.iter().sum::<u64>(), WEEK_MASS);
        assert_eq!(YEAR_SHAPE.iter().sum::<u64>(), YEAR_MASS);
    }

    proptest! {
        #[test]
        fn timestamps_agree_with_a_calendar_library(moment in 0_u64..4_102_444_800_000) {
            let known = jiff::Timestamp::from_millisecond(moment as i64)
                .map(|stamp| format!("{stamp:.3}"));
            prop_assert_eq!(Some(written(moment)), known.ok());
        }

        #[test]
        fn the_rhythm_keeps_the_order(first in 0_u64..1 << 40, step in 0_u64..1 << 34) {
            prop_assert!(in_rhythm(first) <= in_rhythm(first + step));
            prop_assert!(in_season(first) <= in_season(first + step));
        }

        #[test]
        fn users_come_one_after_another(seed: u64, index in 0_u64..1 << 31) {
            let calendar = Calendar::default();
            prop_assert!(calendar.arrival(seed, index) <= calendar.arrival(seed, index + 1));
        }

        #[test]
        fn the_last_user_comes_on_the_day_before_the_end(
            seed: u64, users in 1_u64..1 << 31, end in 1_300_000_000_000_u64..7_000_000_000_000,
        ) {
            let calendar = Calendar::ending(seed, users, end).unwrap();
            let last = calendar.arrival(seed, users - 1);
            let latest = end - LAST_VISIT - DAY;
            prop_assert!(last <= latest && latest < last + SECOND, "{last} {latest}");
            prop_assert!(calendar.arrival(seed, users + 1_000_000) <= end);
            prop_assert_eq!(calendar.opening % WEEK, OPENING % WEEK);
        }
    }
}
