//! The faults that a response can have.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::HeaderValue;

use crate::mock::faults::grammar::{
    Call, Cursor, GrammarError, Quoted, Value, decimal, quoted, whole,
};

/// The longest time that a fault can take, a day; use `stall` for longer.
const LONGEST: f64 = 86_400_000.0;
const MOST_BYTES: u64 = 1 << 40;
const MOST_SECONDS: u64 = 1 << 32;

// The defaults of a fault's arguments.
const USUAL_MEDIAN: Milliseconds = Milliseconds(200.0);
const USUAL_SPREAD: Spread = Spread(0.5);
const USUAL_DRIP: u64 = 1024;
const USUAL_PAUSE: Milliseconds = Milliseconds(10.0);

/// A fault of a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Another status. `body` replaces the error that the mock writes.
    Status {
        code: ErrorCode,
        /// Seconds, for the header Retry-After.
        retry_after: Option<u64>,
        body: Option<String>,
    },
    /// The response is late.
    Latency(Latency),
    /// The connection is reset: before any byte of the response, or after its head and this many
    /// bytes of its body.
    Reset { after_bytes: Option<u64> },
    /// The body ends early.
    Truncate { at: u64, length: Length },
    /// The body comes in pieces of `bytes` bytes, each after a pause.
    Drip {
        bytes: NonZeroU64,
        pause: Milliseconds,
    },
    /// Nothing more is sent until the client disconnects: no head at all, or only the head and this
    /// many bytes of the body.
    Stall { after_bytes: Option<u64> },
    /// Status 200 and the content type of JSON, but the body is something else.
    Garbage { text: Option<String> },
    /// The right body with another content type.
    WrongContentType { content_type: ContentType },
    /// The connection is kept open for another request, and closed without a response when that
    /// request arrives.
    StaleKeepalive,
}

/// The Content-Length of a body that ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// The whole length; the connection is closed after the part.
    Declared,
    /// The length of the part, so that only the content is wrong.
    Honest,
}

/// How late a response is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    /// Always this late.
    Fixed(Milliseconds),
    /// Drawn for each request: half of the responses come before the median; a larger spread (the
    /// standard deviation of the logarithm) makes the latest ones later.
    Lognormal {
        median: Milliseconds,
        spread: Spread,
    },
}

/// A time from 0 to a day.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Milliseconds(f64);

/// The standard deviation of a logarithm, from 0 to 10.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Spread(f64);

/// A status that a final response can have, 200 to 599.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(u16);

/// A text that is valid in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentType(HeaderValue);

impl Milliseconds {
    fn read(name: &str, value: &Value<'_>) -> Result<Self, String> {
        let number = decimal(name, value)?;
        if (0.0..=LONGEST).contains(&number) {
            // Drops the sign of a negative zero.
            return Ok(Self(number.abs()));
        }
        Err(format!(
            "{name} must be from 0 to {LONGEST} milliseconds, not {number}"
        ))
    }

    /// The same as a `Duration`.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0 / 1000.0)
    }
}

impl Spread {
    fn read(value: &Value<'_>) -> Result<Self, String> {
        let number = decimal("the spread of lognormal", value)?;
        if (0.0..=10.0).contains(&number) {
            return Ok(Self(number.abs()));
        }
        Err(format!(
            "the spread of lognormal must be from 0 to 10, not {number}"
        ))
    }
}

impl ErrorCode {
    /// The status as a number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The reason phrase for the number, if it has one.
    #[must_use]
    pub fn reason(self) -> Option<&'static str> {
        StatusCode::from_u16(self.0).ok()?.canonical_reason()
    }
}

impl ContentType {
    fn read(text: &str) -> Result<Self, String> {
        let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let value = HeaderValue::from_str(text).ok().filter(|_| plain);
        let refuse = || format!("a content type is printable ASCII, not {}", Quoted(text));
        value.map(Self).ok_or_else(refuse)
    }

    /// The value of the header.
    #[must_use]
    pub const fn header(&self) -> &HeaderValue {
        &self.0
    }
}

