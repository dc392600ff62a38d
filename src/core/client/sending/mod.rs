//! How a request is sent: admission, attempt, verdict, wait.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::Client;
use super::failure::{Failure, past_deadline, status_failure};
use crate::clock::Elapsed;
use crate::core::api::Endpoint;
use crate::core::budget::Budget;
use crate::core::error::{Attempt, Error, ErrorKind};
use crate::core::observer::{Observer, OutageNote};
use crate::core::outage::{self, Down, Outages, Pass, Patience};
use crate::core::pace::{Admission, Pace, RefusedBy};
use crate::core::probe_request::ProbeRequest;
use crate::core::process::chance;
use crate::core::retry::{self, Load, Situation, Verdict};
use crate::core::wire::{Answer, Bounds, Failed, MOST_REDIRECTS, Target, Transport, too_many};

// The longest that a refusal without a Retry-After holds back all requests.
const LONGEST_UNSTATED_HOLD: Duration = Duration::from_secs(1);
// How often a request that the service did not process is sent again. Some proxies end an HTTP/2
// connection after a few requests, when many more are on their way.
const MOST_RESENT: u32 = 16;
// The first of these are sent at once, later ones after a random wait of up to `LONGEST_RESEND_WAIT`.
const RESENT_AT_ONCE: u32 = 2;
const LONGEST_RESEND_WAIT: Duration = Duration::from_millis(100);

mod elsewhere;

/// The request to send; displayed as path and query, relative to the base URL.
pub(super) enum Request<'a> {
    Read(Endpoint),
    ProbeRequest(&'a ProbeRequest),
}

impl fmt::Display for Request<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(endpoint) => endpoint.fmt(formatter),
            Self::ProbeRequest(request) => request.fmt(formatter),
        }
    }
}

/// A call: one request with all its attempts.
struct Call<'a> {
    client: &'a Client,
    request: &'a Request<'a>,
    budget: &'a Budget,
    attempts: Vec<Attempt>,
    /// Retries that count against the limit: not those in an outage, nor those of requests that the
    /// service did not process.
    retries: u32,
    resent: u32,
    redirects: Redirects,
    patience: Patience,
    /// The last failure, while the call waits to retry.
    failure: Option<ErrorKind>,
    wait_began: Instant,
}

/// The redirects of one attempt so far.
#[derive(Default)]
struct Redirects {
    target: Option<Target>,
    count: u32,
    /// How long they took: the timeout is over all of them.
    took: Duration,
}

impl Redirects {
    /// The redirects with the one that an attempt ended in; `None` if it ended in none, or if there
    /// are too many, which is then its error.
    fn follow<T>(&self, outcome: &mut Result<T, Failure>, took: Duration) -> Option<Self> {
        let Err(failure) = outcome else {
            return None;
        };
        let target = failure.moved_to.take()?;
        if self.count == MOST_REDIRECTS {
            failure.kind = too_many();
            failure.transient = false;
            return None;
        }
        Some(Self {
            target: Some(target),
            count: self.count + 1,
            took: self.took + took,
        })
    }
}

/// What to do after an attempt that failed and may be retried.
struct Next {
    verdict: Verdict,
    /// The verdict if there were no outage.
    usual: Verdict,
    down: Option<Down>,
}

