//! A response, as the service gives it to the socket.

use hyper::header::HeaderValue;

use crate::chunks::Chunks;
use crate::faults::delivery::{Change, Delivery};
use backread_clock::Clock;

/// The content type of every response unless a fault changes it.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// A response; the socket layer only adds framing.
pub struct Answer {
    pub status: u16,
    pub content_type: HeaderValue,
    /// Headers in addition to Content-Type and Content-Length.
    pub headers: Vec<(&'static str, String)>,
    pub body: Chunks,
    /// `None` for a response that is sent at once and whole.
    pub sending: Option<Box<Sending>>,
}

/// How to send a response that is not sent at once and whole.
pub struct Sending {
    pub delivery: Delivery,
    /// The clock for delays and drips.
    pub clock: Clock,
    /// Called once the whole response is sent; never if the client disconnects before that.
    pub sent: Option<OnSent>,
}

pub type OnSent = Box<dyn FnOnce() + Send>;

impl Answer {
    /// JSON that is sent at once and whole.
    pub fn json(status: u16, body: impl Into<Chunks>) -> Self {
        Self {
            status,
            content_type: JSON,
            headers: Vec::new(),
            body: body.into(),
            sending: None,
        }
    }

    /// Applies the delivery's changes to the response, and has it sent in this delivery.
    pub fn delivered(mut self, delivery: Delivery, clock: &Clock) -> Self {
        match &delivery.change {
            Some(Change::Answer {
                status,
                retry_after,
                body,
            }) => {
                self = Self::json(*status, body.clone());
                let wait = retry_after.map(|seconds| ("retry-after", seconds.to_string()));
                self.headers.extend(wait);
            }
            Some(Change::ContentType(content_type)) => self.content_type = content_type.clone(),
            None => {}
        }
        if !delivery.is_plain() {
            self.sending = Some(Box::new(Sending {
                delivery,
                clock: clock.clone(),
                sent: None,
            }));
        }
        self
    }
}
