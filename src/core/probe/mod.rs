//! Measures what the interface leaves open, with a bounded number of sequential GETs.
//!
//! `probe_client` sends and counts requests; `limits`, `lists` (with `ends` and `order`) and
//! `user_sample` each find one kind of thing; `profile` is the result.

mod ends;
mod limits;
mod lists;
mod order;
mod probe_client;
pub mod profile;
#[cfg(test)]
mod tests;
mod user_sample;

use std::collections::BTreeMap;

use serde_json::Value;

use self::order::in_sequence;
use self::probe_client::{Finding, Listed, ProbeClient, unmeasured};
use self::profile::{PROFILE_VERSION, ServiceProfile};
use self::user_sample::{NO_USER, Sampled, follows, requestable_id, spread};
use super::client::Client;
use super::error::Error;
use crate::api::{Limit, List, Natural, Request};

// The largest id that can be requested from a service with 32-bit ids.
const LARGEST_SMALL_ID: u64 = i32::MAX as u64;

/// Probes a service. A finding that fails is omitted and noted; what would fail for every request
/// (the secret, the network, the deadline) is an error. It sends at most `most` requests, including
/// retries, and examines the messages of `users` users.
pub async fn probe(client: &Client, most: u64, users: usize) -> Result<ServiceProfile, Error> {
    let measured_at = jiff::Timestamp::try_from(client.clock().wall()).unwrap_or_default();
    let mut probe = Probe {
        client: ProbeClient::start(client, most).await?,
        default_page: None,
        largest_page: None,
        notes: BTreeMap::new(),
    };
    let mut pages = Vec::new();
    probe.limits(&mut pages).await;
    let limit_zero = probe.limit_outside("limit_zero", 0).await;
    let limit_hundred = probe.limit_outside("limit_hundred", 100).await;
    lists::far_pages(&mut probe.client, List::Users, &mut pages).await;
    let of_users = probe.list("users", List::Users, &mut pages, &[]).await;
    let rows = in_sequence(&pages).into_iter().cloned().collect();
    let mut sample = probe.sample(spread(rows, users)).await;
    let refusals = probe.refusals(&pages, &sample).await;
    let messages = probe.messages(&mut sample).await;
    let mut follows = |path, field| probe.note(path, follows(&sample, field, &messages));
    let updated_at_follows = follows("updated_at_follows", "updated_at");
    let online_at_follows = follows("online_at_follows", "online_at");
    if let Some(error) = probe.client.ended_by {
        return Err(error);
    }
    Ok(ServiceProfile {
        profile_version: PROFILE_VERSION,
        backread: env!("CARGO_PKG_VERSION"),
        measured_at: measured_at.to_string(),
        requests: probe.client.sent(),
        default_page: probe.default_page,
        largest_page: probe.largest_page,
        limit_zero,
        limit_hundred,
        users: of_users,
        messages,
        updated_at_follows,
        online_at_follows,
        refusals,
        notes: probe.notes,
    })
}

struct Probe {
    client: ProbeClient,
    default_page: Option<u64>,
    largest_page: Option<u64>,
    /// Why a finding is missing, by its path.
    notes: BTreeMap<String, String>,
}

impl Probe {
    /// A finding, or `None` with the reason in the notes.
    fn note<T>(&mut self, path: &str, finding: Finding<T>) -> Option<T> {
        let noted = finding.map_err(|reason| self.notes.insert(path.to_owned(), reason));
        noted.ok()
    }

    async fn limits(&mut self, pages: &mut Vec<Listed>) {
        let default = limits::default_page(&mut self.client, pages).await;
        self.default_page = self.note("default_page", default);
        let largest = limits::largest_page(&mut self.client, self.default_page, pages).await;
        self.largest_page = self.note("largest_page", largest);
        let limit = self.largest_page.and_then(Limit::of);
        self.client.limit = limit.unwrap_or(Limit::LARGEST);
    }

    /// The statuses that answer requests which the service should refuse.
    async fn refusals(
        &mut self,
        pages: &[Listed],
        sample: &[Sampled],
    ) -> BTreeMap<&'static str, Option<u16>> {
        let user_id = unknown_id(pages.iter().flat_map(|page| &page.rows));
        let message_id = unknown_id(sample.iter().flat_map(Sampled::messages));
        let user = List::Users.row(user_id);
        let messages = List::Messages { user_id }.page(0, self.client.limit);
        let message = sample.first().map(|each| {
            let user_id = each.user_id;
            List::Messages { user_id }.row(message_id)
        });
        let mut refusals = BTreeMap::new();
        for (name, request) in [
            ("wrong_secret", Some(Request::MadeUpSecret)),
            ("other_accept", Some(Request::OtherAccept)),
            ("unknown_user", Some(Request::Read(user))),
            ("messages_of_unknown_user", Some(Request::Read(messages))),
            ("unknown_message", message.map(Request::Read)),
        ] {
            let reply = match request {
                Some(request) => self.client.send(request).await,
                None => unmeasured(NO_USER),
            };
            let status = self.note(&format!("refusals.{name}"), reply.map(|reply| reply.status));
            refusals.insert(name, status);
        }
        refusals
    }
}

/// An id that differs from those of the rows, but that a service with such ids can parse.
fn unknown_id<'a>(rows: impl Iterator<Item = &'a Value>) -> Natural {
    let largest = rows.filter_map(requestable_id).max();
    Natural::from(match largest.map_or(0, Natural::get) {
        0..LARGEST_SMALL_ID => LARGEST_SMALL_ID,
        largest => largest.saturating_add(1 << 40).min(i64::MAX as u64),
    })
}
