//! Plays a service that any bytes describe to a walk, and checks what it claims; for the tests and the
//! fuzzer.

// A check fails by panicking.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::WalkSettings;
use super::stages::{Fetch, ListWalk, Request, Response, Resume};
use crate::api::{Limit, List};
use crate::client::{Read, Sent};
use crate::decode::json::Text;
use crate::decode::page::{Page, Unreadable};
use crate::error::{Attempt, Error, ErrorKind, StatusFailure};
use crate::redact::Redactor;
use crate::report::Certificate;
use crate::timestamp::Timestamp;

/// Ids that are as far apart as they can be, and one that a list has anyway.
const ODD_IDS: [&str; 6] = [
    "null",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "1",
    "\"7\"",
];
const ODD_NUMBERS: [&str; 6] = ["null", "0", "-1", "9223372036854775807", "1", "\"99\""];

/// The list, and what happened to it while it was walked.
struct Service<'a> {
    bytes: std::slice::Iter<'a, u8>,
    /// Ids in the list's order,
    ids: Vec<i64>,
    /// how often each was edited,
    revisions: BTreeMap<i64, u32>,
    /// and those that stayed where they are.
    steady: BTreeSet<i64>,
    newest: i64,
    /// No response said anything but what the list is.
    honest: bool,
}