impl Call<'_> {
    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind).during(self.request.to_string(), self.attempts.clone())
    }

    /// The deadline has passed, or the wait would pass it; the failure being retried is the cause.
    fn out_of_time(&self, wait: Option<Duration>) -> Error {
        let error = self.error(past_deadline(self.budget, wait));
        match &self.failure {
            Some(failure) => error.because(self.error(failure.clone())),
            None => error,
        }
    }

    fn given_up(&self, kind: ErrorKind) -> Error {
        let error = self.error(kind);
        match self.patience.over(self.client.clock.now()) {
            Some(patience) => error.after_patience(patience),
            None => error,
        }
    }

    fn waits_for_outages(&self) -> bool {
        !self.patience.is_none()
    }

    /// Waits while there is an outage, unless this call is to probe.
    async fn pass<'o>(&mut self, outages: &'o Outages) -> Result<Pass<'o>, Error> {
        if !self.waits_for_outages() {
            return Ok(Pass::Open);
        }
        let passed = outages.pass(&mut self.patience, self.budget.end()).await;
        passed.map_err(|late| self.out_of_time(late.wait))
    }

    /// Waits for this call's turn; an outage may begin meanwhile.
    async fn turn<'t>(
        &mut self,
        mut pass: Pass<'t>,
        outages: &'t Outages,
        pace: &'t Pace,
    ) -> Result<(Pass<'t>, Admission<'t>), Error> {
        loop {
            let remaining = self.budget.remaining(&self.client.clock);
            let admission = match (&pass, &self.failure) {
                (Pass::Open | Pass::Hurried, _) => pace.admit(remaining).await,
                // Outage patience is all that it may wait; it does not also wait for Retry-After.
                (Pass::Last, Some(failure)) => match pace.admit_alone(Some(Duration::ZERO)).await {
                    Err(_) => return Err(self.given_up(failure.clone())),
                    admission => admission,
                },
                (Pass::Last | Pass::Probe(_), _) => pace.admit_alone(remaining).await,
            };
            // Closing a client wakes the waiting calls.
            if self.client.is_closed() {
                return Err(self.error(ErrorKind::Closed));
            }
            let place = admission.map_err(|wait| self.out_of_time(Some(wait)))?;
            if !self.waits_for_outages() || !pass.is_open() || !outages.is_on() {
                return Ok((pass, place));
            }
            drop(place);
            pass = self.pass(outages).await?;
        }
    }

    /// Decides what to do after a transient failure.
    fn decide(
        &mut self,
        failure: &Failure,
        number: u64,
        pass: Pass<'_>,
        outages: &Outages,
    ) -> Next {
        let Client { options, clock, .. } = self.client;
        let once = self.client.retries_refusals_alone && failure.status != Some(429);
        let usual = retry::decide(
            &failure.kind,
            Situation {
                retries_done: self.retries,
                max_retries: if once { 0 } else { options.max_retries },
                on_rate_limit: options.on_rate_limit,
                remaining: self.budget.remaining(clock),
                chance: chance(),
            },
        );
        let retry_after = retry::retry_after(&failure.kind);
        // A failure without a response does not end an outage.
        let silent = failure.status.is_none() && outages.is_on();
        let failed = outage::Failed {
            number,
            retry_after,
            may_be_too_fast: failure.status == Some(503),
            is_last: usual == Verdict::GiveUp,
        };
        let waits = self.waits_for_outages() && !matches!(pass, Pass::Hurried);
        let down = (waits && (outage::is_sign(&failure.kind) || silent))
            .then(|| outages.fail(failed, pass, &mut self.patience))
            .flatten();
        let verdict = match (down, usual) {
            (None, _) => usual,
            // The stated wait ends after the deadline.
            (_, Verdict::PastDeadline { .. }) if retry_after.is_some() => usual,
            _ if self.patience.is_over(clock.now()) => Verdict::GiveUp,
            (Some(down), _) => Verdict::Retry {
                wait: down.next_probe,
            },
        };
        Next {
            verdict,
            usual,
            down,
        }
    }

    /// Waits before the next attempt, or ends the call. The call may already have its pass.
    async fn wait<'o>(
        &mut self,
        next: Next,
        held: bool,
        outages: &'o Outages,
        pace: &Pace,
    ) -> Result<Option<Pass<'o>>, Error> {
        let clock = &self.client.clock;
        let mut verdict = next.verdict;
        if let (Some(down), Verdict::Retry { wait }) = (next.down, verdict) {
            if down.scheduled && !held {
                clock.record(wait);
            }
            let pass = self.pass(outages).await?;
            if self.patience.was_tried() {
                if self.patience.outlast() {
                    // Retries spent before the outage was detected do not count.
                    self.retries = 0;
                }
                return Ok(Some(pass));
            }
            // Other requests were answered before any probe. Perhaps only this request fails, or
            // the service was down for a moment and may be so again.
            self.patience.outlast();
            verdict = next.usual;
        }
        match verdict {
            Verdict::Retry { wait } => {
                self.retries += 1;
                if !held {
                    pace.sleep(wait).await;
                }
                Ok(None)
            }
            Verdict::PastDeadline { wait } => Err(self.out_of_time(Some(wait))),
            Verdict::GiveUp => {
                let kind = self.failure.take().unwrap_or(ErrorKind::Aborted);
                Err(self.given_up(kind))
            }
        }
    }
}

