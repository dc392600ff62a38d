//! The requests of the interface, and those that only the probe sends.

use std::sync::Arc;

use bytes::Bytes;

use super::Client;
use super::failure::{Failure, decode_failure, status_failure, unreadable};
use crate::api::{Endpoint, Limit, List, Natural, Request};
use crate::budget::Budget;
use crate::decode::json::{self, Fault, Text};
use crate::decode::page::{Page, Row};
use crate::error::{Attempt, Error};
use crate::redact::Redactor;
use crate::retry;
use crate::timestamp::Timestamp;
use crate::wire::{Answer, Headers};

/// The result of one read, and the requests sent for it.
#[derive(Debug)]
pub struct Read<T> {
    pub value: T,
    pub sent: Sent,
}

/// A request that was answered, with all its attempts.
#[derive(Debug, Clone)]
pub struct Sent {
    pub endpoint: Endpoint,
    pub attempts: Vec<Attempt>,
    pub redactor: Redactor,
    /// When the response was made, or later, if a cache says that it had stored it (RFC 9111, 5.1).
    pub stored_at: Option<Timestamp>,
}

impl Sent {
    /// Whether the response was made before this time, as far as caches say.
    pub fn is_older_than(&self, time: Timestamp) -> bool {
        self.stored_at.is_some_and(|stored_at| stored_at < time)
    }

    /// How many rows were requested, if it was a page.
    pub fn requested_rows(&self) -> Option<u64> {
        match self.endpoint {
            Endpoint::Page { limit, .. } => Some(limit.get().into()),
            Endpoint::Row { .. } => None,
        }
    }

    /// The error for a response that is JSON, but not of the documented shape.
    pub fn misfit(&self, fault: Fault) -> Error {
        Error::new(decode_failure(self.redactor.redact_fault(fault)))
            .during(self.redactor.url(&self.endpoint), self.attempts.clone())
    }
}

impl Answer {
    pub fn text(&self) -> Text {
        Text::repair(self.body.clone(), self.headers.get("content-type"))
    }
}

impl Client {
    /// A row by its id, by exactly one request plus any retries.
    pub async fn get(&self, list: List, id: Natural, budget: &Budget) -> Result<Read<Row>, Error> {
        let parse = |body, content_type: Option<&str>| {
            let text = Text::repair(body, content_type);
            Ok((Row::alone(text.json, list.resource())?, text.repaired))
        };
        self.read(list.row(id), budget, parse).await
    }

    /// One page of a list, by exactly one request plus any retries.
    pub async fn page(
        &self,
        list: List,
        offset: u64,
        limit: Limit,
        budget: &Budget,
    ) -> Result<Read<Page>, Error> {
        let read = self.read(list.page(offset, limit), budget, |body, content_type| {
            let page = Page::of_body(body, content_type, list.resource())?;
            let repaired = page.text.repaired;
            Ok((page, repaired))
        });
        let mut read = read.await?;
        read.value.stored_at = read.sent.stored_at;
        Ok(read)
    }

    /// The text of a row by its id; `None` if there is no such row.
    pub async fn row(
        &self,
        list: List,
        id: Natural,
        budget: &Budget,
    ) -> Result<Read<Option<Text>>, Error> {
        let endpoint = list.row(id);
        let parse = |body, content_type: Option<&str>| {
            let text = Text::repair(body, content_type);
            json::check(&text.json)?;
            json::check_object(&text.json)?;
            let repaired = text.repaired;
            Ok((Some(text), repaired))
        };
        let mut read = self.read(endpoint, budget, parse).await;
        if let Err(error) = &read
            && error.status() == Some(404)
            && !self.is_missing(error, budget).await?
        {
            read = self.read(endpoint, budget, parse).await;
        }
        match read {
            // Not 410, which a service may also answer for an address that it no longer has.
            Err(error) if error.status() == Some(404) => Ok(Read {
                value: None,
                sent: self.was_sent(endpoint, error.attempts.clone(), None),
            }),
            read => read,
        }
    }

