//! The client: the four reads, each through the shared gate, with retries, and within its budget.

pub mod attachments;
mod call;
mod failure;
mod gate;
mod reads;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use secrecy::ExposeSecret;
use tokio::time::Instant;

use self::gate::{Gate, Waker};
pub use self::reads::{Read, Sent};
use super::budget::Budget;
use super::config::{OUTAGE_PATIENCE, OUTAGE_PATIENCE_OF_A_SYNC, Options, Origin, Settings};
use super::error::Error;
use super::observer::Observer;
use super::process::PerProcess;
use super::redact::{Redactor, redacted_settings};
use crate::wire::{LONGEST_SILENCE, Transport};
use backread_clock::Clock;

/// A client of one service. Cheap to clone; clones share connections and gate.
#[derive(Debug, Clone)]
pub struct Client {
    service: Arc<Service>,
    gate: Arc<PerProcess<Arc<Gate>>>,
    call: CallOptions,
}

/// What clients derived from one another share. A forked process opens its own connections.
#[derive(Debug)]
struct Service {
    origin: Arc<Origin>,
    /// How long connections may be silent.
    silence: Duration,
    transport: PerProcess<Arc<Transport>>,
    closed: AtomicBool,
    waker: PerProcess<Arc<Waker>>,
    /// When the last success was read, and its `Date`. Not a lock, which a forked child could
    /// inherit locked.
    answered: ArcSwapOption<(Instant, Option<SystemTime>)>,
    /// Totals of all these clients.
    counts: Counts,
}

/// What may differ between clients that share connections.
#[derive(Debug, Clone)]
pub struct CallOptions {
    pub options: Options,
    /// Retry only 429s, and do not wait for outages.
    pub refusals_alone: bool,
    pub counts: Arc<Counts>,
    /// Receives each attempt.
    pub observer: Option<Arc<Observer>>,
    pub clock: Clock,
}

/// The counters of calls.
#[derive(Debug, Default)]
pub struct Counts {
    /// Requests, including retries.
    pub sent: AtomicU64,
    /// Places that were not valid Unicode.
    pub repaired_text: AtomicU64,
}

impl CallOptions {
    /// Starts new counters.
    pub fn count_anew(&mut self) {
        self.counts = Arc::default();
    }

    /// Sets the outage patience of a sync, unless the user set one.
    pub fn wait_as_a_sync(&mut self) {
        if self.options.outage_patience == OUTAGE_PATIENCE {
            self.options.outage_patience = OUTAGE_PATIENCE_OF_A_SYNC;
        }
    }
}

impl Service {
    fn transport(&self) -> Result<Arc<Transport>, Error> {
        let make = || Transport::new(Arc::clone(&self.origin), self.silence).map(Arc::new);
        self.transport.with(make, Arc::clone)
    }

    fn waker(&self) -> Result<Arc<Waker>, Error> {
        self.waker.with(|| Ok(Arc::default()), Arc::clone)
    }
}

impl Client {
    pub fn new(settings: Settings, options: Options) -> Result<Self, Error> {
        let secret = settings.api_secret.clone().unwrap_or_default();
        Self::made(settings, options)
            .map_err(|error| redacted_settings(error, secret.expose_secret()))
    }

    fn made(settings: Settings, options: Options) -> Result<Self, Error> {
        let service = Service {
            origin: Arc::new(Origin::new(settings)?),
            silence: LONGEST_SILENCE.min(options.timeout.unwrap_or(LONGEST_SILENCE)),
            transport: PerProcess::empty(),
            closed: AtomicBool::new(false),
            waker: PerProcess::empty(),
            answered: ArcSwapOption::empty(),
            counts: Counts::default(),
        };
        // A bad proxy or CA bundle fails here, not at the first request.
        service.transport()?;
        Ok(Self {
            service: Arc::new(service),
            gate: Arc::default(),
            call: CallOptions {
                options,
                refusals_alone: false,
                counts: Arc::default(),
                observer: None,
                clock: Clock::real(),
            },
        })
    }