/// Any response ends an outage, except those of proxies whose service is down.
fn end_outage(
    status: Option<u16>,
    number: u64,
    outages: &Outages,
    pace: &Pace,
) -> Option<OutageNote> {
    if status.is_none_or(outage::is_of_outage) {
        return None;
    }
    let outage = outages.answer(number)?;
    if outage.at_any_pace {
        pace.outage_ended();
    }
    let lasted = outage.lasted;
    Some(OutageNote::Ended { lasted })
}

impl Client {
    /// The only loop that sends requests: admission, attempt, verdict, wait.
    pub(super) async fn send<T>(
        &self,
        request: &Request<'_>,
        budget: &Budget,
        judge: impl Fn(Answer) -> Result<(u16, T), Failure>,
    ) -> Result<(T, Vec<Attempt>), Error> {
        let (transport, pace, outages) = (self.transport()?, self.pace()?, self.outages()?);
        let clock = &self.clock;
        let _call = clock.call();
        let mut call = Call {
            client: self,
            request,
            budget,
            attempts: Vec::new(),
            retries: 0,
            resent: 0,
            redirects: Redirects::default(),
            patience: Patience::new(self.outage_patience()),
            failure: None,
            wait_began: clock.now(),
        };
        let spent = |call: &Call<'_>| call.error(ErrorKind::BudgetSpent);
        let Some(mut reservation) = budget.reserve() else {
            return Err(spent(&call));
        };
        let mut passed = None;
        loop {
            // Checked each time: a client may be closed while its calls wait.
            if self.is_closed() {
                return Err(call.error(ErrorKind::Closed));
            }
            let pass = match passed.take() {
                Some(pass) => pass,
                None => call.pass(&outages).await?,
            };
            let (pass, place) = call.turn(pass, &outages, &pace).await?;
            if pass.probes_elsewhere() {
                passed = call
                    .probe_elsewhere(pass, place, &transport, &outages, &pace)
                    .await?;
                continue;
            }
            let began = place.sent();
            let seconds_waited = began.duration_since(call.wait_began).as_secs_f64();
            let mut notes = match call.redirects.count {
                0 => pass.notes(),
                _ => Vec::new(),
            };
            reservation.spend();
            self.sent.fetch_add(1, Ordering::Relaxed);
            let number = outages.send();
            let redirects = std::mem::take(&mut call.redirects);
            let attempt = self.attempt(&transport, request, &redirects, budget, &judge);
            let mut outcome = attempt.await;
            let ended = clock.now();
            call.wait_began = ended;
            if let Some(next) = redirects.follow(&mut outcome, ended.duration_since(began)) {
                place.answered(ended);
                call.attempts.push(Attempt {
                    status: outcome.err().and_then(|failure| failure.status),
                    error: None,
                    seconds_taken: ended.duration_since(began).as_secs_f64(),
                    seconds_waited,
                });
                self.observe(request, &call.attempts, None, None, notes);
                call.redirects = next;
                reservation = budget.reserve().ok_or_else(|| spent(&call))?;
                passed = Some(pass);
                continue;
            }
            let failure = outcome.as_ref().err();
            let status = match &outcome {
                Ok((status, _)) => Some(*status),
                Err(failure) => failure.status,
            };
            call.attempts.push(Attempt {
                status,
                error: failure.map(|failure| failure.kind.to_string()),
                seconds_taken: ended.duration_since(began).as_secs_f64(),
                seconds_waited,
            });
            notes.extend(end_outage(status, number, &outages, &pace));
            let failure = match outcome {
                Ok((_, value)) => {
                    self.answered.note(ended);
                    place.answered(ended);
                    self.observe(request, &call.attempts, None, None, notes);
                    return Ok((value, call.attempts));
                }
                Err(failure) => failure,
            };
            if failure.not_processed && failure.transient && call.resent < MOST_RESENT {
                call.resent += 1;
                drop(place);
                self.observe(request, &call.attempts, Some(&failure.kind), None, notes);
                reservation = budget.reserve().ok_or_else(|| spent(&call))?;
                if call.resent > RESENT_AT_ONCE {
                    clock.sleep(LONGEST_RESEND_WAIT.mul_f64(chance())).await;
                }
                continue;
            }
            if !failure.transient {
                if failure.status.is_some() {
                    place.answered(ended);
                }
                self.observe(request, &call.attempts, Some(&failure.kind), None, notes);
                return Err(call.error(failure.kind));
            }
            // A probe is sent alone, so its result says nothing about the pace.
            let alone = !pass.is_open();
            let next = call.decide(&failure, number, pass, &outages);
            // Tell the pace before the slot is released, or the next request in line would slip
            // through.
            let held = match (retry::load(&failure.kind), next.verdict) {
                (Load::Refused { by, wait: Some(_) }, Verdict::Retry { wait }) => {
                    clock.record(wait);
                    place.refused(by, wait, true);
                    true
                }
                (Load::Unknown, _) => {
                    drop(place);
                    false
                }
                _ if alone => {
                    drop(place);
                    false
                }
                // A backoff that the service did not ask for applies to this call, not to all
                // requests.
                (Load::Refused { by, wait: None }, Verdict::Retry { wait }) => {
                    place.refused(by, wait.min(LONGEST_UNSTATED_HOLD), false);
                    false
                }
                // This call gives up, but its refusal still counts for the pace.
                (
                    Load::Refused {
                        by: by @ RefusedBy::Unavailable,
                        ..
                    },
                    _,
                ) => {
                    place.refused(by, Duration::ZERO, false);
                    false
                }
                (Load::Over | Load::Refused { .. }, _) => {
                    place.overloaded();
                    false
                }
            };
            let again_in = match next.verdict {
                Verdict::Retry { wait } => Some(wait),
                Verdict::GiveUp | Verdict::PastDeadline { .. } => None,
            };
            self.observe(
                request,
                &call.attempts,
                Some(&failure.kind),
                again_in,
                notes,
            );
            call.failure = Some(failure.kind);
            // Reserved before the wait, or a call would wait only to be refused.
            let again = budget.reserve();
            if again.is_none() && again_in.is_some() {
                return Err(spent(&call));
            }
            passed = call.wait(next, held, &outages, &pace).await?;
            reservation = again.ok_or_else(|| spent(&call))?;
        }
    }