    /// Whether a 404 shows that a row is missing. A web page may be of a proxy that does not know the
    /// service at the moment: then the row must be requested again, once the service has
    /// answered something else.
    pub async fn is_missing(&self, error: &Error, budget: &Budget) -> Result<bool, Error> {
        if !error.is_page_or_text() {
            return Ok(true);
        }
        self.page(List::Users, 0, Limit::SMALLEST, budget).await?;
        Ok(false)
    }

    /// A page that these attempts were for.
    pub fn answered(&self, page: Page, endpoint: Endpoint, attempts: Vec<Attempt>) -> Read<Page> {
        Read {
            value: page,
            sent: self.was_sent(endpoint, attempts, None),
        }
    }

    /// Sends one request of the probe. For requests outside the interface, any status is an answer.
    /// A 429 is obeyed, and transient failures that any read might meet are retried.
    pub async fn probe(&self, request: Request, budget: &Budget) -> Result<Answer, Error> {
        let judge = |answer: Answer| {
            let allowed = request.is_allowed();
            let refused = match answer.status {
                429 => true,
                408 | 500..=599 => allowed,
                _ => false,
            };
            if refused {
                return Err(Failure::from(status_failure(answer, self.clock().wall())));
            }
            if answer.status == 200 && allowed {
                let text = answer.text();
                let start = answer.body.first_chunk().copied();
                json::check(&text.json)
                    .map_err(|fault| unreadable(answer.status, &answer.headers, start, fault))?;
                self.note_repaired(text.repaired);
            }
            self.note_answer(&answer.headers);
            Ok((answer.status, answer))
        };
        Ok(self.send(&request, budget, judge).await?.0)
    }

    /// When a response of this age was made, at the latest; `None` if it is new. Caches round their
    /// clocks.
    fn stored_at(&self, age: &str) -> Option<Timestamp> {
        let age: i64 = age.trim().parse().ok()?;
        let seconds = age.checked_sub(1).filter(|seconds| *seconds > 0)?;
        let now = Timestamp::by(self.clock()).microseconds();
        Timestamp::from_microseconds(now.checked_sub(seconds.checked_mul(1_000_000)?)?)
    }

    /// `parse` also returns how many places of the text were repaired.
    async fn read<T>(
        &self,
        endpoint: Endpoint,
        budget: &Budget,
        parse: impl Fn(Bytes, Option<&str>) -> Result<(T, u64), Fault>,
    ) -> Result<Read<T>, Error> {
        let judge = |answer: Answer| {
            if !(200..300).contains(&answer.status) {
                return Err(status_failure(answer, self.clock().wall()).into());
            }
            let (status, headers) = (answer.status, answer.headers);
            let start = answer.body.first_chunk().copied();
            let (value, repaired) = parse(answer.body, headers.get("content-type"))
                .map_err(|fault| unreadable(status, &headers, start, fault))?;
            self.note_repaired(repaired);
            self.note_answer(&headers);
            let stored_at = headers.get("age").and_then(|age| self.stored_at(age));
            Ok((status, (value, stored_at)))
        };
        let ((value, stored_at), attempts) =
            self.send(&Request::Read(endpoint), budget, judge).await?;
        let sent = self.was_sent(endpoint, attempts, stored_at);
        Ok(Read { value, sent })
    }

    fn note_answer(&self, headers: &Headers) {
        let date = headers.get("date").and_then(retry::date);
        let answered = Some(Arc::new((self.clock().now(), date)));
        self.service.answered.store(answered);
    }

    fn was_sent(
        &self,
        endpoint: Endpoint,
        attempts: Vec<Attempt>,
        stored_at: Option<Timestamp>,
    ) -> Sent {
        Sent {
            endpoint,
            attempts,
            redactor: self.redactor(),
            stored_at,
        }
    }
}