impl Latency {
    /// The time for one request, from two random numbers in `[0, 1)`.
    #[must_use]
    pub fn draw(self, first: f64, second: f64) -> Duration {
        match self {
            Self::Fixed(time) => time.duration(),
            Self::Lognormal { median, spread } => {
                // Box-Muller transform: two uniform numbers give a normally distributed one.
                let normal =
                    (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos();
                Milliseconds((median.0 * (spread.0 * normal).exp()).min(LONGEST)).duration()
            }
        }
    }

    fn read(value: Option<Value<'_>>) -> Result<Self, String> {
        let mut call = match value {
            Some(Value::Call(call)) if call.name == "lognormal" => call,
            Some(Value::Bare("lognormal")) => {
                let (median, spread) = (USUAL_MEDIAN, USUAL_SPREAD);
                return Ok(Self::Lognormal { median, spread });
            }
            Some(value) => return Milliseconds::read("latency", &value).map(Self::Fixed),
            None => return Err("latency takes milliseconds, as in latency(250)".into()),
        };
        let (median, spread) = (call.first("median")?, call.first("spread")?);
        call.finish("a median in milliseconds and a spread, as in lognormal(200, 0.5)")?;
        Ok(Self::Lognormal {
            median: median.map_or(Ok(USUAL_MEDIAN), |median| {
                Milliseconds::read("the median of lognormal", &median)
            })?,
            spread: spread.map_or(Ok(USUAL_SPREAD), |spread| Spread::read(&spread))?,
        })
    }
}

impl Fault {
    const NAMES: &'static str = "status, latency, reset, truncate, drip, stall, garbage, \
                                 wrong_content_type, stale_keepalive";

    pub(super) fn read(mut call: Call<'_>) -> Result<Self, String> {
        let bytes = |value: Option<Value<'_>>| {
            value
                .map(|value| whole("after_bytes", &value, 0, MOST_BYTES))
                .transpose()
        };
        let (fault, takes) = match call.name {
            "status" => (
                Self::read_status(&mut call)?,
                "a code, and retry_after and body if wanted, as in status(429, retry_after=1)",
            ),
            "latency" => (
                Self::Latency(Latency::read(call.first("ms")?)?),
                "milliseconds or lognormal(MEDIAN, SPREAD)",
            ),
            "reset" => {
                let after_bytes = bytes(call.first("after_bytes")?)?;
                (Self::Reset { after_bytes }, "after_bytes=N or nothing")
            }
            "truncate" => (
                Self::read_truncate(&mut call)?,
                "at=N, and length=declared or length=honest",
            ),
            "drip" => (Self::read_drip(&mut call)?, "bytes=N and ms=N"),
            "stall" => {
                let after_bytes = bytes(call.first("after_bytes")?)?;
                (Self::Stall { after_bytes }, "after_bytes=N or nothing")
            }
            "garbage" => {
                let text = call.first("text")?;
                let text = text.map(|text| quoted("garbage", text)).transpose()?;
                (Self::Garbage { text }, "a text in quotes or nothing")
            }
            "wrong_content_type" => {
                let example = "a content type in quotes, as in wrong_content_type(\"text/html\")";
                let content_type = match call.first("content_type")? {
                    Some(value) => ContentType::read(&quoted("wrong_content_type", value)?)?,
                    None => ContentType(HeaderValue::from_static("text/html")),
                };
                (Self::WrongContentType { content_type }, example)
            }
            "stale_keepalive" => (Self::StaleKeepalive, ""),
            "" => return Err(format!("a fault is missing; there are {}", Self::NAMES)),
            other => {
                return Err(format!(
                    "unknown fault {other:?}; there are {}",
                    Self::NAMES
                ));
            }
        };
        call.finish(takes)?;
        Ok(fault)
    }

