//! Time in the world: milliseconds since 1970, and the rhythm of days, weeks and years.

use super::draw::{Draw, Stream};

/// Milliseconds in a second, a minute, an hour, a day, a week.
pub const SECOND: u64 = 1000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;
pub const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// Monday 2019-01-07T00:00Z, from when on users arrive unless a world ends at a given time.
const OPENING: u64 = 17_903 * DAY;
/// The time from Monday 1969-12-29 to 1970.
const FIRST_WEEK: u64 = 3 * DAY;

/// Milliseconds from the opening to user 1; user i arrives at this times the cube root of i, as if
/// the service grew: 100 users in 40 days, 10 million in five years.
const GROWTH: u64 = 743_040_000;

/// The relative activity of the hours of a day,
const DAY_SHAPE: [u64; 24] = [
    1, 1, 1, 1, 1, 1, 4, 4, 14, 14, 14, 14, 10, 14, 14, 14, 14, 14, 6, 6, 6, 6, 2, 2,
];
/// of Monday to Sunday,
const WEEK_SHAPE: [u64; 7] = [11, 10, 10, 10, 9, 3, 2];
/// and of each four weeks in a year of 52: sales in winter and before Christmas, a quiet summer.
const YEAR_SHAPE: [u64; 13] = [11, 8, 7, 8, 8, 7, 6, 5, 6, 8, 9, 13, 14];
const YEAR: u64 = 52 * WEEK;

/// How long before a given end the last user arrives: a day remains for users that are added later.
const LAST_ARRIVAL: u64 = DAY + LAST_ADDED;
/// How long before a given end users that are added later arrive at the latest,
const LAST_ADDED: u64 = 10 * HOUR;
/// and visits begin at the latest. A visit takes less than seven hours.
const LAST_VISIT: u64 = 7 * HOUR;

/// Maps a uniformly distributed time to one with a shape in each `period`, preserving order.
fn shaped(even: u64, period: u64, shape: &[u64]) -> u64 {
    let parts = shape.len() as u64;
    let (start, within) = (even / period * period, even % period);
    let mut mass = within * shape.iter().sum::<u64>();
    for (part, weight) in (0..).zip(shape) {
        if mass < weight * period {
            return start + part * (period / parts) + mass / (weight * parts);
        }
        mass -= weight * period;
    }
    start + period - 1
}

/// Maps a uniformly distributed time to the rhythm of the week, preserving order.
pub fn in_rhythm(even: u64) -> u64 {
    let in_week = shaped(even + FIRST_WEEK, WEEK, &WEEK_SHAPE) - FIRST_WEEK;
    shaped(in_week, DAY, &DAY_SHAPE)
}

/// The last time that [`in_rhythm`] maps to `moment` or earlier.
fn even(moment: u64) -> u64 {
    let (mut low, mut high) = (moment - WEEK, moment + WEEK);
    while low + 1 < high {
        let middle = low.midpoint(high);
        if in_rhythm(middle) <= moment {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

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

/// The time from the opening to the arrival of the user in row `index`, if all weeks were alike.
fn since_opening(seed: u64, index: u64) -> u64 {
    let spread = Draw::new(seed, Stream::Arrival, index, 0).below(1 << 20);
    let place = (u128::from(index) << 75) + (u128::from(spread) << 55);
    let growth = (u128::from(cube_root(place)) * u128::from(GROWTH)) >> 25;
    shaped(growth as u64, YEAR, &YEAR_SHAPE)
}

/// The period in which the rows of a world happen. Its times are uniformly distributed within a
/// week, except for `end`.
#[derive(Clone, Copy, Debug)]
pub struct Calendar {
    opening: u64,
    last_added: u64,
    last_visit: u64,
    /// No generated row has a later time.
    pub end: Option<u64>,
}

impl Default for Calendar {
    fn default() -> Self {
        Self {
            opening: OPENING,
            last_added: u64::MAX,
            last_visit: u64::MAX,
            end: None,
        }
    }
}

impl Calendar {
    /// A calendar in which the last of `users` users arrives about a day before `end`; `None` if
    /// the first one would arrive before 1970.
    pub fn ending(seed: u64, users: u64, end: u64) -> Option<Self> {
        let last_arrival = even(end - LAST_ARRIVAL);
        Some(Self {
            opening: last_arrival.checked_sub(since_opening(seed, users.saturating_sub(1)))?,
            last_added: even(end - LAST_ADDED),
            last_visit: even(end - LAST_VISIT),
            end: Some(end),
        })
    }

    /// When the user in row `index` arrived, for [`in_rhythm`]; never earlier than the users before
    /// it.
    pub fn arrival(&self, seed: u64, index: u64) -> u64 {
        (self.opening + since_opening(seed, index)).min(self.last_added)
    }

    /// How much time visits have after an arrival.
    pub const fn left(&self, arrival: u64) -> u64 {
        self.last_visit - arrival
    }
}
