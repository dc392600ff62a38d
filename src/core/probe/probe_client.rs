//! Sends the probe's requests, within their limit, and reads pages without assuming their shape.

use std::time::Duration;

use serde_json::Value;

use crate::api::{Limit, List, Request};
use crate::budget::Budget;
use crate::client::{CallOptions, Client};
use crate::error::{Error, ErrorKind};
use crate::wire::Answer;

/// Something measured, or why not, in words that contain nothing the service sent.
pub type Finding<T> = Result<T, String>;

pub fn unmeasured<T>(reason: &str) -> Finding<T> {
    Err(reason.to_owned())
}

#[derive(Debug)]
pub struct ProbeClient {
    client: Client,
    budget: Budget,
    most: u64,
    /// The limit of pages.
    pub limit: Limit,
    /// The failure that ended the probe: nothing more is sent.
    pub ended_by: Option<Error>,
}

impl ProbeClient {
    /// Sends at most `most` requests, including retries. The first is an ordinary read: if it fails,
    /// so would all others, and its error says why.
    pub async fn start(client: &Client, most: u64) -> Result<Self, Error> {
        let started = Self {
            client: client.with(CallOptions::count_anew),
            budget: client.budget(),
            most,
            limit: Limit::LARGEST,
            ended_by: None,
        };
        let client = started.for_next_request();
        let first = client.page(List::Users, 0, Limit::SMALLEST, &started.budget);
        Box::pin(first).await?;
        Ok(started)
    }

    pub fn sent(&self) -> u64 {
        self.client.sent()
    }

    /// A page of a list, requested like any read.
    pub async fn page(&mut self, list: List, offset: u64) -> Finding<Listed> {
        let request = Request::Read(list.page(offset, self.limit));
        self.send(request).await?.page()
    }

    pub async fn send(&mut self, request: Request) -> Finding<Reply> {
        if self.sent() < self.most && self.ended_by.is_none() {
            let client = self.for_next_request();
            // Boxed because each future around it would be as large.
            match Box::pin(client.probe(request, &self.budget)).await {
                Ok(answer) => return Ok(Reply::new(request, &answer)),
                Err(error) if self.sent() < self.most => match reason(&error) {
                    Some(reason) => return Err(reason),
                    None => self.ended_by = Some(error),
                },
                Err(_) => {}
            }
        }
        Err(format!("the limit of {} requests was reached", self.most))
    }

    /// A client whose retries keep to the number of requests that are left.
    fn for_next_request(&self) -> Client {
        let retries = self.most.saturating_sub(self.sent()).saturating_sub(1);
        let retries = u32::try_from(retries).unwrap_or(u32::MAX);
        self.client.with(|call| {
            call.options.max_retries = call.options.max_retries.min(retries);
            // Outage probes would not be bounded by the number of retries left.
            call.options.outage_patience = Duration::ZERO;
        })
    }
}

/// What an error means for one finding; omits its text, which may quote a response. `None` if it
/// would meet every other request too.
fn reason(error: &Error) -> Option<String> {
    let words = match &error.kind {
        ErrorKind::Status(failure) if failure.status != 429 => {
            return Some(answered(failure.status));
        }
        ErrorKind::Connect(_)
        | ErrorKind::Insecure(_)
        | ErrorKind::ProxyPassword
        | ErrorKind::Timeout(_) => "the service did not answer",
        ErrorKind::Transport(_) => "the answer is a redirect that is not followed",
        ErrorKind::Decode { .. } => "the answer is not JSON",
        ErrorKind::NotHttp(_)
        | ErrorKind::TruncatedBody(_)
        | ErrorKind::ResponseTooLarge { .. } => "the answer is incomplete, too large or not HTTP",
        _ => return None,
    };
    Some(words.to_owned())
}

pub fn answered(status: u16) -> String {
    format!("the service answered {status}")
}

/// A response, and the page in it, if there is one.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub listed: Option<Listed>,
}

impl Reply {
    fn new(request: Request, answer: &Answer) -> Self {
        let status = answer.status;
        let page = request.page().filter(|_| (200..300).contains(&status));
        let listed = page.and_then(|(list, offset)| Listed::new(list, offset, answer));
        Self { status, listed }
    }

    pub fn page(self) -> Finding<Listed> {
        match self.listed {
            Some(listed) => Ok(listed),
            None if self.status == 200 => unmeasured("the answer is not a page of a list"),
            None => Err(answered(self.status)),
        }
    }
}

/// The identity of a row: its id as sent, or the whole row.
pub fn identity(row: &Value) -> String {
    match row.get("id") {
        Some(id) if !id.is_null() => id.to_string(),
        _ => row.to_string(),
    }
}

/// A page of a list, as described by its envelope.
#[derive(Debug)]
pub struct Listed {
    /// The requested offset.
    pub requested_offset: u64,
    pub limit: Option<u64>,
    pub offset: Option<u64>,
    pub total: Option<u64>,
    pub rows: Vec<Value>,
}

impl Listed {
    /// `None` if the body is not a page.
    fn new(list: List, requested_offset: u64, answer: &Answer) -> Option<Self> {
        let envelope: Value = serde_json::from_str(&answer.text().json).ok()?;
        let number = |name: &str| envelope.get(name).and_then(Value::as_u64);
        Some(Self {
            requested_offset,
            limit: number("limit"),
            offset: number("offset"),
            total: number("total"),
            rows: envelope.get(list.resource().key())?.as_array()?.clone(),
        })
    }

    pub fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    /// One past the offset of its last row.
    pub fn end(&self) -> u64 {
        self.requested_offset.saturating_add(self.len())
    }

    /// Whether the rows are from the requested offset, as far as the envelope says.
    pub fn is_in_place(&self) -> bool {
        self.offset
            .is_none_or(|offset| offset == self.requested_offset)
    }

    /// The limit that was applied: as the service says, or as the rows show if more follow.
    pub fn applied(&self) -> Option<u64> {
        self.limit.or_else(|| {
            let more = self.total.is_some_and(|total| total > self.end());
            more.then(|| self.len())
        })
    }

    /// Whether it has rows beyond its own `total`.
    pub fn is_understated(&self) -> bool {
        let understated = self.total.is_some_and(|total| total < self.end());
        understated && self.is_in_place() && !self.rows.is_empty()
    }

    /// Whether it has as many rows as its limit allows, as far as that is known.
    pub fn is_full(&self) -> bool {
        self.limit.is_none_or(|limit| self.len() >= limit)
    }

    pub fn last_row(&self) -> Option<String> {
        self.rows.last().map(identity)
    }

    pub fn identities(&self) -> Vec<String> {
        self.rows.iter().map(identity).collect()
    }
}
