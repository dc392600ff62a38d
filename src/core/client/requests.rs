//! Requests that only the probe sends.

use std::sync::Arc;

use super::Client;
use super::failure::{Failure, decode_failure, status_failure, unreadable};
use super::sending::Request;
use crate::budget::Budget;
use crate::decode::json::{self, Fault, Text};
use crate::decode::page::Page;
use crate::error::{Attempt, Error};
use crate::probe_request::ProbeRequest;
use crate::wire::Answer;

impl Answer {
    pub fn text(&self) -> Text {
        Text::repair(self.body.clone(), self.headers.get("content-type"))
    }
}

impl Client {
    /// Sends one request of the probe. For requests outside the interface, any status is an answer.
    /// A 429 is obeyed, and transient failures that any read might meet are retried. `heard` is
    /// called with every response, including those that are not returned.
    pub async fn probe(
        &self,
        request: &ProbeRequest,
        budget: &Budget,
        heard: impl Fn(&Answer) + Sync,
    ) -> Result<(Answer, Vec<Attempt>), Error> {
        let judge = |answer: Answer| {
            heard(&answer);
            let allowed = request.is_allowed();
            let refused = match answer.status {
                429 => true,
                408 | 500..=599 => allowed,
                _ => false,
            };
            if refused {
                return Err(Failure::from(status_failure(answer, self.clock.wall())));
            }
            if answer.status == 200 && allowed && request.is_plain() {
                let text = answer.text();
                let start = answer.body.first_chunk().copied();
                json::check(&text.json)
                    .map_err(|fault| unreadable(answer.status, &answer.headers, start, fault))?;
                self.note_repaired(text.repaired);
            }
            Ok((answer.status, answer))
        };
        self.send(&Request::ProbeRequest(request), budget, judge)
            .await
    }

    /// The error for a response to the probe that should have been a page of a list, and is not.
    pub fn no_page(&self, request: &ProbeRequest, answer: Answer, attempts: Vec<Attempt>) -> Error {
        let kind = match (answer.status, request.page()) {
            (200..300, Some((list, _))) => {
                let text = answer.text();
                let json = Arc::clone(&text.json);
                let page = Page::read(text, list.resource());
                let fault = page.err();
                let fault = fault.unwrap_or_else(|| Fault::new("$", "not a page", &json));
                decode_failure(fault)
            }
            _ => status_failure(answer, self.clock.wall()),
        };
        let redactor = self.redactor();
        Error::new(redactor.redact_kind(kind)).during(redactor.url(request), attempts)
    }
}
