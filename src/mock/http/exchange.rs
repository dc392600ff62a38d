//! The types between the socket and the service: a request, and its response.

use std::fmt;
use std::sync::Arc;

use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, Uri};

use crate::chunks::Chunks;
use crate::faults::delivery::{Change, Delivery};
use crate::refusal::Refusal;
use backread_clock::Clock;

/// The content type of every response unless a fault changes it.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// The parts of a request that the mock uses.
#[derive(Clone, Copy, Debug)]
pub struct Call<'request> {
    pub method: &'request Method,
    pub uri: &'request Uri,
    pub headers: &'request HeaderMap,
}

/// A response; the socket layer only adds framing.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub struct Sending {
    pub delivery: Delivery,
    /// The clock for delays and drips.
    pub clock: Clock,
    /// Notified once the whole response is sent; never if the client disconnects before that.
    pub sent: Option<Arc<dyn Sent>>,
}

/// Notified once the whole response is sent.
pub trait Sent: fmt::Debug + Send + Sync {
    fn sent(&self);
}

impl Answer {
    /// JSON that is sent at once and whole.
    #[must_use]
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
    #[must_use]
    pub fn delivered(mut self, delivery: Delivery, clock: &Clock) -> Self {
        match &delivery.change {
            Some(Change::Status {
                code,
                retry_after,
                body,
            }) => {
                self.status = *code;
                self.content_type = JSON;
                self.headers.clear();
                if let Some(seconds) = retry_after {
                    self.headers.push(("retry-after", seconds.to_string()));
                }
                self.body = match body {
                    Some(body) => body.clone().into(),
                    None => Refusal::by_fault(*code).body().into(),
                };
            }
            Some(Change::Garbage(text)) => {
                self.status = 200;
                self.content_type = JSON;
                self.headers.clear();
                self.body = text.clone().into();
            }
            Some(Change::ContentType(content_type)) => {
                self.content_type = content_type.header().clone();
            }
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
