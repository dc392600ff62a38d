//! The four reads, each under the shared pace, with retries, and within its budget.

mod connections;
mod downtime;
mod failure;
mod first_page;
mod last_answer;
mod observed;
mod requests;
mod sending;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use secrecy::ExposeSecret;
use tokio::sync::Notify;

use self::connections::Connections;
pub use self::downtime::Downtime;
use self::failure::{decode_failure, status_failure, unreadable};
pub use self::first_page::FirstPage;
use self::last_answer::LastAnswer;
use self::sending::Request;
use super::budget::Budget;
use super::config::{OUTAGE_PATIENCE, OUTAGE_PATIENCE_OF_A_SYNC, Options, Origin, Settings};
use super::error::{Attempt, Error};
use super::observer::Observer;
use super::outage::Outages;
use super::pace::{Closing, Pace};
use super::process::PerProcess;
use super::redact::{Redactor, redacted_settings};
use super::timestamp::Timestamp;
use crate::api::{Endpoint, Limit, List, Natural, Resource};
use crate::decode::json::{self, Fault, Text};
use crate::decode::page::{Page, Row};
use crate::retry;
use crate::wire::{Answer, Transport};
use backread_clock::Clock;

/// A client of one service. Cheap to clone; clones share connections and pace.
#[derive(Debug, Clone)]
pub struct Client {
    origin: Arc<Origin>,
    options: Arc<Options>,
    connections: Arc<Connections>,
    /// Whether only 429s are retried.
    retries_refusals_alone: bool,
    pace: Arc<PerProcess<Arc<Pace>>>,
    outages: Arc<PerProcess<Arc<Outages>>>,
    closed: Arc<AtomicBool>,
    closing: Arc<PerProcess<Arc<Notify>>>,
    sent: Arc<AtomicU64>,
    repaired_text: Arc<AtomicU64>,
    /// The same, but never counted anew.
    repaired_text_ever: Arc<AtomicU64>,
    answered: Arc<LastAnswer>,
    observer: Option<Arc<Observer>>,
    clock: Clock,
}

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
            Endpoint::User { .. } | Endpoint::Message { .. } => None,
        }
    }

    /// The error for a response that is JSON, but not of the documented shape.
    pub fn misfit(&self, fault: Fault) -> Error {
        Error::new(decode_failure(self.redactor.redact_fault(fault)))
            .during(self.redactor.url(&self.endpoint), self.attempts.clone())
    }
}

impl Client {
    pub fn new(settings: Settings, options: Options) -> Result<Self, Error> {
        let secret = settings.api_secret.clone().unwrap_or_default();
        Self::made(settings, options)
            .map_err(|error| redacted_settings(error, secret.expose_secret()))
    }

    fn made(settings: Settings, options: Options) -> Result<Self, Error> {
        let origin = Arc::new(Origin::new(settings)?);
        let clock = Clock::real();
        Ok(Self {
            connections: Arc::new(Connections::new(Arc::clone(&origin), options.timeout)?),
            retries_refusals_alone: false,
            origin,
            options: Arc::new(options),
            pace: Arc::default(),
            outages: Arc::default(),
            closed: Arc::default(),
            closing: Arc::default(),
            sent: Arc::default(),
            repaired_text: Arc::default(),
            repaired_text_ever: Arc::default(),
            answered: Arc::new(LastAnswer::new(clock.now())),
            observer: None,
            clock,
        })
    }

