//! One call: a request with all its attempts.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::failure::{Failure, past_deadline, status_failure};
use super::gate::{Ended, Failed, Hold, NotPassed, Pass, Patience, Probe};
use super::redirects::Redirects;
use super::{Client, Retries};
use crate::api::{Endpoint, Limit, List};
use crate::budget::{Budget, Reservation};
use crate::error::{Attempt, Error, ErrorKind};
use crate::observer::{Observed, Observer, OutageNote};
use crate::probe_request::ProbeRequest;
use crate::process::chance;
use crate::retry::{self, FIRST_BACKOFF, Sign, Situation, Verdict};
use crate::wire::{Answer, Bounds, Resend, Transport};
use backread_clock::Elapsed;

/// How often a request that the service did not process is sent again. Some proxies end an HTTP/2
/// connection after a few requests, when many more are on their way.
const MOST_RESENT: u32 = 16;

/// The request to send; displayed as path and query, relative to the base URL.
pub enum Request<'a> {
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

/// Where a call stands.
enum State<'g, T> {
    /// At the gate; after a redirect with the probe that goes on.
    AtGate(Option<Probe<'g>>),
    Sending(Pass<'g>),
    BackingOff(Duration),
    Done(T),
    Failed(ErrorKind),
    /// The deadline has passed, or the wait would pass it.
    Late(Option<Duration>),
}

/// What follows from an attempt.
enum Next<'g> {
    /// The call ends with its outcome.
    End,
    Follow(Option<Probe<'g>>),
    /// It is sent again after this wait, which is no retry.
    Resend(Option<Duration>),
    /// It is retried after this wait, by itself or when the gate opens.
    Retry {
        wait: Duration,
        backs_off: bool,
    },
    Late(Duration),
}

/// What outages are probed with besides the calls themselves.
const USERS: Request<'static> = Request::Read(List::Users.page(0, Limit::SMALLEST));

type Outcome<T> = Result<(u16, Option<T>), Failure>;

struct Call<'a> {
    client: &'a Client,
    request: &'a Request<'a>,
    budget: &'a Budget,
    reservation: Option<Reservation<'a>>,
    attempts: Vec<Attempt>,
    /// Retries that count against the limit: not those in an outage, nor those of requests that the
    /// service did not process.
    retries: u32,
    /// How often the service did not process the request.
    resent: u32,
    resent_after_close: bool,
    redirects: Redirects,
    patience: Patience,
    /// The last failure.
    failure: Option<ErrorKind>,
    wait_began: Instant,
}

impl Client {
    /// Sends a request until its call ends; the only loop that does.
    pub(super) async fn send<T>(
        &self,
        request: &Request<'_>,
        budget: &Budget,
        judge: impl Fn(Answer) -> Result<(u16, T), Failure>,
    ) -> Result<(T, Vec<Attempt>), Error> {
        let (transport, gate) = (self.service.transport()?, self.gate()?);
        let _running = self.call.clock.call();
        let mut call = Call {
            client: self,
            request,
            budget,
            reservation: budget.reserve(),
            attempts: Vec::new(),
            retries: 0,
            resent: 0,
            resent_after_close: false,
            redirects: Redirects::default(),
            patience: Patience::new(self.outage_patience()),
            failure: None,
            wait_began: self.call.clock.now(),
        };
        let mut state = match (self.is_closed(), &call.reservation) {
            (true, _) => State::Failed(ErrorKind::Closed),
            (false, None) => State::Failed(ErrorKind::BudgetSpent),
            (false, Some(_)) => State::AtGate(None),
        };
        loop {
            state = match state {
                State::AtGate(probe) => {
                    let passed = gate.pass(&mut call.patience, budget.end(), probe).await;
                    match passed {
                        Ok(pass) => State::Sending(pass),
                        Err(NotPassed::Closed) => State::Failed(ErrorKind::Closed),
                        Err(NotPassed::Late(wait)) => State::Late(wait),
                    }
                }
                State::Sending(pass) => {
                    let outcome = call.attempt(&transport, &pass, &judge).await;
                    call.judge(pass, outcome)
                }
                State::BackingOff(wait) => {
                    gate.sleep(wait).await;
                    State::AtGate(None)
                }
                State::Done(value) => return Ok((value, call.attempts)),
                State::Failed(kind) => return Err(call.failed(kind)),
                State::Late(wait) => return Err(call.late(wait)),
            }
        }
    }
}