    fn read_status(call: &mut Call<'_>) -> Result<Self, String> {
        let code = call
            .first("code")?
            .ok_or("status takes a code, as in status(503)")?;
        let code = whole("the code of status", &code, 200, 599)?;
        let retry_after = call.named("retry_after")?;
        let body = call.named("body")?;
        Ok(Self::Status {
            code: ErrorCode(u16::try_from(code).unwrap_or(599)),
            retry_after: retry_after
                .map(|value| whole("retry_after", &value, 0, MOST_SECONDS))
                .transpose()?,
            body: body.map(|body| quoted("body", body)).transpose()?,
        })
    }

    fn read_truncate(call: &mut Call<'_>) -> Result<Self, String> {
        let at = call
            .first("at")?
            .ok_or("truncate takes at=N, the bytes of the body that are sent")?;
        let length = match call.named("length")? {
            None | Some(Value::Bare("declared")) => Length::Declared,
            Some(Value::Bare("honest")) => Length::Honest,
            Some(other) => return Err(format!("length must be declared or honest, not {other}")),
        };
        let at = whole("at", &at, 0, MOST_BYTES)?;
        Ok(Self::Truncate { at, length })
    }

    fn read_drip(call: &mut Call<'_>) -> Result<Self, String> {
        let (bytes, pause) = (call.first("bytes")?, call.first("ms")?);
        let bytes = bytes.map_or(Ok(USUAL_DRIP), |bytes| {
            whole("bytes", &bytes, 1, MOST_BYTES)
        });
        Ok(Self::Drip {
            bytes: NonZeroU64::new(bytes?).unwrap_or(NonZeroU64::MIN),
            pause: pause.map_or(Ok(USUAL_PAUSE), |pause| Milliseconds::read("ms", &pause))?,
        })
    }
}

impl fmt::Display for Milliseconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => time.fmt(formatter),
            Self::Lognormal { median, spread } => {
                write!(formatter, "lognormal({median}, {})", spread.0)
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after =
            |formatter: &mut fmt::Formatter<'_>, name, after_bytes: &Option<u64>| match after_bytes
            {
                Some(bytes) => write!(formatter, "{name}(after_bytes={bytes})"),
                None => write!(formatter, "{name}()"),
            };
        match self {
            Self::Status {
                code,
                retry_after,
                body,
            } => {
                write!(formatter, "status({}", code.0)?;
                if let Some(seconds) = retry_after {
                    write!(formatter, ", retry_after={seconds}")?;
                }
                if let Some(body) = body {
                    write!(formatter, ", body={}", Quoted(body))?;
                }
                formatter.write_str(")")
            }
            Self::Latency(latency) => write!(formatter, "latency({latency})"),
            Self::Reset { after_bytes } => after(formatter, "reset", after_bytes),
            Self::Truncate { at, length } => {
                let length = match length {
                    Length::Declared => "declared",
                    Length::Honest => "honest",
                };
                write!(formatter, "truncate(at={at}, length={length})")
            }
            Self::Drip { bytes, pause } => write!(formatter, "drip(bytes={bytes}, ms={pause})"),
            Self::Stall { after_bytes } => after(formatter, "stall", after_bytes),
            Self::Garbage { text: None } => formatter.write_str("garbage()"),
            Self::Garbage { text: Some(text) } => write!(formatter, "garbage({})", Quoted(text)),
            Self::WrongContentType { content_type } => {
                let text = content_type.0.to_str().unwrap_or_default();
                write!(formatter, "wrong_content_type({})", Quoted(text))
            }
            Self::StaleKeepalive => formatter.write_str("stale_keepalive()"),
        }
    }
}

impl FromStr for Fault {
    type Err = GrammarError;

    /// Parses a fault alone, such as `status(429, retry_after=1)`.
    fn from_str(text: &str) -> Result<Self, GrammarError> {
        let mut cursor = Cursor::new(text.trim());
        let fault = cursor.call().and_then(Self::read).and_then(|fault| {
            if cursor.at_end() {
                return Ok(fault);
            }
            Err(format!(
                "expected the end after the fault, not {}",
                cursor.shown()
            ))
        });
        fault.map_err(|problem| GrammarError {
            text: text.trim().into(),
            problem,
        })
    }
}
