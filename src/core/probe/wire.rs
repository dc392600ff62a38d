//! How the service refuses requests, and how it uses HTTP.

use std::collections::BTreeMap;

use super::Probe;
use super::fields::is_word;
use super::probe_client::{Listed, unmeasured};
use super::profile::{AnswerProfile, Http, Refusals};
use super::user_sample::{Sampled, requestable_id};
use crate::api::{Endpoint, List, Natural};
use crate::error::Error;
use crate::probe_request::{ProbeRequest, Target, Twist};

// The largest id that can be requested from a service with 32-bit ids.
const LARGEST_SMALL_ID: u64 = i32::MAX as u64;
const LONGEST_CODING: usize = 16;

impl Probe {
    pub(super) async fn refusals(
        &mut self,
        pages: &[Listed],
        sample: &[Sampled],
    ) -> Result<Refusals, Error> {
        let users = pages
            .iter()
            .flat_map(|page| &page.rows)
            .filter_map(requestable_id);
        let unknown_user = unknown(users);
        let messages = sample
            .iter()
            .flat_map(Sampled::messages)
            .filter_map(requestable_id);
        let unknown_message = unknown(messages);
        let first = Target::Read(List::Users.page(0, self.limit));
        let made_up = format!("backread-probe-{:016x}", fastrand::u64(..));
        let no_such_user = Endpoint::User {
            user_id: unknown_user,
        };
        let not_theirs = List::Messages {
            user_id: unknown_user,
        }
        .page(0, self.limit);
        let no_such_message = sample.first().map(|each| Endpoint::Message {
            user_id: each.user_id,
            message_id: unknown_message,
        });
        let request_with = |twist| ProbeRequest {
            target: first,
            twist,
        };
        Ok(Refusals {
            wrong_secret: self
                .refusal("wrong_secret", request_with(Twist::MadeUpSecret(made_up)))
                .await?,
            other_accept: self
                .refusal("other_accept", request_with(Twist::OtherAccept))
                .await?,
            unknown_user: self
                .refusal("unknown_user", ProbeRequest::plain(no_such_user))
                .await?,
            messages_of_unknown_user: self
                .refusal("messages_of_unknown_user", ProbeRequest::plain(not_theirs))
                .await?,
            unknown_message: match no_such_message {
                Some(endpoint) => {
                    self.refusal("unknown_message", ProbeRequest::plain(endpoint))
                        .await?
                }
                None => self.note("refusals.unknown_message", unmeasured("no user was read"))?,
            },
        })
    }

    async fn refusal(
        &mut self,
        name: &str,
        request: ProbeRequest,
    ) -> Result<Option<AnswerProfile>, Error> {
        let sent = self.probe_client.send(&request).await;
        let reply = self.note(&format!("refusals.{name}"), sent)?;
        Ok(reply.map(|reply| reply.profile()))
    }

    /// What the headers of a page say, and whether it obeys conditional requests.
    pub(super) async fn http(&mut self) -> Result<Http, Error> {
        let target = Target::Read(List::Users.page(0, self.limit));
        let request_with = |twist| ProbeRequest { target, twist };
        let encoded = self
            .probe_client
            .send(&request_with(Twist::Undecoded))
            .await;
        let encoded = self.note("http.compression", encoded)?;
        let compression = encoded.map(|reply| {
            let coding = reply
                .answer
                .headers
                .get("content-encoding")
                .unwrap_or("none");
            match is_word(coding, LONGEST_CODING) {
                true => coding.to_ascii_lowercase(),
                false => "(other)".to_owned(),
            }
        });
        let plain = self.probe_client.send(&request_with(Twist::Plain)).await;
        let plain = self.note("http.validators", plain)?;
        let of_page = |name: &str| plain.as_ref()?.answer.headers.get(name).map(str::to_owned);
        let (tag, date) = (of_page("etag"), of_page("last-modified"));
        let validators = plain.as_ref().map(|_| {
            let named = [("etag", &tag), ("last-modified", &date)];
            let sent = named.iter().filter(|(_, value)| value.is_some());
            sent.map(|(name, _)| (*name).to_owned()).collect()
        });
        let condition = match (tag, date) {
            (Some(tag), _) => {
                self.probe_client
                    .send(&request_with(Twist::IfNoneMatch(tag)))
                    .await
            }
            (None, Some(date)) => {
                self.probe_client
                    .send(&request_with(Twist::IfModifiedSince(date)))
                    .await
            }
            (None, None) => unmeasured("no page came with an ETag or a Last-Modified"),
        };
        let conditional = self.note("http.not_modified", condition)?;
        Ok(Http {
            version: None,
            compression,
            validators,
            not_modified: conditional.map(|reply| reply.answer.status == 304),
            rate_limit_headers: Vec::new(),
            latency_seconds: None,
            statuses: BTreeMap::new(),
        })
    }
}

/// An id that differs from all of these, but that a service with such ids can parse.
fn unknown(known: impl Iterator<Item = Natural>) -> Natural {
    let largest = known.map(Natural::get).max().unwrap_or(0);
    Natural::from(match largest {
        0..LARGEST_SMALL_ID => LARGEST_SMALL_ID,
        _ => largest.saturating_add(1 << 40).min(i64::MAX as u64),
    })
}
