//! How a request is sent: admission, attempt, verdict, wait.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Client;
use super::failure::{Failure, past_deadline};
use crate::clock::Elapsed;
use crate::core::budget::Budget;
use crate::core::error::{Attempt, Error, ErrorKind};
use crate::core::interface::Endpoint;
use crate::core::observer::Observer;
use crate::core::pace::RefusedBy;
use crate::core::process::chance;
use crate::core::question::Question;
use crate::core::retry::{self, Load, Situation, Verdict};
use crate::core::transport::{Answer, Transport};

// How long all are held back at most by a refusal that says nothing of a wait.
const LONGEST_UNTOLD_HOLD: Duration = Duration::from_secs(1);

/// What is sent; its display is path and query, relative to the base URL.
pub(super) enum Request<'a> {
    Read(Endpoint),
    Question(&'a Question),
}

impl fmt::Display for Request<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(endpoint) => endpoint.fmt(formatter),
            Self::Question(question) => question.fmt(formatter),
        }
    }
}

impl Client {
    /// The one loop that sends requests: admission, attempt, verdict, wait.
    pub(super) async fn send<T>(
        &self,
        request: &Request<'_>,
        budget: &Budget,
        judge: impl Fn(Answer) -> Result<(u16, T), Failure>,
    ) -> Result<(T, Vec<Attempt>), Error> {
        let mut attempts = Vec::new();
        let fail = |kind: ErrorKind, attempts: &Vec<Attempt>| {
            Error::new(kind).during(request.to_string(), attempts.clone())
        };
        let (transport, pace) = (self.transport()?, self.pace()?);
        let clock = &self.clock;
        let _call = clock.call();
        let mut wait_began = clock.now();
        loop {
            // Each time: a client may be closed while its calls wait.
            if self.is_closed() {
                return Err(fail(ErrorKind::Closed, &attempts));
            }
            let admission = pace.admit(budget.remaining(&self.clock)).await;
            let place =
                admission.map_err(|wait| fail(past_deadline(budget, Some(wait)), &attempts))?;
            let began = place.sent();
            let seconds_waited = began.duration_since(wait_began).as_secs_f64();
            self.sent.fetch_add(1, Ordering::Relaxed);
            let outcome = self.attempt(&transport, request, budget, &judge).await;
            let ended = clock.now();
            let failure = outcome.as_ref().err();
            attempts.push(Attempt {
                status: match (&outcome, failure) {
                    (Ok((status, _)), _) => Some(*status),
                    (_, Some(failure)) => failure.status,
                    _ => None,
                },
                error: failure.map(|failure| failure.kind.to_string()),
                seconds_taken: ended.duration_since(began).as_secs_f64(),
                seconds_waited,
            });
            let failure = match outcome {
                Ok((_, value)) => {
                    place.answered(ended);
                    self.observe(request, &attempts, None, None);
                    return Ok((value, attempts));
                }
                Err(failure) => failure,
            };
            if !failure.transient {
                if failure.status.is_some() {
                    place.answered(ended);
                }
                self.observe(request, &attempts, Some(&failure.kind), None);
                return Err(fail(failure.kind, &attempts));
            }
            let verdict = retry::decide(
                &failure.kind,
                Situation {
                    retries_done: attempts
                        .len()
                        .saturating_sub(1)
                        .try_into()
                        .unwrap_or(u32::MAX),
                    max_retries: self.options.max_retries,
                    on_rate_limit: self.options.on_rate_limit,
                    remaining: budget.remaining(&self.clock),
                    chance: chance(),
                },
            );
            // The pace is told before the place is given back, or the next in line would slip through.
            let held = match (retry::load(&failure.kind), verdict) {
                (Load::Refused { by, asked: Some(_) }, Verdict::Retry { wait }) => {
                    clock.record(wait);
                    place.refused(by, wait, true);
                    true
                }
                // What was not asked for is this call's wait, and not everybody's.
                (Load::Refused { by, asked: None }, Verdict::Retry { wait }) => {
                    place.refused(by, wait.min(LONGEST_UNTOLD_HOLD), false);
                    false
                }
                // Given up, but it says as much of the service.
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
                (Load::Unknown, _) => {
                    drop(place);
                    false
                }
                (Load::Over | Load::Refused { .. }, _) => {
                    place.overloaded();
                    false
                }
            };
            let again_in = match verdict {
                Verdict::Retry { wait } => Some(wait),
                Verdict::GiveUp | Verdict::PastDeadline { .. } => None,
            };
            self.observe(request, &attempts, Some(&failure.kind), again_in);
            match verdict {
                Verdict::GiveUp => return Err(fail(failure.kind, &attempts)),
                Verdict::PastDeadline { wait } => {
                    let cause = fail(failure.kind, &attempts);
                    return Err(fail(past_deadline(budget, Some(wait)), &attempts).because(cause));
                }
                Verdict::Retry { wait } => {
                    wait_began = clock.now();
                    if !held {
                        clock.sleep(wait).await;
                    }
                }
            }
        }
    }

    async fn attempt<T>(
        &self,
        transport: &Transport,
        request: &Request<'_>,
        budget: &Budget,
        judge: impl Fn(Answer) -> Result<(u16, T), Failure>,
    ) -> Result<(u16, T), Failure> {
        let most = self.options.max_response_bytes;
        let trace = self.observer.as_deref().map_or(&[][..], Observer::trace);
        let get = async {
            match request {
                Request::Read(endpoint) => transport.get(endpoint, trace, most).await,
                Request::Question(question) => transport.ask(question, trace, most).await,
            }
        };
        let (limit, by_deadline) = budget.attempt_limit(self.options.timeout, &self.clock);
        let answer = match self.clock.exchange(limit, get).await {
            Ok(answer) => answer,
            Err(Elapsed) if by_deadline => Err(past_deadline(budget, None)),
            Err(Elapsed) => Err(ErrorKind::Timeout(limit.unwrap_or_default())),
        }
        .map_err(Failure::from)?;
        judge(answer)
    }
}
