//! Sends the requests of a walk, and hands its pages to the reader.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};

use super::failing_pages::{PageReader, fails_for_its_rows};
use super::stages::{Fetch, ListWalk, Response, Resume};
use super::unread::is_never_read;
use super::{SharedReport, WalkSettings, WalkedPage, incomplete};
use crate::api::{List, Natural};
use crate::budget::Budget;
use crate::client::Client;
use crate::error::Error;
use crate::prefetch::Sink;
use crate::report::Certificate;
use crate::timestamp::Timestamp;

// Statuses for an offset past the end that some services send instead of a page; interface 7 does
// not specify it.
const PAST_END: [u16; 4] = [400, 404, 416, 422];

/// Where a walk begins.
#[derive(Debug)]
pub enum Start {
    Beginning,
    /// Where an earlier walk ended.
    Resumed(Box<Resume>),
    /// At the first of two offsets; it ends at the second.
    Span(u64, u64),
}

impl From<Option<Resume>> for Start {
    fn from(resume: Option<Resume>) -> Self {
        resume.map_or(Self::Beginning, |resume| Self::Resumed(Box::new(resume)))
    }
}

/// Walks a list into a sink; keeps the report current, and final at the end.
pub async fn walk_into(
    client: &Client,
    list: List,
    settings: WalkSettings,
    start: Start,
    budget: &Budget,
    report: &SharedReport,
    sink: &impl Sink<WalkedPage>,
) -> Result<(), Error> {
    let now = || Timestamp::by(client.clock());
    let settings = WalkSettings {
        concurrent_pages: settings
            .concurrent_pages
            .min(client.options().max_concurrency),
        ..settings
    };
    let ends_unread = settings.ends_unread && list == List::Users;
    let mut walk = match start {
        Start::Beginning => ListWalk::new(list, settings, now()),
        Start::Resumed(resume) => ListWalk::resumed(list, settings, *resume, now()),
        Start::Span(from, to) => ListWalk::of_span(list, settings, (from, to), now()),
    };
    let sender = Sender {
        client,
        list,
        budget,
        down_before: client.outage_time(),
        // A caller of a list is told, and may ask for smaller pages; a sync would never get through.
        pages: PageReader::new(settings.checkpoints),
        ends_unread,
    };
    let mut walked = sender.run(&mut walk, report, sink).await;
    if matches!(walked, Ok(false)) {
        return Ok(());
    }
    if let Err(error) = &walked {
        walk.note_short();
        if ends_unread && walk.has_rows() && is_never_read(client, budget, error).await {
            walk.end_before(error);
            walked = Ok(true);
        } else {
            walk.report.doubt("a request failed".to_owned());
        }
    }
    walk.report.outage_seconds = client.outage_seconds_since(sender.down_before);
    walk.report.end(now());
    report.set(walk.report.clone());
    walked?;
    let uncertified = walk.report.certificate == Certificate::Uncertified;
    if settings.strict && uncertified && !walk.ended_as_requested() {
        return Err(incomplete(client, &list, walk.report));
    }
    Ok(())
}

/// Sends a walk's requests.
struct Sender<'a> {
    client: &'a Client,
    list: List,
    budget: &'a Budget,
    down_before: Duration,
    pages: PageReader,
    /// A page that fails ends the list, so those before it are still taken.
    ends_unread: bool,
}

impl Sender<'_> {
    /// Sends what the walk requests, as many at once as it allows, and puts its pages into the sink;
    /// returns whether that was read to the end.
    async fn run(
        &self,
        walk: &mut ListWalk,
        report: &SharedReport,
        sink: &impl Sink<WalkedPage>,
    ) -> Result<bool, Error> {
        let mut in_flight = FuturesUnordered::new();
        let mut arrived = VecDeque::new();
        let mut spent = None;
        loop {
            walk.report.outage_seconds = self.client.outage_seconds_since(self.down_before);
            report.set(walk.report.clone());
            while let Some(page) = walk.next_page() {
                if page.rows.is_empty() {
                    continue;
                }
                let mut put = pin!(sink.put(page));
                // Requests in flight continue while the reader is behind.
                let read = loop {
                    tokio::select! {
                        read = &mut put => break read,
                        Some(response) = in_flight.next(), if !in_flight.is_empty() => {
                            arrived.push_back(response);
                        }
                    }
                };
                if !read {
                    return Ok(false);
                }
            }
            // After the rows that came before it.
            if let Some(error) = walk.failed.take() {
                return Err(error);
            }
            if walk.is_over() {
                return Ok(true);
            }
            while spent.is_none()
                && let Some(request) = walk.next_request()
            {
                in_flight.push(async move { (request, self.send(request.fetch).await) });
            }
            let next = match arrived.pop_front() {
                Some(next) => Some(next),
                None => in_flight.next().await,
            };
            let Some((request, response)) = next else {
                return spent.map_or(Ok(true), Err);
            };
            match response {
                Ok(response) => walk.take(request, response),
                // The rows read remain valid without the proof.
                Err(error) if keeps_rows_on_failure(&error) && walk.is_for_proof() => {
                    walk.take(request, Response::Refused(error));
                }
                // What was sent before the budget was spent is still taken.
                Err(error) if error.is_budget_spent() || self.ends_unread => {
                    walk.report.requests += error.attempts.len() as u64;
                    if spent.is_none() || error.is_budget_spent() {
                        spent = Some(error);
                    }
                }
                Err(error) => {
                    walk.report.requests += error.attempts.len() as u64;
                    return Err(error);
                }
            }
        }
    }

    async fn send(&self, fetch: Fetch) -> Result<Response, Error> {
        let Self {
            client,
            list,
            budget,
            ..
        } = *self;
        match fetch {
            Fetch::Page { offset, limit } => {
                let read = self.pages.page(client, list, offset, limit, budget);
                match read.await {
                    Ok(read) => Ok(Response::Page(read)),
                    Err(error) if offset > 0 && says_past_end(&error) => {
                        Ok(Response::PastEnd(error))
                    }
                    Err(error) => Err(error),
                }
            }
            Fetch::Row { id } => {
                let read = client.row(list, Natural::new("id", id)?, budget).await?;
                Ok(Response::Row {
                    row: read.value,
                    sent: read.sent,
                })
            }
        }
    }
}

/// Whether a request that failed leaves the rows that others read as they are.
fn keeps_rows_on_failure(error: &Error) -> bool {
    error.is_an_answer() || error.is_too_large() || fails_for_its_rows(error)
}

/// Whether the service refused an offset as it may past the end of a list.
pub fn says_past_end(error: &Error) -> bool {
    error
        .status()
        .is_some_and(|status| PAST_END.contains(&status))
}