    /// A client with changed options over the same connections. It has a new gate if the concurrency, the
    /// rate limit or the clock changed.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut CallOptions)) -> Self {
        let mut call = self.call.clone();
        change(&mut call);
        let shares_gate = call.options.max_concurrency == self.options().max_concurrency
            && call.options.rate_limit == self.options().rate_limit
            && call.clock == *self.clock();
        let gate = if shares_gate {
            Arc::clone(&self.gate)
        } else {
            Arc::default()
        };
        Self {
            service: Arc::clone(&self.service),
            gate,
            call,
        }
    }

    /// Whether this client, or one made from it, read a response successfully within the last `length`.
    pub fn was_answered_within(&self, length: Duration) -> bool {
        let last = self.service.answered.load_full();
        last.is_some_and(|last| self.clock().now().saturating_duration_since(last.0) <= length)
    }

    /// The `Date` of the last response that was a success, if it had one.
    pub fn service_date(&self) -> Option<SystemTime> {
        self.service.answered.load().as_ref()?.1
    }

    /// How long the service has been down so far, in all outages that this client has seen.
    pub fn outage_time(&self) -> Duration {
        self.gate()
            .map_or(Duration::ZERO, |gate| gate.outage_time())
    }

    /// Seconds that the service has been down since it had been down for `before`.
    pub fn outage_seconds_since(&self, before: Duration) -> f64 {
        self.outage_time().saturating_sub(before).as_secs_f64()
    }

    /// Requests sent by this client and those that share its counts, including retries.
    pub fn sent(&self) -> u64 {
        self.call.counts.sent.load(Ordering::Relaxed)
    }

    /// Places that were not valid Unicode in what this client and those that share its counts read.
    pub fn repaired_text(&self) -> u64 {
        self.call.counts.repaired_text.load(Ordering::Relaxed)
    }

    /// The same, by all clients of the service.
    pub fn repaired_text_of_all(&self) -> u64 {
        self.service.counts.repaired_text.load(Ordering::Relaxed)
    }

    fn note_repaired(&self, places: u64) {
        for counts in [&self.call.counts, &self.service.counts] {
            counts.repaired_text.fetch_add(places, Ordering::Relaxed);
        }
    }

    pub fn origin(&self) -> &Origin {
        &self.service.origin
    }

    pub fn options(&self) -> &Options {
        &self.call.options
    }

    /// The clock for waits, timeouts and reports.
    pub fn clock(&self) -> &Clock {
        &self.call.clock
    }

    pub fn budget(&self) -> Budget {
        Budget::start(self.options().deadline, self.clock())
    }

    /// Closes the client and all that share its connections: further calls fail, idle connections close.
    pub fn close(&self) {
        self.service.closed.store(true, Ordering::SeqCst);
        if let Ok(waker) = self.service.waker() {
            waker.close();
        }
        self.service.transport.clear();
    }

    /// Whether this client, or one that shares its connections, was closed.
    pub fn is_closed(&self) -> bool {
        self.service.closed.load(Ordering::Relaxed)
    }

    pub fn redactor(&self) -> Redactor {
        Redactor::of(&self.service.origin)
    }

    fn gate(&self) -> Result<Arc<Gate>, Error> {
        let make = || {
            let (options, clock) = (self.options(), self.clock().clone());
            let waker = self.service.waker()?;
            let gate = Gate::new(options.max_concurrency, options.rate_limit, clock, waker);
            Ok(Arc::new(gate))
        };
        self.gate.with(make, Arc::clone)
    }

    /// How long a call waits in an outage; zero if it does not.
    fn outage_patience(&self) -> Duration {
        let (max_retries, outage_patience) =
            (self.options().max_retries, self.options().outage_patience);
        // A mock that fails forever must not block a test suite, unless its clock skips waits.
        let is_default = [OUTAGE_PATIENCE, OUTAGE_PATIENCE_OF_A_SYNC].contains(&outage_patience);
        let is_of_a_mock = is_default && self.origin().is_mock() && !self.clock().is_virtual();
        if max_retries == 0 || self.call.refusals_alone || is_of_a_mock {
            Duration::ZERO
        } else {
            outage_patience
        }
    }
}
