//! How a response is sent: the combined effect of the faults that fire on a request.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::mock::faults::fault::{ContentType, ErrorCode, Fault, Length};

/// How a response is sent. By default at once, unchanged and whole, which costs nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delivery {
    /// How long the response is delayed.
    pub delay: Duration,
    /// What is sent instead of the response, or of a part of it.
    pub change: Option<Change>,
    pub ending: Ending,
    pub drip: Option<Drip>,
    /// The rules that fired, as written.
    pub rules: Vec<Arc<str>>,
}

/// What is sent instead.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Another status; without a body, the mock writes its own.
    Status {
        code: ErrorCode,
        retry_after: Option<u64>,
        body: Option<String>,
    },
    /// Status 200 and this text instead of JSON.
    Garbage(String),
    ContentType(ContentType),
}

/// How a response ends. Bytes count the body; `None` means that not even the head is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    #[default]
    Whole,
    /// The connection is reset.
    Reset { after_bytes: Option<u64> },
    /// The connection is closed normally, although Content-Length promised more.
    Close { after_bytes: u64 },
    /// The body is cut to this length, which Content-Length states.
    Short { bytes: u64 },
    /// Nothing more is sent until the client disconnects.
    Stall { after_bytes: Option<u64> },
    /// The response is whole, and the next request on the connection closes it.
    Stale,
}

/// The body in pieces, each after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drip {
    pub bytes: NonZeroU64,
    pub pause: Duration,
}

/// Sent instead of JSON if no other text is given.
const GARBAGE: &str = "{\"limit\": 99, \"offset\": <html><body>Bad Gateway</body></html>";

impl Delivery {
    /// Whether the response is sent as if there were no faults.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.delay.is_zero()
            && self.change.is_none()
            && self.ending == Ending::Whole
            && self.drip.is_none()
    }

    /// Whether all of a body of `length` bytes arrives, sooner or later.
    #[must_use]
    pub const fn is_whole(&self, length: u64) -> bool {
        match self.ending {
            Ending::Whole | Ending::Stale => true,
            Ending::Close { after_bytes: bytes }
            | Ending::Short { bytes }
            | Ending::Reset {
                after_bytes: Some(bytes),
            }
            | Ending::Stall {
                after_bytes: Some(bytes),
            } => bytes >= length,
            Ending::Reset { after_bytes: None } | Ending::Stall { after_bytes: None } => false,
        }
    }

    /// Whether it takes so long that the client may give up.
    #[must_use]
    pub const fn is_late(&self) -> bool {
        !self.delay.is_zero() || self.drip.is_some()
    }

    /// Whether a fault of this kind can still be added. Delays add up, and a drip combines with
    /// everything; of the others, a response has at most one.
    pub(super) fn has_room_for(&self, fault: &Fault) -> bool {
        match fault {
            Fault::Latency(_) => true,
            Fault::Drip { .. } => self.drip.is_none(),
            _ => self.change.is_none() && self.ending == Ending::Whole,
        }
    }

    /// Adds one fault; `chances` are the two numbers in `[0, 1)` that a latency is drawn from.
    pub(super) fn add(&mut self, fault: &Fault, chances: (f64, f64)) {
        match fault {
            Fault::Latency(latency) => {
                self.delay = self
                    .delay
                    .saturating_add(latency.draw(chances.0, chances.1));
            }
            Fault::Drip { bytes, pause } => {
                self.drip = Some(Drip {
                    bytes: *bytes,
                    pause: pause.duration(),
                });
            }
            Fault::Status {
                code,
                retry_after,
                body,
            } => {
                self.change = Some(Change::Status {
                    code: *code,
                    retry_after: *retry_after,
                    body: body.clone(),
                });
            }
            Fault::Garbage { text } => {
                let text = text.clone().unwrap_or_else(|| GARBAGE.into());
                self.change = Some(Change::Garbage(text));
            }
            Fault::WrongContentType { content_type } => {
                self.change = Some(Change::ContentType(content_type.clone()));
            }
            Fault::Reset { after_bytes } => {
                self.ending = Ending::Reset {
                    after_bytes: *after_bytes,
                };
            }
            Fault::Truncate { at, length } => {
                self.ending = match length {
                    Length::Declared => Ending::Close { after_bytes: *at },
                    Length::Honest => Ending::Short { bytes: *at },
                };
            }
            Fault::Stall { after_bytes } => {
                self.ending = Ending::Stall {
                    after_bytes: *after_bytes,
                };
            }
            Fault::StaleKeepalive => self.ending = Ending::Stale,
        }
    }
}