    async fn attempt<T>(
        &self,
        transport: &Transport,
        request: &Request<'_>,
        redirects: &Redirects,
        budget: &Budget,
        judge: impl Fn(Answer) -> Result<(u16, T), Failure>,
    ) -> Result<(u16, T), Failure> {
        let outcome = self.exchange(transport, request, redirects, budget).await;
        let outcome = outcome.and_then(|mut answer| match answer.moved_to.take() {
            Some(target) => Err(Failure {
                moved_to: Some(target),
                ..status_failure(answer, self.clock.wall()).into()
            }),
            None => judge(answer),
        });
        // Redacted here for everything downstream: errors, their attempts, logs.
        outcome.map_err(|failure| Failure {
            kind: self.redactor().redact_kind(failure.kind),
            ..failure
        })
    }

    async fn exchange(
        &self,
        transport: &Transport,
        request: &Request<'_>,
        redirects: &Redirects,
        budget: &Budget,
    ) -> Result<Answer, Failure> {
        let timeout = self.options.timeout;
        let left = timeout.map(|timeout| timeout.saturating_sub(redirects.took));
        let (limit, by_deadline) = budget.attempt_limit(left, &self.clock);
        let bounds = Bounds {
            max_bytes: self.options.max_response_bytes,
            limit,
        };
        let trace = self.observer.as_deref().map_or(&[][..], Observer::trace);
        let target = redirects.target.as_ref();
        let get = async {
            match request {
                Request::Read(endpoint) => transport.get(endpoint, target, trace, bounds).await,
                Request::ProbeRequest(request) => {
                    transport.probe(request, target, trace, bounds).await
                }
            }
        };
        match self.clock.exchange(limit, get).await {
            Ok(answer) => answer,
            Err(Elapsed) if by_deadline => Err(Failed::from(past_deadline(budget, None))),
            Err(Elapsed) => Err(ErrorKind::Timeout(timeout.unwrap_or_default()).into()),
        }
        .map_err(Failure::from)
    }
}
