//! Runs the walk against a simulated list: several requests in flight, each answered at its own
//! instant and delivered in any order.

use super::super::agreement::{failing_row, page, refusal, row};
use super::super::stages::{Fetch, ListWalk, Request, Response};
use super::super::*;
use super::changing_list::{ChangingList, Served, revision};
use crate::timestamp::Timestamp;

/// What a walk returned and reported.
#[derive(Debug)]
pub struct Walked {
    /// Ids and the revisions in which they were served, in the order returned.
    pub given: Vec<(i64, u32)>,
    pub report: WalkReport,
    pub requests: u64,
}

enum InFlight {
    Sent(Request),
    Answered(Request, Response),
}

/// Walks to the end; fails if the walk stalls or sends more than `most_requests`. A walk that is
/// killed resumes from its last checkpoint, as another process would.
pub fn walk(
    list: &mut ChangingList,
    settings: WalkSettings,
    killed_after: Option<usize>,
    most_requests: u64,
) -> Result<Walked, String> {
    let of = list.behaviour.list();
    let mut random = fastrand::Rng::with_seed(!list.behaviour.seed);
    let mut walk = ListWalk::new(of, settings, Timestamp::now());
    let mut under_way: Vec<InFlight> = Vec::new();
    let mut given = Vec::new();
    let mut requests = 0;
    let mut pages = 0;
    let mut kill_at = killed_after;
    let mut checkpoint = None;
    loop {
        // The client may be slow to send, and the reader slow to read.
        while (under_way.is_empty() || random.u8(..4) > 0)
            && let Some(request) = walk.next_request()
        {
            requests += 1;
            if requests > most_requests {
                let report = &walk.report;
                return Err(format!("more than {most_requests} requests; {report:?}"));
            }
            under_way.push(InFlight::Sent(request));
        }
        let over = under_way.is_empty();
        if !over {
            // Each request is answered before it is delivered, and others come between.
            match under_way.swap_remove(random.usize(..under_way.len())) {
                InFlight::Sent(request) => {
                    let response = respond(list, &request);
                    under_way.push(InFlight::Answered(request, response));
                }
                InFlight::Answered(request, response) => walk.take(request, response),
            }
        }
        while (under_way.is_empty() || random.u8(..4) > 0)
            && let Some(page) = walk.next_page()
        {
            pages += 1;
            let rows = page.rows.iter();
            given.extend(rows.map(|row| (row.id.unwrap(), revision(row.json()))));
            checkpoint = page.checkpoint.or(checkpoint);
        }
        if over {
            break;
        }
        if kill_at.is_some_and(|after| pages >= after)
            && let Some(checkpoint) = &checkpoint
        {
            kill_at = None;
            under_way.clear();
            let kept = serde_json::to_string(checkpoint).unwrap();
            let resume = Resume {
                checkpoint: serde_json::from_str(&kept).unwrap(),
                held: given.iter().map(|(id, _)| id.cast_unsigned()).collect(),
            };
            walk = ListWalk::resumed(of, settings, resume, Timestamp::now());
        }
    }
    if let Some(refusal) = walk.failed {
        return Err(format!("an offset past the end fails the walk; {refusal}"));
    }
    match walk.is_over() {
        true => Ok(Walked {
            given,
            report: walk.report,
            requests,
        }),
        false => Err(format!(
            "it waits, and nothing is under way; {:?}",
            walk.report
        )),
    }
}

fn respond(list: &mut ChangingList, request: &Request) -> Response {
    let of = list.behaviour.list();
    match request.fetch {
        Fetch::Row { id } => row(of, list.row(id)),
        Fetch::Page { offset, limit } => match list.page(offset, limit) {
            Served::Refused => Response::PastEnd(refusal(of)),
            Served::Page {
                fails_at: Some(0), ..
            } => failing_row(of, offset),
            Served::Page {
                mut rows,
                fails_at,
                limit,
                offset,
                total,
            } => {
                rows.truncate(fails_at.unwrap_or(usize::MAX));
                let rows: Vec<String> = rows.iter().map(|row| row.json(&list.behaviour)).collect();
                let said = [or_null(limit), or_null(offset), or_null(total)];
                let reduced_to = fails_at.and_then(|rows| Limit::of(rows as u64));
                page(of, said, &rows, reduced_to).unwrap()
            }
        },
    }
}

fn or_null(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}
