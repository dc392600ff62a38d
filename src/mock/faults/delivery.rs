//! How an answer is sent: what the faults that fire on one request make of it together.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::mock::faults::fault::{ContentType, ErrorCode, Fault, Length};

/// How one answer is sent. The default is at once, as it is and whole, and costs nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delivery {
    /// How long the answer is held back.
    pub delay: Duration,
    /// What is sent instead of the answer, or of a part of it.
    pub change: Option<Change>,
    pub ending: Ending,
    pub drip: Option<Drip>,
    /// The rules that fired, as they are written.
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
    /// Status 200 and this instead of JSON.
    Garbage(String),
    ContentType(ContentType),
}

/// How an answer ends. Bytes are those of the body; none means that not even a head is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    #[default]
    Whole,
    /// The connection is reset.
    Reset { after_bytes: Option<u64> },
    /// The connection is closed in order, though Content-Length said more.
    Close { after_bytes: u64 },
    /// The body is so long, and Content-Length says so.
    Short { bytes: u64 },
    /// Nothing more comes until the client goes.
    Stall { after_bytes: Option<u64> },
    /// The answer is whole, and the next request on the connection closes it.
    Stale,
}

/// The body in pieces, each after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drip {
    pub bytes: NonZeroU64,
    pub pause: Duration,
}

/// Sent for JSON where no other text is given.
const GARBAGE: &str = "{\"limit\": 99, \"offset\": <html><body>Bad Gateway</body></html>";

impl Delivery {
    /// Whether the answer is sent as if there were no faults.
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

    /// Whether it takes time that the client may not have.
    #[must_use]
    pub const fn is_late(&self) -> bool {
        !self.delay.is_zero() || self.drip.is_some()
    }

    /// Whether a fault of this kind still has a place. Delays add up, a drip goes with everything;
    /// of the rest an answer takes one.
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
