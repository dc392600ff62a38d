//! One call: what it may spend, what it met, and how it waits.

use std::time::Duration;

use tokio::time::Instant;

use super::Request;
use super::redirects::Redirects;
use crate::budget::Budget;
use crate::client::Client;
use crate::client::failure::{Failure, past_deadline};
use crate::error::{Attempt, Error, ErrorKind};
use crate::outage::{self, Down, Outages, Pass, Patience};
use crate::pace::{Admission, InARow, Pace};
use crate::process::chance;
use crate::retry::{self, Situation, Verdict};
use crate::wire::Resend;

// How often a request that the service did not process is sent again. Some proxies end an HTTP/2
// connection after a few requests, when many more are on their way.
const MOST_RESENT: u32 = 16;

/// A call: one request with all its attempts.
pub(super) struct Call<'a> {
    pub(super) client: &'a Client,
    pub(super) request: &'a Request<'a>,
    pub(super) budget: &'a Budget,
    pub(super) attempts: Vec<Attempt>,
    /// Retries that count against the limit: not those in an outage, nor those of requests that the
    /// service did not process.
    pub(super) retries: u32,
    /// The 429s without a stated wait in a row when this call got its first one.
    pub(super) first_refused: Option<InARow>,
    /// How often the service did not process the request.
    pub(super) resent: u32,
    pub(super) resent_after_close: bool,
    pub(super) redirects: Redirects,
    pub(super) patience: Patience,
    /// The last failure, while the call waits to retry.
    pub(super) failure: Option<ErrorKind>,
    pub(super) wait_began: Instant,
}

/// What to do after an attempt that failed and may be retried.
pub(super) struct Next {
    pub(super) verdict: Verdict,
    /// The verdict if there were no outage.
    pub(super) usual: Verdict,
    pub(super) down: Option<Down>,
}

impl Call<'_> {
    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        let url = self.client.redactor().url(self.request);
        Error::new(kind).during(url, self.attempts.clone())
    }

    /// The deadline has passed, or the wait would pass it; the failure being retried is the cause.
    pub(super) fn out_of_time(&self, wait: Option<Duration>) -> Error {
        let error = self.error(past_deadline(self.budget, wait));
        match &self.failure {
            Some(failure) => error.because(self.error(failure.clone())),
            None => error,
        }
    }

    pub(super) fn given_up(&self, kind: ErrorKind) -> Error {
        let error = self.error(kind);
        match self.patience.over(self.client.clock.now()) {
            Some(patience) => error.after_patience(patience),
            None => error,
        }
    }

    /// Whether to send the request again at once, which is not a retry.
    pub(super) fn resends(&mut self, resend: Resend) -> bool {
        match resend {
            Resend::Never => false,
            Resend::Once => !std::mem::replace(&mut self.resent_after_close, true),
            Resend::NotProcessed => {
                self.resent += 1;
                self.resent <= MOST_RESENT
            }
        }
    }

    pub(super) fn waits_for_outages(&self) -> bool {
        !self.patience.is_none()
    }

    /// Waits while there is an outage, unless this call is to probe.
    pub(super) async fn pass<'o>(&mut self, outages: &'o Outages) -> Result<Pass<'o>, Error> {
        if !self.waits_for_outages() {
            return Ok(Pass::Open);
        }
        let passed = outages.pass(&mut self.patience, self.budget.end()).await;
        passed.map_err(|late| self.out_of_time(late.wait))
    }

    /// Waits for this call's turn; an outage may begin meanwhile.
    pub(super) async fn turn<'t>(
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

    /// How many of these refusals in a row came after the one that this call got first.
    fn refused_since(&mut self, in_a_row: InARow) -> u32 {
        let first = self.first_refused.insert(
            self.first_refused
                .filter(|first| first.since == in_a_row.since)
                .unwrap_or(in_a_row),
        );
        in_a_row.count.saturating_sub(first.count)
    }

    /// Decides what to do after a transient failure.
    pub(super) fn decide(
        &mut self,
        failure: &Failure,
        number: u64,
        in_a_row: InARow,
        pass: Pass<'_>,
        outages: &Outages,
    ) -> Next {
        let Client { options, clock, .. } = self.client;
        let once = self.client.retries_refusals_alone && failure.status != Some(429);
        let refused_since = match retry::is_unstated_refusal(&failure.kind) {
            true => self.refused_since(in_a_row),
            false => 0,
        };
        let usual = retry::decide(
            &failure.kind,
            Situation {
                retries_done: self.retries,
                refused_since,
                waits_refused: in_a_row.count - 1,
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
    pub(super) async fn wait<'o>(
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
