//! The faults that a response can have: one table of their fields, and their effects.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use hyper::header::HeaderValue;

use super::delivery::{Change, Drip, Effect, Ending, How, LONGEST_DELAY, Latency};
use super::field::Kind::{self, Ascii, Number, NumberOr, Text, Whole, Words};
use super::field::Omitted::{Nothing, Same, Wrong};
use super::field::{Call, Form, Value, bare, form, named};
use super::grammar::{GrammarError, Parser};
use crate::refusal::Refusal;

const BYTES: Kind = Whole(0, 1 << 40);

/// Each fault with its fields, their bounds, and what is meant without them.
static FAULTS: &[Form] = &[
    form(
        "status",
        &[
            bare("code", Whole(200, 599), Wrong),
            named("retry_after", Whole(0, 1 << 32), Nothing),
            named("body", Text, Nothing),
        ],
    ),
    form(
        "latency",
        &[bare("ms", NumberOr(LONGEST_DELAY, &LOGNORMAL), Wrong)],
    ),
    form("reset", &[named("after_bytes", BYTES, Nothing)]),
    form(
        "truncate",
        &[
            named("at", BYTES, Wrong),
            named("length", Words(&["declared", "honest"]), Same("declared")),
        ],
    ),
    form(
        "drip",
        &[
            named("bytes", Whole(1, 1 << 40), Same("1024")),
            named("ms", Number(LONGEST_DELAY), Same("10")),
        ],
    ),
    form("stall", &[named("after_bytes", BYTES, Nothing)]),
    form("garbage", &[bare("text", Text, Nothing)]),
    form(
        "wrong_content_type",
        &[bare("content_type", Ascii, Same("text/html"))],
    ),
    form("stale_keepalive", &[]),
];

static LOGNORMAL: Form = form(
    "lognormal",
    &[
        bare("median", Number(LONGEST_DELAY), Same("200")),
        bare("spread", Number(10.0), Same("0.5")),
    ],
);

/// Sent instead of JSON if no other text is given.
const GARBAGE: &str = "{\"limit\": 99, \"offset\": <html><body>Bad Gateway</body></html>";

/// A fault of a response. Parses from a text such as `status(429, retry_after=1)`, and displays as
/// the shortest text with the same meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    text: String,
    pub(super) effect: Effect,
}

impl Fault {
    pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Self, String> {
        let call = parser.call(FAULTS)?;
        match effect(&call) {
            Some(effect) => Ok(Self {
                text: call.text,
                effect,
            }),
            None => Err(format!("{} cannot be parsed", call.text)),
        }
    }
}

/// What a fault does to a response.
fn effect(Call { name, values, .. }: &Call) -> Option<Effect> {
    let end = |how, after_bytes| Some(Effect::End(Ending { how, after_bytes }));
    let answer = |status, retry_after, body| {
        Some(Effect::Change(Change::Answer {
            status,
            retry_after,
            body,
        }))
    };
    match (*name, values.as_slice()) {
        ("status", [Some(Value::Whole(code)), retry_after, body]) => {
            let code = u16::try_from(*code).ok()?;
            let body = text(body).unwrap_or_else(|| Refusal::by_fault(code).body());
            answer(code, whole(retry_after), body)
        }
        ("latency", [Some(Value::Number(ms))]) => {
            Some(Effect::Delay(Latency::Fixed(milliseconds(*ms))))
        }
        ("latency", [Some(Value::Call(lognormal))]) => match *lognormal.values.as_slice() {
            [Some(Value::Number(median)), Some(Value::Number(spread))] => {
                Some(Effect::Delay(Latency::Lognormal { median, spread }))
            }
            _ => None,
        },
        ("reset", [after_bytes]) => end(How::Reset, whole(after_bytes)),
        ("truncate", [at, Some(Value::Word("declared"))]) => end(How::Close, whole(at)),
        ("truncate", [at, _]) => end(How::Short, whole(at)),
        ("drip", [Some(Value::Whole(bytes)), Some(Value::Number(ms))]) => {
            Some(Effect::Drip(Drip {
                bytes: NonZeroUsize::new(usize::try_from(*bytes).ok()?)?,
                pause: milliseconds(*ms),
            }))
        }
        ("stall", [after_bytes]) => end(How::Stall, whole(after_bytes)),
        ("garbage", [garbage]) => answer(200, None, text(garbage).unwrap_or(GARBAGE.into())),
        ("wrong_content_type", [content_type]) => {
            let value = HeaderValue::from_str(&text(content_type)?).ok()?;
            Some(Effect::Change(Change::ContentType(value)))
        }
        ("stale_keepalive", []) => end(How::Stale, Some(u64::MAX)),
        _ => None,
    }
}

fn whole(value: &Option<Value>) -> Option<u64> {
    match value {
        Some(Value::Whole(number)) => Some(*number),
        _ => None,
    }
}

fn text(value: &Option<Value>) -> Option<String> {
    match value {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

fn milliseconds(number: f64) -> Duration {
    Duration::from_secs_f64(number / 1000.0)
}

impl FromStr for Fault {
    type Err = GrammarError;

    fn from_str(text: &str) -> Result<Self, GrammarError> {
        let mut parser = Parser { rest: text.trim() };
        let fault = Self::parse(&mut parser).and_then(|fault| match parser.rest {
            "" => Ok(fault),
            _ => parser.expected("expected the end after the fault"),
        });
        fault.map_err(|problem| GrammarError {
            text: text.trim().into(),
            problem,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}