impl Call<'_> {
    /// Sends the request, or the one that the pass probes with.
    async fn attempt<T>(
        &mut self,
        transport: &Transport,
        pass: &Pass<'_>,
        judge: impl Fn(Answer) -> Result<(u16, T), Failure>,
    ) -> Outcome<T> {
        if let Some(reservation) = self.reservation.take() {
            reservation.spend();
        }
        self.client.call.counts.sent.fetch_add(1, Ordering::Relaxed);
        let wall = || self.client.call.clock.wall();
        let exchanged = match pass.is_of_users() {
            true => self.exchange(transport, &USERS).await,
            false => self.exchange(transport, self.request).await,
        };
        let outcome = exchanged.and_then(|mut answer| match answer.moved_to.take() {
            Some(target) => Err(Failure {
                moved_to: Some(target),
                ..status_failure(answer, wall()).into()
            }),
            None if pass.is_of_users() => {
                let status = answer.status;
                let kind = status_failure(answer, wall());
                match retry::sign(&kind) {
                    Sign::Answer => Ok((status, None)),
                    _ => Err(kind.into()),
                }
            }
            None => judge(answer).map(|(status, value)| (status, Some(value))),
        });
        // Redacted here for everything downstream: errors, their attempts, logs.
        outcome.map_err(|failure| {
            let failure = self.redirects.explain(failure);
            let kind = self.client.redactor().redact_kind(failure.kind);
            Failure { kind, ..failure }
        })
    }

    async fn exchange(
        &self,
        transport: &Transport,
        request: &Request<'_>,
    ) -> Result<Answer, Failure> {
        let Client { call, .. } = self.client;
        let timeout = call.options.timeout;
        let left = timeout.map(|timeout| timeout.saturating_sub(self.redirects.took));
        let (limit, by_deadline) = self.budget.attempt_limit(left, &call.clock);
        let bounds = Bounds {
            max_bytes: call.options.max_response_bytes,
            limit,
        };
        let trace = call.observer.as_deref().map_or(&[][..], Observer::trace);
        let target = self.redirects.target.as_ref();
        let get = async {
            match request {
                Request::Read(endpoint) => transport.get(endpoint, target, trace, bounds).await,
                Request::ProbeRequest(request) => {
                    transport.probe(request, target, trace, bounds).await
                }
            }
        };
        match call.clock.exchange(limit, get).await {
            Ok(answer) => Ok(answer?),
            Err(Elapsed) if by_deadline => Err(past_deadline(self.budget, None).into()),
            Err(Elapsed) => Err(ErrorKind::Timeout(timeout.unwrap_or_default()).into()),
        }
    }

    /// Reports an attempt to the gate and the observer, and says what follows.
    fn judge<'g, T>(&mut self, pass: Pass<'g>, mut outcome: Outcome<T>) -> State<'g, T> {
        let now = self.client.call.clock.now();
        let (began, is_of_users) = (pass.sent, pass.is_of_users());
        let began_before = pass.outage_began_before();
        let took = now.duration_since(began);
        let redirects = self.redirects.follow(&mut outcome, took);
        let failure = outcome.as_ref().err().filter(|_| redirects.is_none());
        let attempt = Attempt {
            status: match &outcome {
                Ok((status, _)) => Some(*status),
                Err(failure) => failure.status,
            },
            error: failure.map(|failure| failure.kind.to_string()),
            seconds_taken: took.as_secs_f64(),
            seconds_waited: began.duration_since(self.wait_began).as_secs_f64(),
        };
        let (next, ended) = match (&redirects, &outcome) {
            (Some(_), _) => (Next::Follow(pass.moved(now)), None),
            (None, Ok((_, value))) => {
                self.client.service.answered.note(now);
                let next = if value.is_some() {
                    Next::End
                } else {
                    Next::Resend(None)
                };
                (next, pass.answered(now))
            }
            (None, Err(failure)) => self.failing(pass, failure, now),
        };
        self.redirects = redirects.unwrap_or_default();
        let began_note = began_before.map(|before| OutageNote::Began { before });
        let ended_note = ended.map(|Ended { lasted, .. }| OutageNote::Ended { lasted });
        let wait = match next {
            Next::Retry { wait, .. } => Some(wait),
            Next::End | Next::Follow(_) | Next::Resend(_) | Next::Late(_) => None,
        };
        let notes = began_note.into_iter().chain(ended_note).collect();
        self.observe(is_of_users, &attempt, failure, wait, notes);
        // A probe with another request is no attempt of this call.
        if !is_of_users {
            self.attempts.push(attempt);
            self.wait_began = now;
        }
        let state = match (next, outcome) {
            (Next::End, Ok((_, Some(value)))) => return State::Done(value),
            (Next::End, Err(failure)) => return State::Failed(failure.kind),
            (Next::Follow(probe), _) => State::AtGate(probe),
            (next, outcome) => {
                if let Err(failure) = outcome
                    && !is_of_users
                {
                    self.failure = Some(failure.kind);
                }
                match next {
                    Next::Late(wait) => return State::Late(Some(wait)),
                    Next::Resend(Some(wait))
                    | Next::Retry {
                        wait,
                        backs_off: true,
                    } => State::BackingOff(wait),
                    _ => State::AtGate(None),
                }
            }
        };
        // Reserved before the wait, or a call would wait only to be refused.
        self.reservation = self.budget.reserve();
        match self.reservation {
            Some(_) => state,
            None => State::Failed(ErrorKind::BudgetSpent),
        }
    }

    /// What follows from a failure, which is reported to the gate.
    fn failing<'g>(
        &mut self,
        pass: Pass<'g>,
        failure: &Failure,
        now: Instant,
    ) -> (Next<'g>, Option<Ended>) {
        let is_of_users = pass.is_of_users();
        if !failure.transient {
            let is_answer = failure.status.is_some() || is_of_users;
            let ended = is_answer.then(|| pass.answered(now)).flatten();
            return (
                if is_of_users {
                    Next::Resend(None)
                } else {
                    Next::End
                },
                ended,
            );
        }
        if let Some(wait) = self.resends(failure.resend) {
            return (Next::Resend(wait), None);
        }
        let Client { call, .. } = self.client;
        let is_refused = failure.status == Some(429);
        let max_retries = match call.retries {
            Retries::OfRefusals if !is_refused => 0,
            Retries::OfRefusals | Retries::All => call.options.max_retries,
        };
        let verdict = retry::decide(
            &failure.kind,
            Situation {
                retries_done: if is_of_users { 0 } else { self.retries },
                refused_in_a_row: pass.refused_in_a_row(),
                max_retries,
                on_rate_limit: call.options.on_rate_limit,
                remaining: self.budget.remaining(&call.clock),
                chance: chance(),
            },
        );
        let stated = retry::retry_after(&failure.kind);
        let failed = Failed {
            sign: retry::sign(&failure.kind),
            stated,
            verdict,
        };
        let reported = pass.failed(failed, &mut self.patience, self.budget.end());
        let next = match (reported.hold, verdict) {
            (Hold::TooLong, _) | (Hold::No, Verdict::Retry { .. }) if is_of_users => {
                Next::Resend(None)
            }
            (Hold::TooLong, _) => Next::End,
            (_, Verdict::PastDeadline { wait }) if stated.is_some() => Next::Late(wait),
            (Hold::Outage { next_probe, .. }, _) => Next::Retry {
                wait: next_probe,
                backs_off: false,
            },
            (hold, Verdict::Retry { wait }) => {
                self.retries += u32::from(!is_of_users);
                Next::Retry {
                    wait,
                    backs_off: hold == Hold::No,
                }
            }
            (_, Verdict::PastDeadline { wait }) => Next::Late(wait),
            (_, Verdict::GiveUp) => Next::End,
        };
        (next, reported.ended)
    }

    /// Whether to send a request again that was not processed, which is no retry; and after which wait.
    fn resends(&mut self, resend: Resend) -> Option<Option<Duration>> {
        match resend {
            Resend::Never => None,
            Resend::Once => {
                (!std::mem::replace(&mut self.resent_after_close, true)).then_some(None)
            }
            Resend::NotProcessed => {
                self.resent += 1;
                let waits = self.resent > 1;
                let wait = waits.then(|| FIRST_BACKOFF.mul_f64(chance()));
                (self.resent <= MOST_RESENT).then_some(wait)
            }
        }
    }

    fn observe(
        &self,
        is_of_users: bool,
        attempt: &Attempt,
        failure: Option<&Failure>,
        again_in: Option<Duration>,
        outages: Vec<OutageNote>,
    ) {
        let Some(observer) = &self.client.call.observer else {
            return;
        };
        let taken = Duration::try_from_secs_f64(attempt.seconds_taken).unwrap_or_default();
        let now = self.client.call.clock.wall();
        let (request, number) = match is_of_users {
            true => (&USERS, 1),
            false => (self.request, self.attempts.len() + 1),
        };
        observer.put(Observed {
            request: request.to_string(),
            number,
            status: attempt.status,
            error: failure
                .map(|failure| &failure.kind)
                .filter(|kind| !matches!(kind, ErrorKind::Status(_)))
                .cloned(),
            began: now.checked_sub(taken).unwrap_or(now),
            seconds_taken: attempt.seconds_taken,
            seconds_waited: attempt.seconds_waited,
            again_in,
            outages,
        });
    }

    fn error(&self, kind: ErrorKind) -> Error {
        let url = self.client.redactor().url(self.request);
        Error::new(kind).during(url, self.attempts.clone())
    }

    fn failed(&self, kind: ErrorKind) -> Error {
        let is_over = self.patience.is_over(self.client.call.clock.now());
        let outlasted = is_over && retry::is_transient(&kind);
        let error = self.error(kind);
        match outlasted {
            true => error.after_patience(self.patience.most),
            false => error,
        }
    }

    /// The failure being retried is the cause.
    fn late(&self, wait: Option<Duration>) -> Error {
        let error = self.error(past_deadline(self.budget, wait));
        match &self.failure {
            Some(failure) => error.because(self.error(failure.clone())),
            None => error,
        }
    }
}
