//! Sends the probe's requests, within their limit, and records what each response shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::fields::{Fields, Shape, is_word};
use super::profile::AnswerProfile;
use crate::api::{Limit, List, Resource};
use crate::budget::Budget;
use crate::client::{CallOptions, Client};
use crate::error::{Attempt, Error, ErrorKind};
use crate::probe_request::ProbeRequest;
use crate::wire::Answer;

const LONGEST_MEDIA_TYPE: usize = 64;
const LONGEST_NAME: usize = 64;
/// The most header names shown: a service may send a new one each time.
pub const MOST_HEADERS: usize = 16;

/// Why a finding is missing.
#[derive(Debug)]
pub enum Missed {
    /// The error that ends the whole probe.
    Ends(Error),
    /// Only this finding cannot be measured; in words that contain no data.
    Unmeasured(String),
}

pub type Measured<T> = Result<T, Missed>;

pub fn unmeasured<T>(reason: &str) -> Measured<T> {
    Err(Missed::Unmeasured(reason.to_owned()))
}

/// A response, with its body parsed if it is JSON.
#[derive(Debug)]
pub struct Reply {
    pub answer: Answer,
    pub json: Option<Value>,
    /// The list and offset of the requested page.
    page: Option<(List, u64)>,
}

impl Reply {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.answer.status)
    }

    pub fn is_refusal(&self) -> bool {
        (400..500).contains(&self.answer.status)
    }

    /// The page in it; `None` if it is not a page.
    pub fn listed(&self) -> Option<Listed> {
        let (list, requested_offset) = self.page?;
        let envelope = self.json.as_ref().filter(|_| self.is_success())?;
        let number = |name: &str| envelope.get(name).and_then(Value::as_u64);
        Some(Listed {
            requested_offset,
            limit: number("limit"),
            offset: number("offset"),
            total: number("total"),
            rows: envelope.get(list.resource().key())?.as_array()?.clone(),
        })
    }

    pub fn page(&self) -> Measured<Listed> {
        self.listed().ok_or_else(|| {
            Missed::Unmeasured(match self.is_success() {
                true => "the answer is not a page of a list".to_owned(),
                false => format!("the service answered {}", self.answer.status),
            })
        })
    }

    pub fn profile(&self) -> AnswerProfile {
        let content_type = self.answer.headers.get("content-type").map(|value| {
            let media_type = value.split(';').next().unwrap_or_default().trim();
            match is_word(&media_type.replace(['/', '+'], "_"), LONGEST_MEDIA_TYPE) {
                true => media_type.to_ascii_lowercase(),
                false => "(other)".to_owned(),
            }
        });
        // A page's shape would be that of its first row, by chance; `fields` says more.
        let refusal = self.json.as_ref().filter(|_| !self.is_success());
        AnswerProfile {
            status: self.answer.status,
            content_type,
            shape: refusal.map(Shape::of),
        }
    }
}

/// The identity of a row: its id as sent, or the whole row.
pub fn identity(row: &Value) -> String {
    match row.get("id") {
        Some(id) if !id.is_null() => id.to_string(),
        _ => row.to_string(),
    }
}

/// A page of a list, as described by its envelope.
#[derive(Debug)]
pub struct Listed {
    /// The requested offset.
    pub requested_offset: u64,
    pub limit: Option<u64>,
    pub offset: Option<u64>,
    pub total: Option<u64>,
    pub rows: Vec<Value>,
}

impl Listed {
    pub fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    /// One past the offset of its last row.
    pub fn end(&self) -> u64 {
        self.requested_offset.saturating_add(self.len())
    }

    /// Whether the rows are from the requested offset, as far as the envelope says.
    pub fn is_in_place(&self) -> bool {
        self.offset
            .is_none_or(|offset| offset == self.requested_offset)
    }

    /// The limit that was applied: as the service says, or as the rows show if more follow.
    pub fn applied(&self) -> Option<u64> {
        self.limit.or_else(|| {
            let more = self.total.is_some_and(|total| total > self.end());
            more.then(|| self.len())
        })
    }

    /// Whether it has rows beyond its own `total`.
    pub fn is_understated(&self) -> bool {
        let understated = self.total.is_some_and(|total| total < self.end());
        understated && self.is_in_place() && !self.rows.is_empty()
    }

    /// Whether it has as many rows as its limit allows, as far as that is known.
    pub fn is_full(&self) -> bool {
        self.limit.is_none_or(|limit| self.len() >= limit)
    }

    pub fn last_row(&self) -> Option<String> {
        self.rows.last().map(identity)
    }

    pub fn identities(&self) -> Vec<String> {
        self.rows.iter().map(identity).collect()
    }
}

/// What all responses together show.
#[derive(Debug, Default)]
pub struct Told {
    pub statuses: BTreeMap<u16, u64>,
    pub rate_limit_headers: BTreeSet<String>,
    pub version: Option<String>,
    pub seconds: Vec<f64>,
    pub fields: Fields,
}

#[derive(Debug)]
pub struct ProbeClient {
    client: Client,
    budget: Budget,
    most: u64,
    pub told: Told,
}

impl ProbeClient {
    /// Sends at most `most` requests, including retries.
    pub fn new(client: &Client, most: u64) -> Self {
        Self {
            client: client.with(CallOptions::count_anew),
            budget: client.budget(),
            most,
            told: Told::default(),
        }
    }

    pub fn sent(&self) -> u64 {
        self.client.sent()
    }

