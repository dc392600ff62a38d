//! Measures what the interface leaves open, with a bounded number of sequential GETs.
//!
//! `probe_client` sends and counts requests; `limits`, `lists` (with `ends` and `order`), `user_sample`, `wire`
//! and `fields` each find one kind of thing; `profile` is the result. No value of a row leaves this
//! module.

mod ends;
mod fields;
mod limits;
mod lists;
mod order;
mod probe_client;
pub mod profile;
mod user_sample;
mod wire;

use std::collections::BTreeMap;

use self::order::in_sequence;
use self::probe_client::{Listed, MOST_HEADERS, Measured, Missed, ProbeClient, unmeasured};
use self::profile::{Http, LimitAnswer, PROFILE_VERSION, ServiceProfile};
use self::user_sample::{ListTraits, spread};
use super::client::Client;
use super::error::Error;
use super::probe_request::ProbeRequest;
use super::timestamp::Timestamp;
use crate::api::{Limit, List};

/// The limits of a probe.
#[derive(Debug, Clone, Copy)]
pub struct ProbeSettings {
    /// The most requests, including retries.
    pub max_requests: u64,
    /// The number of users whose messages are examined.
    pub sample: usize,
}

/// Probes a service. A finding that fails is omitted and noted; what would fail for every request
/// (the secret, the network, the deadline) is an error.
pub async fn probe(client: &Client, settings: ProbeSettings) -> Result<ServiceProfile, Error> {
    let measured_at = Timestamp::by(client.clock());
    let mut probe = Probe {
        probe_client: ProbeClient::new(client, settings.max_requests),
        notes: BTreeMap::new(),
        limit: Limit::LARGEST,
        unread: None,
    };
    let mut pages = Vec::new();
    let limits = probe.limits(&mut pages).await?;
    let stable_users = probe.users(&mut pages).await?;
    let users = in_sequence(&pages);
    let chosen = spread(users.into_iter().cloned().collect(), settings.sample);
    let mut sample = probe.sample(chosen).await?;
    let refusals = probe.refusals(&pages, &sample).await?;
    let http = probe.http().await?;
    let users = probe
        .list("users", List::Users, &mut pages, &[], stable_users)
        .await?;
    for user in in_sequence(&pages) {
        probe.probe_client.told.fields.user(user);
    }
    let messages = probe.messages(&mut sample).await?;
    for message in sample.iter().flat_map(|each| in_sequence(&each.pages)) {
        probe.probe_client.told.fields.message(message);
    }
    let lists = ListTraits {
        newest_at_an_end: messages.order.is_some() && messages.total_exact == Some(true),
        never_short: messages.short_pages == Some(false),
    };
    let follows = |field| user_sample::follows(&sample, field, lists);
    let (updated_at_follows, online_at_follows) = (follows("updated_at"), follows("online_at"));
    let (message_ids_unique, sender_types) = (
        user_sample::ids_unique(&sample),
        user_sample::sender_types(&sample),
    );
    probe.explain(
        message_ids_unique.is_none(),
        "message_ids_unique",
        "fewer than two of the sampled users have messages",
    );
    probe.explain(
        sender_types.is_none(),
        "sender_types",
        "no message of the sample has a sender_type",
    );
    for (name, found) in [
        ("updated_at_follows", &updated_at_follows),
        ("online_at_follows", &online_at_follows),
    ] {
        probe.explain(
            found.is_none(),
            name,
            "no sampled user has both that field and a known newest message",
        );
    }
    let told = &probe.probe_client.told;
    Ok(ServiceProfile {
        profile_version: PROFILE_VERSION,
        backread: env!("CARGO_PKG_VERSION").to_owned(),
        measured_at: jiff::Timestamp::from_microsecond(measured_at.microseconds())
            .unwrap_or_default()
            .to_string(),
        requests: probe.probe_client.sent(),
        default_page: limits.default,
        largest_page: limits.largest,
        limit_zero: limits.zero,
        limit_hundred: limits.hundred,
        users,
        messages,
        message_ids_unique,
        sender_types,
        updated_at_follows,
        online_at_follows,
        refusals,
        http: Http {
            version: told.version.clone(),
            rate_limit_headers: told
                .rate_limit_headers
                .iter()
                .take(MOST_HEADERS)
                .cloned()
                .collect(),
            latency_seconds: told.latency(),
            statuses: told.statuses.clone(),
            ..http
        },
        fields: told.fields.profile(),
        notes: probe.notes,
    })
}

struct Probe {
    probe_client: ProbeClient,
    /// Why a finding is missing, by its path.
    notes: BTreeMap<String, String>,
    /// The limit for pages: the largest that is applied.
    limit: Limit,
    /// Why no user's messages could be read.
    unread: Option<String>,
}

struct Limits {
    default: Option<u64>,
    largest: Option<u64>,
    zero: Option<LimitAnswer>,
    hundred: Option<LimitAnswer>,
}

impl Probe {
    /// A finding, or `None` with the reason in the notes.
    fn note<T>(&mut self, path: &str, measured: Measured<T>) -> Result<Option<T>, Error> {
        match measured {
            Ok(found) => Ok(Some(found)),
            Err(Missed::Ends(error)) => Err(error),
            Err(Missed::Unmeasured(reason)) => {
                self.notes.insert(path.to_owned(), reason);
                Ok(None)
            }
        }
    }

    fn explain(&mut self, missing: bool, path: &str, reason: &str) {
        if missing {
            let reason = reason.to_owned();
            self.notes.entry(path.to_owned()).or_insert(reason);
        }
    }

    async fn limits(&mut self, pages: &mut Vec<Listed>) -> Result<Limits, Error> {
        let unlimited = self
            .probe_client
            .first(&ProbeRequest::start(List::Users, None), true)
            .await?;
        let default = match &unlimited {
            Some(page) => match page.applied() {
                Some(applied) => Ok(applied),
                None => unmeasured(
                    "the page does not report the limit applied, and its rows do not show it",
                ),
            },
            None => unmeasured("a request without a limit returned no list"),
        };
        let default = self.note("default_page", default)?;
        let request = ProbeRequest::plain(List::Users.page(0, Limit::LARGEST));
        let longest = match &unlimited {
            // It was answered before, so a failure here is specific to this request.
            Some(_) => {
                let page = self
                    .probe_client
                    .send(&request)
                    .await
                    .and_then(|reply| reply.page());
                self.note("largest_page", page)?
            }
            None => self.probe_client.first(&request, true).await?,
        };
        let largest = limits::largest_page(&mut self.probe_client, default, longest.as_ref()).await;
        self.notes.remove("largest_page");
        let largest = self.note("largest_page", largest)?;
        self.limit = limits::to_read_with(largest);
        pages.extend(unlimited.into_iter().chain(longest));
        if pages.is_empty() {
            // No list was returned so far: if this one fails too, its error says why.
            let request = ProbeRequest::plain(List::Users.page(0, self.limit));
            pages.extend(self.probe_client.first(&request, false).await?);
        }
        let mut outside = async |path: &str, limit: u64| {
            let reply = self
                .probe_client
                .send(&ProbeRequest::start(List::Users, Some(limit)))
                .await;
            let Some(reply) = self.note(path, reply)? else {
                return Ok::<_, Error>(None);
            };
            let (answer, note) = limits::outside(&reply, limit, default, largest);
            if let Some(note) = note {
                self.explain(true, &format!("{path}.treatment"), note);
            }
            Ok(Some(answer))
        };
        Ok(Limits {
            default,
            largest,
            zero: outside("limit_zero", 0).await?,
            hundred: outside("limit_hundred", 100).await?,
        })
    }
}
