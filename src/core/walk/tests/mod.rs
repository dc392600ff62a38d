//! The walk against simulated lists: what those may do, and what must never happen.

mod always;
mod behaviour;
mod cases;
mod changing_list;
mod concurrent_walk;
mod found;
mod imports;
mod plain;
mod properties;
mod tally;
mod ties;

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use serde_json::json;

use super::agreement::sent;
use super::stages::{Fetch, ListWalk, Response};
use super::*;
use crate::api::{Natural, Resource};
use crate::client::Read;
use crate::decode::json::Text;
use crate::decode::page::Page;
use crate::report::Certificate;
use crate::timestamp::Timestamp;

/// A list of users as a service might serve it; it only changes if a test changes it.
#[derive(Debug, Clone)]
struct Simulated {
    ids: Vec<i64>,
    largest_page: usize,
    says_what_it_applied: bool,
    total: Total,
    repeats_last_page_past_end: bool,
    /// Each response spells its rows differently.
    respelled: bool,
    responses: Cell<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Total {
    Exact,
    Null,
    TooSmall,
    TooLarge,
}

impl Simulated {
    fn new(rows: i64) -> Self {
        Self {
            ids: (1..=rows).collect(),
            largest_page: 99,
            says_what_it_applied: true,
            total: Total::Exact,
            repeats_last_page_past_end: false,
            respelled: false,
            responses: Cell::new(0),
        }
    }

    fn answer(&self, offset: u64, limit: Limit) -> Read<Page> {
        let size = usize::from(limit.get()).min(self.largest_page);
        let count = self.ids.len();
        let mut start = usize::try_from(offset).unwrap().min(count);
        if start == count && self.repeats_last_page_past_end {
            start = count.saturating_sub(size);
        }
        let rows = &self.ids[start..(start + size).min(count)];
        let total = match self.total {
            Total::Exact => Some(count),
            Total::Null => None,
            Total::TooSmall => Some(count / 2),
            Total::TooLarge => Some(count * 2 + 7),
        };
        let applied = if self.says_what_it_applied {
            size
        } else {
            limit.get().into()
        };
        self.responses.set(self.responses.get() + 1);
        let response = self.respelled.then(|| self.responses.get());
        let row = |id| json!({"id": id, "reference": response});
        page(json!({
            "limit": applied,
            "offset": offset,
            "total": total,
            "users": rows.iter().map(row).collect::<Vec<_>>(),
        }))
    }
}

fn page(body: serde_json::Value) -> Read<Page> {
    let text = Text::repair(Bytes::from(body.to_string()), None);
    Read {
        value: Page::read(text, Resource::Users).unwrap(),
        sent: sent(List::Users),
    }
}

/// Walks to the end, changing the list after each response; returns the ids, the report, the
/// requests.
fn walk_while(
    mut list: Simulated,
    settings: WalkSettings,
    mut change: impl FnMut(&mut Simulated),
) -> (Vec<i64>, WalkReport, usize) {
    let mut requests = 0;
    let (given, report) = drive(settings, |offset, limit| {
        requests += 1;
        assert!(requests < 10_000, "the walk does not end");
        let answer = list.answer(offset, limit);
        change(&mut list);
        answer
    });
    (given, report, requests)
}

/// Walks over users with one request at a time; returns the ids and the report.
fn drive(
    settings: WalkSettings,
    answer: impl FnMut(u64, Limit) -> Read<Page>,
) -> (Vec<i64>, WalkReport) {
    drive_list(List::Users, settings, answer)
}

fn drive_list(
    list: List,
    settings: WalkSettings,
    mut answer: impl FnMut(u64, Limit) -> Read<Page>,
) -> (Vec<i64>, WalkReport) {
    let mut walk = ListWalk::new(list, settings, Timestamp::now());
    let mut given = Vec::new();
    let mut requests = VecDeque::new();
    loop {
        requests.extend(std::iter::from_fn(|| walk.next_request()));
        let Some(request) = requests.pop_front() else {
            break;
        };
        let response = match request.fetch {
            Fetch::Page { offset, limit } => Response::Page(answer(offset, limit)),
            Fetch::Row { .. } => Response::Row {
                row: None,
                sent: sent(List::Users),
            },
        };
        walk.take(request, response);
        while let Some(page) = walk.next_page() {
            given.extend(page.rows.iter().map(|row| row.id.unwrap_or_default()));
        }
    }
    assert!(walk.is_over());
    (given, walk.report)
}

fn walk(list: Simulated) -> (Vec<i64>, WalkReport, usize) {
    walk_while(list, WalkSettings::WHOLE, |_| {})
}

#[test]
fn a_list_that_fits_one_page_is_a_snapshot() {
    // A full page is followed by a request that shows that it was the last.
    for (rows, most) in [(0, 1), (1, 1), (98, 1), (99, 2)] {
        let (given, report, requests) = walk(Simulated::new(rows));
        assert_eq!((given.len() as i64, requests), (rows, most));
        assert_eq!(report.certificate, Certificate::Snapshot);
        assert_eq!(report.reason, None);
    }
}

#[test]
fn a_page_with_a_repeated_row_or_from_elsewhere_is_no_snapshot() {
    for body in [
        json!({"limit": 99, "offset": 0, "total": 2, "users": [{"id": 1}, {"id": 1}]}),
        json!({"limit": 99, "offset": 5, "total": 1, "users": [{"id": 1}]}),
    ] {
        let (given, report) = drive(WalkSettings::WHOLE, |_, _| page(body.clone()));
        assert_eq!(given, [1]);
        assert_eq!(report.certificate, Certificate::Uncertified);
    }
}

#[test]
fn rows_without_an_id_are_given_and_keep_a_list_from_being_certified() {
    for (total, always_the_same) in [(json!(300), false), (json!(99), false), (json!(null), true)] {
        let (given, report) = drive(WalkSettings::WHOLE, |offset, _| {
            let first = if always_the_same { 0 } else { offset };
            let rows = first..(first + 99).min(300);
            let users: Vec<_> = rows.map(|row| json!({"id": row.to_string()})).collect();
            page(json!({"limit": 99, "offset": offset, "total": total, "users": users}))
        });
        assert!(report.pages <= 5, "{total}");
        assert_eq!(report.certificate, Certificate::Uncertified);
        if !always_the_same {
            assert_eq!(given.len(), 300, "{total}");
            let reason = report.reason.unwrap();
            assert_eq!(reason.matches("the row at offset").count(), 5);
            assert!(
                reason.contains("and 295 more rows cannot be read"),
                "{reason}"
            );
        }
    }
}

#[test]
fn a_server_that_takes_no_notice_of_the_offset_proves_nothing() {
    for rows in [99, 300] {
        let list = Simulated::new(rows);
        let (given, report) = drive(WalkSettings::WHOLE, |_, limit| list.answer(0, limit));
        assert_eq!(given.len(), 99);
        assert_eq!(report.certificate, Certificate::Uncertified);
        // As a plain loop, and what may be spent on proof.
        assert!(report.pages <= 2 + 16 + 8 * 2, "{}", report.pages);
    }
}

#[test]
fn a_total_that_moved_before_it_was_confirmed_is_no_snapshot() {
    let mut total = 99;
    let (_, report) = drive(WalkSettings::WHOLE, |offset, limit| {
        let mut answer = Simulated::new(99).answer(offset, limit);
        answer.value.total = Some(total);
        total = 98;
        answer
    });
    assert_eq!(report.certificate, Certificate::Linked);
}

#[test]
fn a_list_that_grows_behind_a_cached_total_is_linked() {
    let mut list = Simulated::new(3_000);
    let mut responses = 0;
    let (given, report) = drive(WalkSettings::WHOLE, |offset, limit| {
        responses += 1;
        if responses % 2 == 0 {
            list.ids.push(3_000 + responses / 2);
        }
        let mut answer = list.answer(offset, limit);
        answer.value.total = Some(3_000);
        answer
    });
    assert_eq!(given, list.ids);
    assert_eq!(report.certificate, Certificate::Linked, "{report:?}");
    assert!(report.evidence.proving_requests <= 1, "{report:?}");
}

#[test]
fn a_row_that_is_short_is_counted_in_words() {
    let mut list = Simulated::new(250);
    list.total = Total::TooLarge;
    list.largest_page = 50;
    list.says_what_it_applied = false;
    let (_, report, _) = walk(list);
    assert!(report.reason.unwrap().contains("257 short"));
}

#[test]
fn a_row_that_moved_to_the_front_unread_is_found_there() {
    let mut requests = 0;
    let (given, report, _) = walk_while(Simulated::new(300), WalkSettings::WHOLE, |list| {
        requests += 1;
        if requests == 2 {
            let moved = list.ids.remove(250);
            list.ids.insert(0, moved);
        }
    });
    assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), 300);
    assert_eq!(report.certificate, Certificate::Linked);
    assert_eq!(report.evidence.proving_requests, 1);
}