impl Service<'_> {
    /// The next byte; 0 after the last.
    fn byte(&mut self) -> usize {
        self.bytes.next().copied().unwrap_or(0).into()
    }

    /// A place in the list, near its end for bytes that are large.
    fn place(&mut self, count: usize) -> usize {
        (self.byte() * count)
            .div_ceil(255)
            .min(count.saturating_sub(1))
    }

    fn change(&mut self, what: usize) {
        let place = self.place(self.ids.len() + 1);
        if what == 0 {
            self.newest += 1;
            self.ids.insert(place, self.newest);
        } else if place < self.ids.len() {
            let id = self.ids.remove(place);
            self.steady.remove(&id);
            if what == 2 {
                *self.revisions.entry(id).or_default() += 1;
                let to = self.place(self.ids.len() + 1);
                self.ids.insert(to, id);
            }
        }
    }

    fn row(&self, id: i64) -> String {
        let revision = self.revisions.get(&id).copied().unwrap_or_default();
        format!(r#"{{"id":{id},"reference":"{revision}"}}"#)
    }

    fn rows(&self, start: usize, limit: Limit) -> Vec<String> {
        let ids = self.ids.iter().skip(start).take(limit.get().into());
        ids.map(|id| self.row(*id)).collect()
    }

    /// An honest response, or after `oddity` one that is not.
    fn respond(&mut self, request: &Request, oddity: Option<usize>) -> Response {
        self.honest &= oddity.is_none();
        let (offset, limit) = match request.fetch {
            Fetch::Page { offset, limit } => (offset, limit),
            Fetch::Row { id } => {
                let there = self.ids.contains(&id) != (oddity == Some(0));
                return row(List::Users, there.then(|| self.row(id)));
            }
        };
        let mut rows = self.rows(usize::try_from(offset).unwrap(), limit);
        let mut said = [
            limit.get().to_string(),
            offset.to_string(),
            self.ids.len().to_string(),
        ];
        let mut reduced_to = None;
        match oddity {
            Some(0) if offset > 0 => return Response::PastEnd(refusal(List::Users)),
            Some(1) => return failing_row(List::Users, offset),
            Some(2) => rows.truncate(self.byte()),
            Some(3) => {
                rows.truncate(self.byte());
                reduced_to = Limit::of(rows.len() as u64);
            }
            Some(4) if !rows.is_empty() => {
                let (place, id) = (self.place(rows.len()), ODD_IDS[self.byte() % ODD_IDS.len()]);
                rows[place] = format!(r#"{{"id":{id}}}"#);
            }
            Some(5) => said[self.byte() % 3] = ODD_NUMBERS[self.byte() % ODD_NUMBERS.len()].into(),
            Some(6) => said[self.byte() % 3] = self.byte().to_string(),
            Some(7) => {
                let other = self.place(self.ids.len() + 1);
                rows = self.rows(other, limit);
            }
            Some(8) => rows.reverse(),
            Some(9) => rows.extend_from_within(..),
            _ => {}
        }
        page(List::Users, said, &rows, reduced_to)
            .unwrap_or_else(|| Response::PastEnd(refusal(List::Users)))
    }
}

/// Walks the list that the bytes describe; returns its certificate. Panics if the walk does not end,
/// delivers a row twice, counts wrongly, or certifies a list of an honest service without each row
/// that stayed where it was.
pub fn check(bytes: &[u8]) -> Certificate {
    let mut service = Service {
        bytes: bytes.iter(),
        ids: Vec::new(),
        revisions: BTreeMap::new(),
        steady: BTreeSet::new(),
        newest: 0,
        honest: true,
    };
    let settings = WalkSettings {
        page_size: Limit::of(service.byte() as u64 + 1).unwrap_or(Limit::LARGEST),
        concurrent_pages: 1 + service.byte() % 8,
        max_items: Some(service.byte() as u64 * 8).filter(|most| *most > 0),
        checkpoints: true,
        ..WalkSettings::WHOLE
    };
    service.newest = (service.byte() * 3) as i64;
    service.ids = (1..=service.newest).collect();
    service.steady = service.ids.iter().copied().collect();
    let steps_of_others = bytes.len();

    let mut walk = ListWalk::new(List::Users, settings, Timestamp::now());
    let (mut asked, mut answered) = (Vec::<Request>::new(), Vec::<(Request, Response)>::new());
    let mut held = BTreeSet::new();
    let (mut requests, mut unnamed, mut resumed, mut checkpoint) = (0, false, false, None);
    loop {
        let step = service.byte();
        match step % 16 {
            1..=3 if step < 128 => service.change(step % 16 - 1),
            4 if !asked.is_empty() => {
                let (place, oddity) = (service.place(asked.len()), step / 16);
                let request = asked.remove(place);
                let response = service.respond(&request, Some(oddity));
                answered.push((request, response));
            }
            5 if walk.is_for_proof() && !asked.is_empty() => {
                service.honest = false;
                walk.take(asked.remove(0), Response::Refused(refusal(List::Users)));
            }
            6 if checkpoint.is_some() && !walk.is_over() => {
                let kept = serde_json::to_string(&checkpoint.take()).unwrap();
                let checkpoint = serde_json::from_str(&kept).unwrap();
                let held = held.iter().map(|id: &i64| id.cast_unsigned()).collect();
                let resume = Resume { checkpoint, held };
                walk = ListWalk::resumed(List::Users, settings, resume, Timestamp::now());
                resumed = true;
                asked.clear();
                answered.clear();
            }
            7..=9 if !asked.is_empty() => {
                let place = service.place(asked.len());
                let request = asked.remove(place);
                let response = service.respond(&request, None);
                answered.push((request, response));
            }
            _ => {
                if let Some(request) = walk.next_request() {
                    asked.push(request);
                    requests += 1;
                } else if let Some(request) = asked.pop() {
                    let response = service.respond(&request, None);
                    answered.push((request, response));
                } else if !answered.is_empty() {
                    let place = service.place(answered.len());
                    let (request, response) = answered.remove(place);
                    walk.take(request, response);
                } else {
                    break;
                }
            }
        }
        while let Some(page) = walk.next_page() {
            checkpoint = page.checkpoint.or(checkpoint);
            for row in &page.rows {
                unnamed |= row.id.is_none();
                assert!(
                    row.id.is_none_or(|id| held.insert(id)),
                    "twice: {:?}",
                    row.id
                );
            }
        }
        let most = 10 * (service.newest as usize + steps_of_others) + 100;
        assert!(requests <= most, "{requests} requests; {:?}", walk.report);
    }
    let report = &walk.report;
    assert!(
        walk.is_over() || walk.failed.is_some(),
        "it waits for nothing: {report:?}"
    );
    // A killed run may have read rows after its last checkpoint; pages in flight at `max_items` are not
    // delivered.
    let cut = settings.max_items.is_some();
    let counted = unnamed || resumed || cut || report.rows == report.distinct + report.repeats;
    assert!(
        counted && (cut || report.distinct == held.len() as u64),
        "{report:?}"
    );
    let certified = report.certificate != Certificate::Uncertified;
    if service.honest && certified && !cut {
        let lost: Vec<_> = service.steady.difference(&held).collect();
        assert!(lost.is_empty(), "{lost:?} are not held; {report:?}");
    }
    report.certificate
}

/// The response with these rows and the limit, offset and total in JSON; `None` if that is no page.
pub(super) fn page(
    list: List,
    [limit, offset, total]: [String; 3],
    rows: &[String],
    reduced_to: Option<Limit>,
) -> Option<Response> {
    let (key, rows) = (list.resource().key(), rows.join(","));
    let body = format!(r#"{{"limit":{limit},"offset":{offset},"total":{total},"{key}":[{rows}]}}"#);
    let mut page = Page::read(Text::repair(body.into(), None), list.resource()).ok()?;
    page.reduced_to = reduced_to;
    let (value, sent) = (page, sent(list));
    Some(Response::Page(Read { value, sent }))
}

/// What is read of a page around a row that fails it.
pub(super) fn failing_row(list: List, offset: u64) -> Response {
    let value = Page::of_a_row_not_read(offset, list.resource(), Unreadable::Failing);
    let sent = sent(list);
    Response::Page(Read { value, sent })
}

/// The response to a request for one row.
pub(super) fn row(list: List, json: Option<String>) -> Response {
    let row = json.map(|json| Text::repair(json.into(), None));
    let sent = sent(list);
    Response::Row { row, sent }
}

/// What was sent for a page of a list.
fn sent(list: List) -> Sent {
    Sent {
        endpoint: list.page(0, Limit::LARGEST),
        attempts: vec![attempt(200)],
        redactor: Redactor::default(),
        stored_at: None,
    }
}

/// A response that there is nothing at an offset.
pub(super) fn refusal(list: List) -> Error {
    let failure = StatusFailure {
        status: 404,
        headers: Vec::new(),
        body: Bytes::new(),
        request_id: None,
        retry_after: None,
    };
    let error = Error::new(ErrorKind::Status(Box::new(failure)));
    error.during(list.to_string(), vec![attempt(404)])
}

fn attempt(status: u16) -> Attempt {
    Attempt {
        status: Some(status),
        error: None,
        seconds_taken: 0.0,
        seconds_waited: 0.0,
    }
}
