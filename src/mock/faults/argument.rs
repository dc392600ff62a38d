//! The arguments of faults: what each accepts, and how it is written.

use std::num::NonZeroU64;
use std::time::Duration;

use hyper::header::HeaderValue;

use super::grammar::{Quoted, Value, decimal, quoted, whole};
use crate::switch::switch_enum;

/// A value in the parentheses of a fault.
pub(super) trait Argument: Sized {
    /// Parses a value; `name` is for errors.
    fn read(name: &str, value: Value<'_>) -> Result<Self, String>;

    /// What an omitted argument means, unless the fault needs one.
    fn omitted() -> Option<Self> {
        None
    }

    /// The value as written, unless it is omitted.
    fn written(&self) -> Option<String>;

    /// Whether it means another value for each request.
    fn is_random(&self) -> bool {
        false
    }
}

/// A whole number within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<const LEAST: u64, const MOST: u64>(u64);

pub type StatusCode = Whole<200, 599>;
pub type Bytes = Whole<0, { 1 << 40 }>;
pub type SomeBytes = Whole<1, { 1 << 40 }>;
pub type Seconds = Whole<0, { 1 << 32 }>;

/// A time from 0 to a day; use `stall` for longer.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Milliseconds(pub(super) f64);

/// Text of any kind, in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

/// A text that is valid in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentType(HeaderValue);

/// How late a response is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    /// Always this late.
    Fixed(Milliseconds),
    /// Drawn for each request: half of the responses come before the median; a larger spread (the
    /// standard deviation of the logarithm, 0 to 10) makes the latest ones later.
    Lognormal { median: Milliseconds, spread: f64 },
}

switch_enum! {
    /// The Content-Length of a body that ends early.
    Length {
        /// The whole length; the connection is closed after the part.
        Declared = "declared",
        /// The length of the part, so that only the content is wrong.
        Honest = "honest",
    }
}

/// The longest time that a fault can take, a day.
const LONGEST: f64 = 86_400_000.0;

impl<const LEAST: u64, const MOST: u64> Whole<LEAST, MOST> {
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The nearest number that is valid.
    pub const fn near(number: u64) -> Self {
        Self(if number < LEAST {
            LEAST
        } else if number > MOST {
            MOST
        } else {
            number
        })
    }

    /// The number, or 1 instead of 0.
    pub fn non_zero(self) -> NonZeroU64 {
        NonZeroU64::new(self.0).unwrap_or(NonZeroU64::MIN)
    }
}

impl Milliseconds {
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0 / 1000.0)
    }
}

impl ContentType {
    pub const HTML: Self = Self(HeaderValue::from_static("text/html"));

    /// The value of the header.
    #[must_use]
    pub const fn header(&self) -> &HeaderValue {
        &self.0
    }
}

impl Latency {
    const MEDIAN: Milliseconds = Milliseconds(200.0);
    const SPREAD: f64 = 0.5;

    /// The time for one request, from two random numbers in `[0, 1)`.
    #[must_use]
    pub fn draw(self, (first, second): (f64, f64)) -> Duration {
        match self {
            Self::Fixed(time) => time.duration(),
            Self::Lognormal { median, spread } => {
                // Box-Muller transform: two uniform numbers give a normally distributed one.
                let normal =
                    (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos();
                Milliseconds((median.0 * (spread * normal).exp()).min(LONGEST)).duration()
            }
        }
    }
}

impl<Some: Argument> Argument for Option<Some> {
    fn read(name: &str, value: Value<'_>) -> Result<Self, String> {
        Some::read(name, value).map(Option::Some)
    }

    fn omitted() -> Option<Self> {
        Option::Some(None)
    }

    fn written(&self) -> Option<String> {
        self.as_ref()?.written()
    }
}

impl<const LEAST: u64, const MOST: u64> Argument for Whole<LEAST, MOST> {
    fn read(name: &str, value: Value<'_>) -> Result<Self, String> {
        whole(name, &value, LEAST, MOST).map(Self)
    }

    fn written(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}

impl Argument for Milliseconds {
    fn read(name: &str, value: Value<'_>) -> Result<Self, String> {
        within(name, &value, LONGEST, " milliseconds").map(Self)
    }

    fn written(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}

impl Argument for Text {
    fn read(name: &str, value: Value<'_>) -> Result<Self, String> {
        quoted(name, value).map(Self)
    }

    fn written(&self) -> Option<String> {
        Some(Quoted(&self.0).to_string())
    }
}

impl Argument for ContentType {
    fn read(name: &str, value: Value<'_>) -> Result<Self, String> {
        let text = quoted(name, value)?;
        let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let header = HeaderValue::from_str(&text).ok().filter(|_| plain);
        let refuse = || format!("{name} must be printable ASCII, not {}", Quoted(&text));
        header.map(Self).ok_or_else(refuse)
    }

    fn written(&self) -> Option<String> {
        let text = self.0.to_str().unwrap_or_default();
        Some(Quoted(text).to_string())
    }
}

impl Argument for Latency {
    fn read(name: &str, value: Value<'_>) -> Result<Self, String> {
        let mut call = match value {
            Value::Call(call) if call.name == "lognormal" => call,
            Value::Bare("lognormal") => {
                let (median, spread) = (Self::MEDIAN, Self::SPREAD);
                return Ok(Self::Lognormal { median, spread });
            }
            value => return Milliseconds::read(name, value).map(Self::Fixed),
        };
        let (median, spread) = (call.first("median")?, call.first("spread")?);
        call.finish("a median in milliseconds and a spread, as in lognormal(200, 0.5)")?;
        Ok(Self::Lognormal {
            median: median.map_or(Ok(Self::MEDIAN), |median| {
                Milliseconds::read("the median of lognormal", median)
            })?,
            spread: spread.map_or(Ok(Self::SPREAD), |spread| {
                within("the spread of lognormal", &spread, 10.0, "")
            })?,
        })
    }

    fn written(&self) -> Option<String> {
        match self {
            Self::Fixed(time) => time.written(),
            Self::Lognormal { median, spread } => {
                Some(format!("lognormal({}, {spread})", median.0))
            }
        }
    }

    fn is_random(&self) -> bool {
        matches!(self, Self::Lognormal { .. })
    }
}

impl Argument for Length {
    fn read(name: &str, value: Value<'_>) -> Result<Self, String> {
        let length = match value {
            Value::Bare(word) => word.parse().ok(),
            Value::Quoted(_) | Value::Call(_) => None,
        };
        length.ok_or_else(|| format!("{name} must be {}, not {value}", Self::WORDS.join(" or ")))
    }

    fn written(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// Parses a number from 0 to `most`.
fn within(name: &str, value: &Value<'_>, most: f64, unit: &str) -> Result<f64, String> {
    let number = decimal(name, value)?;
    if (0.0..=most).contains(&number) {
        // Drops the sign of a negative zero.
        return Ok(number.abs());
    }
    Err(format!(
        "{name} must be from 0 to {most}{unit}, not {number}"
    ))
}
