//! The walk against simulated lists: what those may do, and what must never happen.

mod always;
mod cases;
mod changing_list;
mod concurrent_walk;
mod found;

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};

use self::cases::{Behaviour, Order};
use self::changing_list::ChangingList;
use super::stages::{Fetch, ListWalk};
use super::*;
use crate::api::Natural;
use crate::fuzz_seeds::fuzz_seeds;
use crate::report::Certificate;
use crate::timestamp::Timestamp;

/// The page of a list of these ids, as a service sends it.
fn body(list: List, ids: &[i64], offset: u64, limit: u64) -> Value {
    let rows = ids.iter().skip(offset as usize).take(limit as usize);
    let rows: Vec<Value> = rows.map(|id| json!({"id": id})).collect();
    json!({"limit": limit, "offset": offset, "total": ids.len(), list.resource().key(): rows})
}

/// Walks over a list with one request at a time, whose offset and limit are answered with a page;
/// returns the ids and the report.
fn drive(list: List, answer: impl FnMut(u64, u64) -> Value) -> (Vec<i64>, WalkReport) {
    let walk = ListWalk::new(list, WalkSettings::WHOLE, Timestamp::now());
    finish(walk, list, answer)
}

fn finish(
    mut walk: ListWalk,
    list: List,
    mut answer: impl FnMut(u64, u64) -> Value,
) -> (Vec<i64>, WalkReport) {
    let mut given = Vec::new();
    let mut requests = VecDeque::new();
    loop {
        requests.extend(std::iter::from_fn(|| walk.next_request()));
        let Some(request) = requests.pop_front() else {
            break;
        };
        let response = match request.fetch {
            Fetch::Page { offset, limit } => {
                let page = answer(offset, limit.get().into());
                let said = ["limit", "offset", "total"].map(|name| page[name].to_string());
                let rows = page[list.resource().key()].as_array().unwrap();
                let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
                agreement::page(list, said, &rows, None).unwrap()
            }
            Fetch::Row { .. } => agreement::row(list, None),
        };
        walk.take(request, response);
        while let Some(page) = walk.next_page() {
            given.extend(page.rows.iter().map(|row| row.id.unwrap_or_default()));
        }
    }
    assert!(walk.is_over());
    (given, walk.report)
}

fn ids(rows: i64) -> Vec<i64> {
    (1..=rows).collect()
}

#[test]
fn a_list_that_fits_one_page_is_a_snapshot() {
    // A full page is followed by a request that shows that it was the last.
    for (rows, requests) in [(0, 1), (1, 1), (98, 1), (99, 2)] {
        let ids = ids(rows);
        let (given, report) = drive(List::Users, |offset, limit| {
            body(List::Users, &ids, offset, limit)
        });
        assert_eq!((&given, report.requests), (&ids, requests));
        assert_eq!(report.certificate, Certificate::Snapshot);
        assert_eq!(report.reason, None);
    }
}

#[test]
fn a_page_with_a_repeated_row_or_from_elsewhere_is_no_snapshot() {
    for page in [
        json!({"limit": 99, "offset": 0, "total": 2, "users": [{"id": 1}, {"id": 1}]}),
        json!({"limit": 99, "offset": 5, "total": 1, "users": [{"id": 1}]}),
    ] {
        let (given, report) = drive(List::Users, |_, _| page.clone());
        assert_eq!(given, [1]);
        assert_eq!(report.certificate, Certificate::Uncertified);
    }
}

