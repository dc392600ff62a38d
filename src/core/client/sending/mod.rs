//! How a request is sent: admission, attempt, verdict, wait.

mod call;
mod elsewhere;
mod redirects;

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use self::call::Call;
use self::redirects::Redirects;
use super::Client;
use super::failure::{Failure, past_deadline, status_failure};
use crate::api::Endpoint;
use crate::budget::Budget;
use crate::error::{Attempt, Error, ErrorKind};
use crate::observer::{Observer, OutageNote};
use crate::outage::{self, Outages, Patience};
use crate::pace::{Pace, RefusedBy};
use crate::probe_request::ProbeRequest;
use crate::process::chance;
use crate::retry::{self, Load, Verdict};
use crate::wire::{Answer, Bounds, Failed, Transport};
use backread_clock::Elapsed;

// The longest that a refusal without a Retry-After holds back all requests.
const LONGEST_UNSTATED_HOLD: Duration = Duration::from_secs(1);
// The first resends of a request that the service did not process are sent at once, later ones after a
// random wait of up to `LONGEST_RESEND_WAIT`.
const RESENT_AT_ONCE: u32 = 2;
const LONGEST_RESEND_WAIT: Duration = Duration::from_millis(100);

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
            first_refused: None,
            resent: 0,
            resent_after_close: false,
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
            let (mut pass, place) = call.turn(pass, &outages, &pace).await?;
            if pass.probes_elsewhere() {
                passed = call
                    .probe_elsewhere(pass, place, &transport, &outages, &pace)
                    .await?;
                continue;
            }
            let began = place.sent();
            let seconds_waited = began.duration_since(call.wait_began).as_secs_f64();
            let mut notes = pass.notes();
            reservation.spend();
            self.sent.fetch_add(1, Ordering::Relaxed);
            let number = outages.send();
            let redirects = std::mem::take(&mut call.redirects);
            let attempt = self.attempt(&transport, request, &redirects, budget, &judge);
            let mut outcome = attempt.await;
            let ended = clock.now();
            call.wait_began = ended;
            let took = ended.duration_since(began);
            let moved = redirects.follow(&mut outcome, took);
            let failure = outcome.as_ref().err();
            let status = match &outcome {
                Ok((status, _)) => Some(*status),
                Err(failure) => failure.status,
            };
            call.attempts.push(Attempt {
                status,
                error: failure
                    .filter(|_| moved.is_none())
                    .map(|failure| failure.kind.to_string()),
                seconds_taken: took.as_secs_f64(),
                seconds_waited,
            });
            if let Some(redirects) = moved {
                place.answered(ended);
                self.observe(request, &call.attempts, None, None, notes);
                call.redirects = redirects;
                reservation = budget.reserve().ok_or_else(|| spent(&call))?;
                passed = Some(pass);
                continue;
            }
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
            if failure.transient && call.resends(failure.resend) {
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
            let in_a_row = place.refused_in_a_row();
            let next = call.decide(&failure, number, in_a_row, pass, &outages);
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
                // requests, unless all are refused.
                (Load::Refused { by, wait: None }, Verdict::Retry { wait }) => {
                    let of_all = by == RefusedBy::TooManyRequests
                        && in_a_row.count > 1
                        && !retry::is_exhausted(in_a_row.count);
                    let hold = match of_all {
                        true => wait,
                        false => wait.min(LONGEST_UNSTATED_HOLD),
                    };
                    place.refused(by, hold, false);
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
                (Load::Refused { wait: None, .. }, _) => {
                    place.gave_up(retry::is_exhausted(in_a_row.count));
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
        let outcome = outcome.map_err(|failure| redirects.explain(failure));
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