    /// A client with other options over the same connections. It shares the pace unless the options
    /// change it.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        let same_pace = options.max_concurrency == self.options.max_concurrency
            && options.rate_limit == self.options.rate_limit;
        Self {
            options: Arc::new(options),
            pace: if same_pace {
                Arc::clone(&self.pace)
            } else {
                Arc::default()
            },
            ..self.clone()
        }
    }

    /// A client over the same connections that uses another clock and a separate pace.
    pub fn on_clock(&self, clock: Clock) -> Self {
        Self {
            clock,
            pace: Arc::default(),
            outages: Arc::default(),
            ..self.clone()
        }
    }

    /// The same client, reporting each attempt to an observer.
    pub fn observed(&self, observer: Arc<Observer>) -> Self {
        Self {
            observer: Some(observer),
            ..self.clone()
        }
    }

    /// The same client with separate counts of requests sent and of text repaired.
    pub fn counted(&self) -> Self {
        Self {
            sent: Arc::default(),
            repaired_text: Arc::default(),
            ..self.clone()
        }
    }

    /// The same client with a sync's outage patience, unless the user set one.
    pub fn patient(&self) -> Self {
        let mut options = (*self.options).clone();
        if options.outage_patience == OUTAGE_PATIENCE {
            options.outage_patience = OUTAGE_PATIENCE_OF_A_SYNC;
        }
        Self {
            options: Arc::new(options),
            ..self.clone()
        }
    }

    /// The same client, which sends each request once and does not wait for outages to end.
    pub fn without_retries(&self) -> Self {
        let mut options = (*self.options).clone();
        options.max_retries = 0;
        Self {
            options: Arc::new(options),
            ..self.clone()
        }
    }

    /// The same client, which sends each request once, except after a 429, and does not wait for
    /// outages to end.
    pub fn retrying_refusals_alone(&self) -> Self {
        Self {
            retries_refusals_alone: true,
            ..self.clone()
        }
    }

    /// Whether this client or a clone read a response successfully within the last `length`.
    pub fn was_answered_within(&self, length: Duration) -> bool {
        let last = self.answered.last();
        last.is_some_and(|last| self.clock.now().saturating_duration_since(last) <= length)
    }

    /// The `Date` of the last response that was a success, if it had one.
    pub fn service_date(&self) -> Option<SystemTime> {
        self.answered.date()
    }

    /// How long the service has been down so far, in all outages that this client has seen.
    pub fn outage_time(&self) -> Duration {
        self.outages()
            .map_or(Duration::ZERO, |outages| outages.total())
    }

    /// Seconds that the service has been down since it had been down for `before`.
    pub fn outage_seconds_since(&self, before: Duration) -> f64 {
        self.outage_time().saturating_sub(before).as_secs_f64()
    }

    /// A count of the outage time from now on.
    pub fn downtime(&self) -> Downtime {
        Downtime::new(self.outages().ok())
    }

    /// Requests sent by this client and its clones, including retries.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Places that were not valid Unicode in what this client and its clones read.
    pub fn repaired_text(&self) -> u64 {
        self.repaired_text.load(Ordering::Relaxed)
    }

    /// The same, with what clones with separate counts read.
    pub fn repaired_text_ever(&self) -> u64 {
        self.repaired_text_ever.load(Ordering::Relaxed)
    }

    fn note_repaired(&self, places: u64) {
        for count in [&self.repaired_text, &self.repaired_text_ever] {
            count.fetch_add(places, Ordering::Relaxed);
        }
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The clock for waits, timeouts and reports.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn budget(&self) -> Budget {
        Budget::start(self.options.deadline, &self.clock)
    }

    /// Closes the client and all that share its connections: further calls fail, idle connections close.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        if let Ok(outages) = self.outages() {
            outages.close();
        }
        if let Ok(closing) = self.closing() {
            closing.waking.notify_waiters();
        }
        self.connections.clear();
    }

    /// Whether this client, or one that shares its connections, was closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub async fn user(&self, user_id: Natural) -> Result<Read<Row>, Error> {
        self.user_within(user_id, &self.budget()).await
    }

    /// A user as part of a larger call, within its budget.
    pub async fn user_within(&self, user_id: Natural, budget: &Budget) -> Result<Read<Row>, Error> {
        self.single(Endpoint::User { user_id }, Resource::Users, budget)
            .await
    }

    pub async fn message(&self, user_id: Natural, message_id: Natural) -> Result<Read<Row>, Error> {
        let endpoint = Endpoint::Message {
            user_id,
            message_id,
        };
        self.single(endpoint, Resource::Messages, &self.budget())
            .await
    }

    /// One page of a list, by exactly one request plus any retries.
    pub async fn page(
        &self,
        list: List,
        offset: u64,
        limit: Limit,
        budget: &Budget,
    ) -> Result<Read<Page>, Error> {
        let endpoint = list.page(offset, limit);
        let read = self.read_body(endpoint, budget, |body, content_type| {
            Page::of_body(body, content_type, list.resource())
        });
        let mut read = read.await?;
        self.note_repaired(read.value.text.repaired);
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
        let endpoint = match list {
            List::Users => Endpoint::User { user_id: id },
            List::Messages { user_id } => Endpoint::Message {
                user_id,
                message_id: id,
            },
        };
        let parse = |text: Text| {
            json::check(&text.json)?;
            json::check_object(&text.json)?;
            Ok(Some(text))
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
                sent: Sent {
                    endpoint,
                    attempts: error.attempts.clone(),
                    redactor: self.redactor(),
                    stored_at: None,
                },
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
            sent: Sent {
                endpoint,
                attempts,
                redactor: self.redactor(),
                stored_at: None,
            },
        }
    }

    async fn single(
        &self,
        endpoint: Endpoint,
        resource: Resource,
        budget: &Budget,
    ) -> Result<Read<Row>, Error> {
        self.read(endpoint, budget, |text| Row::alone(text.json, resource))
            .await
    }

    pub fn redactor(&self) -> Redactor {
        Redactor::of(&self.origin)
    }

    fn transport(&self) -> Result<Arc<Transport>, Error> {
        self.connections.transport()
    }

    fn pace(&self) -> Result<Arc<Pace>, Error> {
        self.pace.with(
            || {
                let options = &self.options;
                let (most, rate) = (options.max_concurrency, options.rate_limit);
                let pace = Pace::new(most, rate, self.clock.clone());
                Ok(Arc::new(pace.closed_by(self.closing()?)))
            },
            Arc::clone,
        )
    }

    fn closing(&self) -> Result<Closing, Error> {
        let waking = self.closing.with(|| Ok(Arc::default()), Arc::clone)?;
        Ok(Closing {
            closed: Arc::clone(&self.closed),
            waking,
        })
    }

    fn outages(&self) -> Result<Arc<Outages>, Error> {
        let make = || Ok(Arc::new(Outages::new(self.clock.clone())));
        self.outages.with(make, Arc::clone)
    }

    /// How long a call waits in an outage; zero if it does not.
    fn outage_patience(&self) -> Duration {
        let Options {
            max_retries,
            outage_patience,
            ..
        } = *self.options;
        // A mock that fails forever must not block a test suite, unless its clock skips waits.
        let default = [OUTAGE_PATIENCE, OUTAGE_PATIENCE_OF_A_SYNC].contains(&outage_patience);
        let of_a_mock = default && self.origin.is_mock() && !self.clock.is_virtual();
        match max_retries == 0 || self.retries_refusals_alone || of_a_mock {
            true => Duration::ZERO,
            false => outage_patience,
        }
    }

    /// When a response of this age was made, at the latest; `None` if it is new. Caches round their
    /// clocks.
    fn stored_at(&self, age: &str) -> Option<Timestamp> {
        let age: i64 = age.trim().parse().ok()?;
        let seconds = age.checked_sub(1).filter(|seconds| *seconds > 0)?;
        let now = Timestamp::by(&self.clock).microseconds();
        Timestamp::from_microseconds(now.checked_sub(seconds.checked_mul(1_000_000)?)?)
    }

    async fn read<T>(
        &self,
        endpoint: Endpoint,
        budget: &Budget,
        parse: impl Fn(Text) -> Result<T, Fault>,
    ) -> Result<Read<T>, Error> {
        let repaired = |body, content_type: Option<&str>| {
            let text = Text::repair(body, content_type);
            let places = text.repaired;
            let value = parse(text)?;
            self.note_repaired(places);
            Ok(value)
        };
        self.read_body(endpoint, budget, repaired).await
    }

    async fn read_body<T>(
        &self,
        endpoint: Endpoint,
        budget: &Budget,
        parse: impl Fn(Bytes, Option<&str>) -> Result<T, Fault>,
    ) -> Result<Read<T>, Error> {
        let judge = |answer: Answer| {
            if !(200..300).contains(&answer.status) {
                return Err(status_failure(answer, self.clock.wall()).into());
            }
            let (status, headers) = (answer.status, answer.headers);
            self.answered
                .note_date(headers.get("date").and_then(retry::date));
            let stored_at = || self.stored_at(headers.get("age")?);
            let start = answer.body.first_chunk().copied();
            parse(answer.body, headers.get("content-type"))
                .map(|value| (status, (value, stored_at())))
                .map_err(|fault| unreadable(status, &headers, start, fault))
        };
        let ((value, stored_at), attempts) =
            self.send(&Request::Read(endpoint), budget, judge).await?;
        Ok(Read {
            value,
            sent: Sent {
                endpoint,
                attempts,
                redactor: self.redactor(),
                stored_at,
            },
        })
    }
}