#[test]
fn rows_without_an_id_are_given_and_keep_a_list_from_being_certified() {
    for (total, always_the_same) in [(json!(300), false), (json!(99), false), (json!(null), true)] {
        let (given, report) = drive(List::Users, |offset, _| {
            let first = if always_the_same { 0 } else { offset };
            let rows = first..(first + 99).min(300);
            let users: Vec<_> = rows.map(|row| json!({"id": row.to_string()})).collect();
            json!({"limit": 99, "offset": offset, "total": total, "users": users})
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
fn a_row_that_a_killed_walk_delivered_is_still_one_that_cannot_be_read() {
    let held = [1, 2].into_iter().collect();
    let checkpoint = Checkpoint::default();
    let resume = Resume { checkpoint, held };
    let walk = ListWalk::resumed(List::Users, WalkSettings::WHOLE, resume, Timestamp::now());
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let rows = json!([{"id": 1}, {"id": 2, "name": deep}]);
    let (given, report) = finish(
        walk,
        List::Users,
        |offset, limit| json!({"limit": limit, "offset": offset, "total": 2, "users": rows}),
    );
    assert_eq!((given.len(), report.unreadable_rows), (0, 1));
    assert!(report.reason.unwrap().contains("id 2"));
}

#[test]
fn a_server_that_takes_no_notice_of_the_offset_proves_nothing() {
    for rows in [99, 300] {
        let (given, report) = drive(List::Users, |_, limit| {
            body(List::Users, &ids(rows), 0, limit)
        });
        assert_eq!(given.len(), 99);
        assert_eq!(report.certificate, Certificate::Uncertified);
        // As a plain loop, and what may be spent on proof.
        assert!(report.pages <= 2 + 16 + 8 * 2, "{}", report.pages);
    }
}

#[test]
fn a_server_that_rounds_the_offset_down_to_its_pages_loses_no_row() {
    for rows in [100, 197, 400] {
        let (given, report) = drive(List::Users, |offset, limit| {
            let mut page = body(List::Users, &ids(rows), offset / 99 * 99, limit);
            page["offset"] = Value::Null;
            page
        });
        let given: BTreeSet<i64> = given.into_iter().collect();
        assert_eq!(given.len() as i64, rows, "{report:?}");
    }
}

#[test]
fn a_list_that_each_response_spells_anew_is_whole_and_not_linked() {
    for (rows, pages) in [(400, 5), (1_200, 13)] {
        let ids = ids(rows);
        let mut responses = 0;
        let (given, report) = drive(List::Users, |offset, limit| {
            responses += 1;
            let mut page = body(List::Users, &ids, offset, limit);
            for row in page["users"].as_array_mut().unwrap() {
                row["reference"] = json!(responses);
            }
            page
        });
        assert_eq!(given, ids);
        assert_ne!(report.certificate, Certificate::Linked);
        assert!(report.requests <= 2 * (pages + 16), "{report:?}");
    }
}

#[test]
fn a_total_that_moved_before_it_was_confirmed_is_no_snapshot() {
    let mut total = 99;
    let (_, report) = drive(List::Users, |offset, limit| {
        let mut page = body(List::Users, &ids(99), offset, limit);
        page["total"] = json!(total);
        total = 98;
        page
    });
    assert_eq!(report.certificate, Certificate::Linked);
}

#[test]
fn a_row_that_is_short_is_counted_in_words() {
    let (_, report) = drive(List::Users, |offset, limit| {
        let mut page = body(List::Users, &ids(250), offset, limit);
        page["total"] = json!(507);
        page
    });
    assert!(report.reason.unwrap().contains("257 short"));
}

#[test]
fn messages_whose_total_fell_are_not_counted_even_if_it_rose_again() {
    let user_id = Natural::from(42);
    let list = List::Messages { user_id };
    let (mut ids, mut responses) = (ids(250), 0);
    let (given, report) = drive(list, |offset, limit| {
        let page = body(list, &ids, offset, limit);
        responses += 1;
        match responses {
            1 => drop(ids.remove(50)),
            2 => ids.insert(100, 1000),
            _ => {}
        }
        page
    });
    // As many rows are held as the last total counts, and one of those is not held.
    assert_eq!((given.len(), report.total_last), (250, Some(250)));
    assert!(!given.contains(&1000));
    assert_eq!(report.certificate, Certificate::Linked);
}

#[test]
fn rows_that_ties_hide_are_found_by_id_where_ids_are_dense_and_then_messages_are_counted() {
    for (messages, rows, tied) in [(false, 2_000, 400), (true, 300, 100)] {
        let mut list = ChangingList::new(Behaviour {
            messages,
            rows,
            order: Order::Ties,
            tied,
            deletes: false,
            seed: 7,
            ..Behaviour::default()
        });
        let walked = concurrent_walk::walk(&mut list, WalkSettings::WHOLE, None, 1_000).unwrap();
        let report = &walked.report;
        assert_eq!(walked.given.len() as i64, rows, "{report:?}");
        match &report.reason {
            None => assert_eq!(report.certificate, Certificate::Counted),
            Some(reason) => assert!(reason.contains("found by fetching ids"), "{reason}"),
        }
        assert_eq!(report.reason.is_none(), messages);
        assert!(
            messages || report.evidence.rows_found_by_id > 0,
            "{report:?}"
        );
    }
}

#[test]
fn what_the_fuzzer_starts_from_is_certified_only_if_it_is_held() {
    let seeds = fuzz_seeds("walk").into_iter();
    let certificates = seeds.map(|seed| agreement::check(&seed));
    let certified = certificates.filter(|proved| *proved != Certificate::Uncertified);
    assert!(certified.count() >= 8);
}
