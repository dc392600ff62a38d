//! One call: a request with all its attempts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::Client;
use super::failure::{Failure, Redirects, past_deadline, status_failure};
use super::gate::{Failed, Hold, NotAdmitted, Pass, Patience};
use crate::api::{Limit, List, Request};
use crate::budget::{Budget, Reservation};
use crate::error::{Attempt, Error, ErrorKind};
use crate::observer::{Observed, Observer, OutageNote};
use crate::process::chance;
use crate::retry::{self, FIRST_BACKOFF, Sign, Situation, Verdict};
use crate::wire::{Answer, Bounds, Resend, Transport};
use backread_clock::Elapsed;

/// How often an unprocessed request is resent. Some proxies close an HTTP/2 connection after a few
/// requests while many are in flight.
const MOST_RESENT: u32 = 16;

/// Where a call stands.
enum Step<'g, T> {
    AtGate,
    /// At the gate again, to follow a redirect.
    Moved(Pass<'g>),
    Sending(Pass<'g>),
    BackingOff(Duration),
    Done(T),
    Failed(ErrorKind),
    /// The deadline has passed, or the wait would pass it.
    Late(Option<Duration>),
}

/// The request of every second probe.
const USERS: Request = Request::Read(List::Users.page(0, Limit::SMALLEST));

type Outcome<T> = Result<(u16, Option<T>), Failure>;

struct Call<'a> {
    client: &'a Client,
    request: &'a Request,
    budget: &'a Budget,
    reservation: Option<Reservation<'a>>,
    attempts: Vec<Attempt>,
    /// Retries that count against `max_retries`. Waits for an outage and resends do not.
    retries: u32,
    /// The call has waited for an outage.
    was_held: bool,
    /// Resends of requests that the service did not process.
    resent: u32,
    resent_after_close: bool,
    redirects: Redirects,
    patience: Patience,
    /// The last failure.
    failure: Option<ErrorKind>,
    wait_began: Instant,
}

impl Client {
    /// Sends a request, with its retries. This is the only loop that sends.
    pub(super) async fn send<T>(
        &self,
        request: &Request,
        budget: &Budget,
        judge: impl Fn(Answer) -> Result<(u16, T), Failure>,
    ) -> Result<(T, Vec<Attempt>), Error> {
        let (transport, gate) = (self.service.transport()?, self.gate()?);
        let _running = self.call.clock.call();
        let mut call = Call {
            client: self,
            request,
            budget,
            reservation: None,
            attempts: Vec::new(),
            retries: 0,
            was_held: false,
            resent: 0,
            resent_after_close: false,
            redirects: Redirects::default(),
            patience: Patience::new(budget.end(), self.outage_patience()),
            failure: None,
            wait_began: self.call.clock.now(),
        };
        let mut step = Step::AtGate;
        loop {
            let is_sent_again = matches!(step, Step::AtGate | Step::BackingOff(_) | Step::Moved(_));
            if is_sent_again && let Some(kind) = call.reserve() {
                step = Step::Failed(kind);
            }
            step = match step {
                Step::AtGate => match gate.pass(&mut call.patience).await {
                    Ok(pass) => Step::Sending(pass),
                    Err(NotAdmitted(wait)) => Step::Late(wait),
                },
                Step::Moved(mut pass) => match pass.again(budget.end()).await {
                    Ok(()) => Step::Sending(pass),
                    Err(NotAdmitted(wait)) => Step::Late(wait),
                },
                Step::Sending(pass) => {
                    let outcome = call.attempt(&transport, &pass, &judge).await;
                    call.judge(pass, outcome)
                }
                Step::BackingOff(wait) => {
                    gate.sleep(wait).await;
                    Step::AtGate
                }
                Step::Done(value) => return Ok((value, call.attempts)),
                Step::Failed(kind) => return Err(call.failed(kind)),
                // Closing a client wakes its waiting calls.
                Step::Late(_) if self.is_closed() => return Err(call.failed(ErrorKind::Closed)),
                Step::Late(wait) => return Err(call.late(wait)),
            }
        }
    }
}

