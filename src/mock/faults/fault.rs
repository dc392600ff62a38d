//! The faults that a response can have, each defined once: its text, its arguments and its effect.

use std::fmt;
use std::str::FromStr;

use super::argument::{
    Argument, Bytes, ContentType, Latency, Length, Milliseconds, Seconds, SomeBytes, StatusCode,
    Text,
};
use super::delivery::{Change, Drip, Effect, Ending};
use super::grammar::{Call, Cursor, GrammarError};

/// Sent instead of JSON if no other text is given.
const GARBAGE: &str = "{\"limit\": 99, \"offset\": <html><body>Bad Gateway</body></html>";

/// How an argument is written, and what else is accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Written without its name; accepted with it.
    Bare,
    /// Written with its name; accepted without it.
    Either,
    /// Always with its name.
    Named,
}

/// Defines the faults. For each: the variant and the name in rules; the arguments with their types,
/// styles and, after `or`, defaults; what an error says that it takes; its effect on a response.
macro_rules! faults {
    (|$chances:ident| $(
        $(#[$about:meta])*
        $fault:ident = $name:literal(
            $($argument:ident: $kind:ty as $style:ident $(or $usual:expr)?),*
        ) takes $takes:literal => $effect:expr;
    )+) => {
        /// A fault of a response.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Fault {
            $($(#[$about])* $fault { $($argument: $kind),* },)+
        }

        impl Fault {
            const NAMES: &'static [&'static str] = &[$($name),+];

            pub(super) fn read(mut call: Call<'_>) -> Result<Self, String> {
                let fault = match call.name {
                    $($name => {
                        $(
                            let usual: Option<$kind> = None $(.or(Some($usual)))?;
                            let $argument =
                                argument(&mut call, stringify!($argument), Style::$style, usual)?;
                        )*
                        call.finish($takes)?;
                        Self::$fault {
                            $($argument: $argument.ok_or(concat!($name, " takes ", $takes))?),*
                        }
                    })+
                    name => {
                        let names = Self::NAMES.join(", ");
                        return Err(if name.is_empty() {
                            format!("a fault is missing; there are {names}")
                        } else {
                            format!("unknown fault {name:?}; there are {names}")
                        });
                    }
                };
                Ok(fault)
            }

            /// What it does to a response; a random time is drawn from two numbers in `[0, 1)`.
            pub(super) fn effect(&self, $chances: (f64, f64)) -> Effect {
                match self {
                    $(Self::$fault { $($argument),* } => $effect,)+
                }
            }

            /// Whether the effect differs between requests.
            pub(super) fn is_random(&self) -> bool {
                match self {
                    $(Self::$fault { $($argument),* } => false $(|| $argument.is_random())*,)+
                }
            }
        }

        impl fmt::Display for Fault {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (name, arguments): (_, Vec<Option<String>>) = match self {
                    $(Self::$fault { $($argument),* } => ($name, vec![
                        $(written(stringify!($argument), Style::$style, $argument)),*
                    ]),)+
                };
                let arguments: Vec<String> = arguments.into_iter().flatten().collect();
                write!(formatter, "{name}({})", arguments.join(", "))
            }
        }
    };
}

faults! { |chances|
    /// Another status. `body` replaces the error that the mock writes.
    Status = "status"(
        code: StatusCode as Bare,
        retry_after: Option<Seconds> as Named,
        body: Option<Text> as Named
    ) takes "a code, and retry_after and body if wanted, as in status(429, retry_after=1)" =>
        Effect::Change(Change::Status {
            code: code.get() as u16,
            retry_after: retry_after.map(Seconds::get),
            body: body.clone().map(|Text(body)| body),
        });
    /// The response is late.
    Latency = "latency"(ms: Latency as Bare) takes "milliseconds or lognormal(MEDIAN, SPREAD)" =>
        Effect::Delay(ms.draw(chances));
    /// The connection is reset: before any byte of the response, or after its head and this many
    /// bytes of its body.
    Reset = "reset"(after_bytes: Option<Bytes> as Either) takes "after_bytes=N or nothing" =>
        Effect::End(Ending::Reset { after_bytes: after_bytes.map(Bytes::get) });
    /// The body ends early.
    Truncate = "truncate"(at: Bytes as Either, length: Length as Named or Length::Declared)
        takes "at=N, and length=declared or length=honest" =>
        Effect::End(match length {
            Length::Declared => Ending::Close { after_bytes: at.get() },
            Length::Honest => Ending::Short { bytes: at.get() },
        });
    /// The body comes in pieces of `bytes` bytes, each after a pause.
    Drip = "drip"(
        bytes: SomeBytes as Either or SomeBytes::near(1024),
        ms: Milliseconds as Either or Milliseconds(10.0)
    ) takes "bytes=N and ms=N" =>
        Effect::Drip(Drip { bytes: bytes.non_zero(), pause: ms.duration() });
    /// Nothing more is sent until the client disconnects: no head at all, or only the head and this
    /// many bytes of the body.
    Stall = "stall"(after_bytes: Option<Bytes> as Either) takes "after_bytes=N or nothing" =>
        Effect::End(Ending::Stall { after_bytes: after_bytes.map(Bytes::get) });
    /// Status 200 and the content type of JSON, but the body is something else.
    Garbage = "garbage"(text: Option<Text> as Bare) takes "a text in quotes or nothing" =>
        Effect::Change(Change::Garbage(match text {
            Some(Text(text)) => text.clone(),
            None => GARBAGE.into(),
        }));
    /// The right body with another content type.
    WrongContentType = "wrong_content_type"(
        content_type: ContentType as Bare or ContentType::HTML
    ) takes "a content type in quotes, as in wrong_content_type(\"text/html\")" =>
        Effect::Change(Change::ContentType(content_type.clone()));
    /// The connection is kept open for another request, and closed without a response when that
    /// request arrives.
    StaleKeepalive = "stale_keepalive"() takes "" => Effect::End(Ending::Stale);
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

fn argument<Kind: Argument>(
    call: &mut Call<'_>,
    name: &str,
    style: Style,
    usual: Option<Kind>,
) -> Result<Option<Kind>, String> {
    let value = match style {
        Style::Named => call.named(name)?,
        Style::Bare | Style::Either => call.first(name)?,
    };
    let Some(value) = value else {
        return Ok(usual.or_else(Kind::omitted));
    };
    if style == Style::Bare {
        Kind::read(&format!("the {name} of {}", call.name), value).map(Some)
    } else {
        Kind::read(name, value).map(Some)
    }
}

fn written(name: &str, style: Style, argument: &impl Argument) -> Option<String> {
    let value = argument.written()?;
    Some(if style == Style::Bare {
        value
    } else {
        format!("{name}={value}")
    })
}