    pub async fn send(&mut self, request: &ProbeRequest) -> Measured<Reply> {
        match self.try_send(request).await {
            Ok((reply, _)) => Ok(reply),
            Err(Tried::Bound) => Err(Missed::Unmeasured(format!(
                "the limit of {} requests was reached",
                self.most
            ))),
            Err(Tried::Failed(error)) => Err(missed(error)),
        }
    }

    /// The first list of a probe. A failure here would occur everywhere, so it is an error. `None`
    /// if the service may reject the limit and does, or if no requests are left.
    pub async fn first(
        &mut self,
        request: &ProbeRequest,
        may_mind: bool,
    ) -> Result<Option<Listed>, Error> {
        let (reply, attempts) = match self.try_send(request).await {
            Ok(answered) => answered,
            Err(Tried::Failed(error)) => return Err(error),
            Err(Tried::Bound) => return Ok(None),
        };
        match (reply.listed(), reply.answer.status) {
            (Some(listed), _) => Ok(Some(listed)),
            (None, 400 | 422) if may_mind => Ok(None),
            (None, _) => Err(self.client.no_page(request, reply.answer, attempts)),
        }
    }

    /// A page of a list, requested like any read.
    pub async fn page(&mut self, list: List, offset: u64, limit: Limit) -> Measured<Listed> {
        let request = ProbeRequest::plain(list.page(offset, limit));
        self.send(&request).await?.page()
    }

    async fn try_send(&mut self, request: &ProbeRequest) -> Result<(Reply, Vec<Attempt>), Tried> {
        let left = self.most.saturating_sub(self.client.sent());
        let Some(retries) = left.checked_sub(1) else {
            return Err(Tried::Bound);
        };
        let retries = u32::try_from(retries).unwrap_or(u32::MAX);
        let cut_short = retries < self.client.options().max_retries;
        let client = self.client.with(|call| {
            call.options.max_retries = call.options.max_retries.min(retries);
            // Outage probes would not be bounded by the number of retries left.
            call.options.outage_patience = Duration::ZERO;
        });
        let headers = Mutex::new(BTreeSet::new());
        let heard = |answer: &Answer| {
            let mut headers = headers.lock().unwrap_or_else(PoisonError::into_inner);
            let names = answer.headers.pairs().map(|(name, _)| name);
            headers.extend(names.filter(|name| tells_of_rate(name)));
        };
        // Boxed because each future around it would be as large.
        let sent = Box::pin(client.probe(request, &self.budget, heard)).await;
        self.told
            .rate_limit_headers
            .extend(headers.into_inner().unwrap_or_else(PoisonError::into_inner));
        match sent {
            Ok((answer, attempts)) => {
                self.told.attempts(&attempts);
                self.told.answer(request, &answer, &attempts);
                let json = serde_json::from_str(&answer.text().json).ok();
                let page = request.page();
                if let Some(((list, _), envelope)) = page.zip(json.as_ref()) {
                    self.told.envelope(list.resource(), envelope);
                }
                let reply = Reply { answer, json, page };
                Ok((reply, attempts))
            }
            Err(error) => {
                self.told.attempts(&error.attempts);
                match cut_short && error.attempts.len() as u64 >= left {
                    true => Err(Tried::Bound),
                    false => Err(Tried::Failed(error)),
                }
            }
        }
    }
}

enum Tried {
    Bound,
    Failed(Error),
}

impl Told {
    fn attempts(&mut self, attempts: &[Attempt]) {
        for status in attempts.iter().filter_map(|attempt| attempt.status) {
            *self.statuses.entry(status).or_default() += 1;
        }
    }

    fn answer(&mut self, request: &ProbeRequest, answer: &Answer, attempts: &[Attempt]) {
        self.version = Some(answer.version.to_owned());
        if request.is_allowed()
            && answer.status == 200
            && let Some(last) = attempts.last()
        {
            self.seconds.push(last.seconds_taken);
        }
    }

    fn envelope(&mut self, resource: Resource, envelope: &Value) {
        if envelope.get(resource.key()).is_some() {
            self.fields.page(envelope, resource.key());
        }
    }

    /// The median; `None` before the first page.
    pub fn latency(&self) -> Option<f64> {
        let mut seconds = self.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied()
    }
}

/// Whether a header's name suggests that it is about the request rate.
fn tells_of_rate(name: &str) -> bool {
    let plain = name.replace(['-', '_'], "");
    name.len() <= LONGEST_NAME && (plain.contains("ratelimit") || plain == "retryafter")
}

/// What an error means for one finding; omits its text, which may quote a response.
fn missed(error: Error) -> Missed {
    let reason = match &error.kind {
        ErrorKind::Connect(_) | ErrorKind::Insecure(_) | ErrorKind::ProxyPassword => {
            "the service did not answer".to_owned()
        }
        ErrorKind::NotHttp(_) => "the answer's headers are not HTTP".to_owned(),
        ErrorKind::Timeout(_) => "no complete answer arrived within the timeout".to_owned(),
        ErrorKind::TruncatedBody(_) => "the answer's body ended early".to_owned(),
        ErrorKind::ResponseTooLarge { limit } => {
            format!("the answer is larger than {limit} bytes")
        }
        ErrorKind::Transport(_) => "the answer is a redirect that is not followed".to_owned(),
        ErrorKind::Decode { .. } => "the answer is not JSON".to_owned(),
        ErrorKind::Status(failure) if !matches!(failure.status, 401 | 403 | 429) => {
            format!("the service answered {}", failure.status)
        }
        _ => return Missed::Ends(error),
    };
    Missed::Unmeasured(reason)
}