impl Call<'_> {
    /// Sends the call's request or, for every second probe, that for users.
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
        let request = if pass.is_for_users() {
            &USERS
        } else {
            self.request
        };
        let exchanged = self.exchange(transport, request).await;
        let outcome = exchanged.and_then(|mut answer| match answer.moved_to.take() {
            Some(target) => Err(Failure {
                moved_to: Some(target),
                ..status_failure(answer, wall()).into()
            }),
            None if pass.is_for_users() => {
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

    async fn exchange(&self, transport: &Transport, request: &Request) -> Result<Answer, Failure> {
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
        let get = transport.get(request, target, trace, bounds);
        match call.clock.exchange(limit, get).await {
            Ok(answer) => Ok(answer?),
            Err(Elapsed) if by_deadline => Err(past_deadline(self.budget, None).into()),
            Err(Elapsed) => Err(ErrorKind::Timeout(timeout.unwrap_or_default()).into()),
        }
    }

    /// Reserves the next request before the wait. Otherwise a call could wait and then find the budget
    /// spent.
    fn reserve(&mut self) -> Option<ErrorKind> {
        if self.client.is_closed() {
            return Some(ErrorKind::Closed);
        }
        self.reservation = self.reservation.take().or_else(|| self.budget.reserve());
        self.reservation.is_none().then_some(ErrorKind::BudgetSpent)
    }

    /// Reports an attempt to the gate and the observer, and returns the next step.
    fn judge<'g, T>(&mut self, mut pass: Pass<'g>, mut outcome: Outcome<T>) -> Step<'g, T> {
        let now = self.client.call.clock.now();
        let (began, is_for_users) = (pass.sent, pass.is_for_users());
        let outage = pass.take_outage_delay();
        let took = now.duration_since(began);
        let redirects = self.redirects.follow(&mut outcome, took);
        let mut attempt = Attempt {
            status: match &outcome {
                Ok((status, _)) => Some(*status),
                Err(failure) => failure.status,
            },
            error: None,
            seconds_taken: took.as_secs_f64(),
            seconds_waited: began.duration_since(self.wait_began).as_secs_f64(),
        };
        let mut failure = None;
        let (step, again_in, ended) = match (outcome, &redirects) {
            (_, Some(_)) => (Step::Moved(pass), None, None),
            (Ok((_, Some(value))), None) => (Step::Done(value), None, pass.answered(now)),
            (Ok((_, None)), None) => (Step::AtGate, None, pass.answered(now)),
            (Err(failed), None) => {
                attempt.error = Some(failed.kind.to_string());
                let follows = self.failing(pass, &failed, now);
                failure = Some(failed.kind);
                follows
            }
        };
        self.redirects = redirects.unwrap_or_default();
        let began = outage.map(|before| OutageNote::Began { before });
        let ended = ended.map(|lasted| OutageNote::Ended { lasted });
        let outages = began.into_iter().chain(ended).collect();
        self.observe(is_for_users, &attempt, failure.as_ref(), again_in, outages);
        // A probe for users is not an attempt of this call.
        if !is_for_users {
            self.attempts.push(attempt);
            self.wait_began = now;
            self.failure = failure.or(self.failure.take());
        }
        step
    }

    /// Reports a failure to the gate. Returns the next step, the wait before a retry, and the length of
    /// the outage that it ended.
    fn failing<'g, T>(
        &mut self,
        pass: Pass<'g>,
        failure: &Failure,
        now: Instant,
    ) -> (Step<'g, T>, Option<Duration>, Option<Duration>) {
        let is_for_users = pass.is_for_users();
        let fails = || Step::Failed(failure.kind.clone());
        if !failure.transient {
            // A page that exceeds the size limit was answered.
            let is_too_large = matches!(failure.kind, ErrorKind::ResponseTooLarge { .. });
            let is_answer = failure.status.is_some() || is_for_users && is_too_large;
            let ended = is_answer.then(|| pass.answered(now)).flatten();
            let step = if is_for_users { Step::AtGate } else { fails() };
            return (step, None, ended);
        }
        if let Some(wait) = self.resends(failure.resend) {
            return (wait.map_or(Step::AtGate, Step::BackingOff), None, None);
        }
        let call = &self.client.call;
        let once = call.refusals_alone && failure.status != Some(429);
        let verdict = retry::decide(
            &failure.kind,
            Situation {
                retries_done: if is_for_users { 0 } else { self.retries },
                max_retries: if once { 0 } else { call.options.max_retries },
                is_known: self.client.service.answered.load().is_some(),
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
        let (hold, ended) = pass.failed(failed, &mut self.patience);
        let retries = u32::from(!is_for_users);
        let is_stated_late = stated.is_some() && matches!(verdict, Verdict::PastDeadline { .. });
        let (step, again_in) = match (hold, verdict) {
            (Hold::TooLong | Hold::No, _) if is_for_users => (Step::AtGate, None),
            (Hold::TooLong, _) | (Hold::No, Verdict::GiveUp) => (fails(), None),
            (Hold::Outage(wait), _) if !is_stated_late => {
                // Retries spent before the outage was detected do not count. Once, so that a call to a
                // URL that always fails ends.
                if !std::mem::replace(&mut self.was_held, true) {
                    self.retries = 0;
                }
                (Step::AtGate, Some(wait))
            }
            (_, Verdict::PastDeadline { wait }) => (Step::Late(Some(wait)), None),
            (Hold::Closed(wait) | Hold::Outage(wait), _) => {
                self.retries += retries;
                (Step::AtGate, Some(wait))
            }
            (Hold::No, Verdict::Retry { wait }) => {
                self.retries += retries;
                (Step::BackingOff(wait), Some(wait))
            }
        };
        (step, again_in, ended)
    }

    /// Whether to resend an unprocessed request, which is not a retry, and after which wait.
    fn resends(&mut self, resend: Resend) -> Option<Option<Duration>> {
        match resend {
            Resend::Never => None,
            Resend::Once => {
                (!std::mem::replace(&mut self.resent_after_close, true)).then_some(None)
            }
            Resend::NotProcessed => {
                self.resent += 1;
                // The first two are immediate.
                let waits = self.resent > 2;
                let wait = waits.then(|| FIRST_BACKOFF.mul_f64(chance()));
                (self.resent <= MOST_RESENT).then_some(wait)
            }
        }
    }

    fn observe(
        &self,
        is_for_users: bool,
        attempt: &Attempt,
        failure: Option<&ErrorKind>,
        again_in: Option<Duration>,
        outages: Vec<OutageNote>,
    ) {
        let Some(observer) = &self.client.call.observer else {
            return;
        };
        let taken = Duration::try_from_secs_f64(attempt.seconds_taken).unwrap_or_default();
        let wall = self.client.call.clock.wall();
        let request = if is_for_users { &USERS } else { self.request };
        observer.put(Observed {
            request: request.to_string(),
            number: if is_for_users {
                1
            } else {
                self.attempts.len() + 1
            },
            status: attempt.status,
            error: failure
                .filter(|kind| !matches!(kind, ErrorKind::Status(_)))
                .cloned(),
            began: wall.checked_sub(taken).unwrap_or(wall),
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
        if outlasted {
            error.after_patience(self.patience.most)
        } else {
            error
        }
    }

    /// The last failure is the cause.
    fn late(&self, wait: Option<Duration>) -> Error {
        let error = self.error(past_deadline(self.budget, wait));
        match &self.failure {
            Some(failure) => error.because(self.error(failure.clone())),
            None => error,
        }
    }
}
