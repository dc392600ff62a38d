//! How a response is sent: the combined effect of the faults that fire on a request.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use super::argument::ContentType;

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
        code: u16,
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

/// What one fault does to a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Delay(Duration),
    Change(Change),
    End(Ending),
    Drip(Drip),
}

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

    /// Whether an effect can still be added. Delays add up, and a drip combines with everything; of
    /// the others, a response has at most one.
    pub(super) fn has_room_for(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Delay(_) => true,
            Effect::Drip(_) => self.drip.is_none(),
            Effect::Change(_) | Effect::End(_) => {
                self.change.is_none() && self.ending == Ending::Whole
            }
        }
    }

    /// Adds the effect of a rule, which is given as written.
    pub(super) fn add(&mut self, effect: Effect, rule: &Arc<str>) {
        match effect {
            Effect::Delay(delay) => self.delay = self.delay.saturating_add(delay),
            Effect::Drip(drip) => self.drip = Some(drip),
            Effect::Change(change) => self.change = Some(change),
            Effect::End(ending) => self.ending = ending,
        }
        self.rules.push(Arc::clone(rule));
    }
}
