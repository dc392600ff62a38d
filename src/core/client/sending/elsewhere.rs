//! Probing with another request: if a call's own request failed as a probe, the next probe asks for
//! the smallest page of users. If that is answered, the service is up and only the call's own URL
//! fails.

use std::sync::atomic::Ordering;

use super::{Call, Redirects, Request, end_outage};
use crate::api::{Limit, List};
use crate::client::failure::status_failure;
use crate::error::{Attempt, Error, ErrorKind};
use crate::outage::{self, Outages, Pass};
use crate::pace::{Admission, Pace};
use crate::retry::{self, Load, OnRateLimit};
use crate::wire::{Answer, Transport};

impl Call<'_> {
    /// Sends that probe, then waits for the call's next attempt. The call may already have its
    /// pass.
    pub(super) async fn probe_elsewhere<'o>(
        &mut self,
        pass: Pass<'o>,
        place: Admission<'o>,
        transport: &Transport,
        outages: &'o Outages,
        pace: &Pace,
    ) -> Result<Option<Pass<'o>>, Error> {
        let (client, clock) = (self.client, &self.client.clock);
        let request = Request::Read(List::Users.page(0, Limit::SMALLEST));
        let judge = |answer: Answer| {
            let status = answer.status;
            let kind = status_failure(answer, clock.wall());
            match outage::is_of_outage(status) {
                true => Err(kind.into()),
                false => Ok((status, retry::load(&kind))),
            }
        };
        let mut place = place;
        let mut redirects = Redirects::default();
        // What a redirect says of the service is said by where it leads.
        let (outcome, number, began, ended) = loop {
            let Some(reservation) = self.budget.reserve() else {
                return Err(self.error(ErrorKind::BudgetSpent));
            };
            reservation.spend();
            let began = place.sent();
            client.sent.fetch_add(1, Ordering::Relaxed);
            let number = outages.send();
            let attempt = client.attempt(transport, &request, &redirects, self.budget, judge);
            let mut outcome = attempt.await;
            let ended = clock.now();
            match redirects.follow(&mut outcome, ended.duration_since(began)) {
                Some(next) => redirects = next,
                None => break (outcome, number, began, ended),
            }
            place.answered(ended);
            let admission = pace.admit_alone(self.budget.remaining(clock)).await;
            place = admission.map_err(|wait| self.out_of_time(Some(wait)))?;
        };
        let (status, load, failure) = match outcome {
            Ok((status, load)) => (Some(status), load, None),
            // The response exceeds the size limit, but it shows that the service is up.
            Err(failure) if matches!(failure.kind, ErrorKind::ResponseTooLarge { .. }) => {
                (Some(200), Load::Unknown, None)
            }
            Err(failure) => (failure.status, Load::Unknown, Some(failure)),
        };
        let notes = end_outage(status, number, outages, pace);
        let down = failure.as_ref().and_then(|failure| {
            let failed = outage::Failed {
                number,
                retry_after: retry::retry_after(&failure.kind),
                may_be_too_fast: false,
                is_last: false,
            };
            outages.fail(failed, pass, &mut self.patience)
        });
        match load {
            _ if failure.is_some() => drop(place),
            Load::Refused {
                by,
                wait: Some(wait),
            } if client.options.on_rate_limit == OnRateLimit::Wait => {
                clock.record(wait);
                place.refused(by, wait, true);
            }
            Load::Refused { .. } => place.overloaded(),
            Load::Over | Load::Unknown => place.answered(ended),
        }
        let attempt = Attempt {
            status,
            error: failure.as_ref().map(|failure| failure.kind.to_string()),
            seconds_taken: ended.duration_since(began).as_secs_f64(),
            seconds_waited: began.duration_since(self.wait_began).as_secs_f64(),
        };
        client.observe(
            &request,
            &[attempt],
            failure.as_ref().map(|failure| &failure.kind),
            down.map(|down| down.next_probe),
            notes.into_iter().collect(),
        );
        match down {
            None => Ok(None),
            Some(down) => {
                if down.scheduled {
                    clock.record(down.next_probe);
                }
                self.pass(outages).await.map(Some)
            }
        }
    }
}