#[test]
fn messages_whose_total_fell_are_not_counted_even_if_it_rose_again() {
    let mut list = Simulated::new(250);
    let mut responses = 0;
    let messages = List::Messages {
        user_id: Natural::new("user_id", 42).unwrap(),
    };
    let (given, report) = drive_list(messages, WalkSettings::WHOLE, |offset, limit| {
        let answer = list.answer(offset, limit);
        responses += 1;
        match responses {
            1 => drop(list.ids.remove(50)),
            2 => list.ids.insert(100, 1000),
            _ => {}
        }
        answer
    });
    // As many rows are held as the last total counts, and one of those is not held.
    assert_eq!((given.len(), report.total_last), (250, Some(250)));
    assert!(!given.contains(&1000));
    assert_eq!(report.certificate, Certificate::Linked);
}

#[test]
fn max_items_takes_nothing_from_a_list_that_is_shorter() {
    let settings = WalkSettings {
        max_items: Some(120),
        ..WalkSettings::WHOLE
    };
    let (given, report, _) = walk_while(Simulated::new(50), settings, |_| {});
    assert_eq!(given.len(), 50);
    assert_eq!(report.certificate, Certificate::Snapshot);
}

#[test]
fn a_server_that_rounds_the_offset_down_to_its_pages_loses_no_row() {
    for rows in [100, 197, 400] {
        let list = Simulated::new(rows);
        let (given, report) = drive(WalkSettings::WHOLE, |offset, limit| {
            let mut answer = list.answer(offset / 99 * 99, limit);
            answer.value.offset = None;
            answer
        });
        let given: BTreeSet<i64> = given.into_iter().collect();
        assert_eq!(given.len() as i64, rows, "{report:?}");
    }
}
