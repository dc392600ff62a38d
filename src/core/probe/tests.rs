//! The end of a list, its order, and what a sample of users shows.

use proptest::prelude::*;
use proptest::sample::SizeRange;
use serde_json::{Value, json};

use super::ends::{MOST_REQUESTS, Search};
use super::order::{self, is_stable};
use super::probe_client::Listed;
use super::profile::Direction;
use super::user_sample::spread;
use crate::api::Limit;

#[derive(Debug, Clone, Copy)]
enum Past {
    Empty,
    Refused,
    LastPage,
    LastPageWithoutOffset,
}

/// The response of a service that serves this many rows; `None` is a refusal.
fn serve(end: u64, past: Past, requested_offset: u64, limit: u64, short: bool) -> Option<Listed> {
    let last = (end - 1) / limit * limit;
    let start = match past {
        _ if requested_offset < end => requested_offset,
        Past::Empty => end,
        Past::Refused => return None,
        Past::LastPage | Past::LastPageWithoutOffset => last,
    };
    let count = limit.min(end - start);
    let count = if short && count > 1 { count - 1 } else { count };
    Some(Listed {
        requested_offset,
        limit: Some(limit),
        offset: match past {
            Past::LastPageWithoutOffset => None,
            Past::Empty => Some(requested_offset),
            _ => Some(start),
        },
        total: None,
        rows: (start..start + count).map(|id| json!({"id": id})).collect(),
    })
}

fn found(end: u64, total: Option<u64>, past: Past, limit: u8, short: &[bool]) -> (u64, u32) {
    let limit = Limit::new("limit", limit.into()).unwrap();
    let rows = u64::from(limit.get());
    let first = serve(end, past, 0, rows, short[0]).unwrap();
    let mut pages = vec![first];
    let mut search = Search::new(&pages, total, limit);
    for request in 1..=MOST_REQUESTS {
        let requested_offset = search.next();
        let turn = short[request as usize % short.len()];
        match serve(end, past, requested_offset, rows, turn) {
            Some(page) => {
                search.page(&page, limit);
                pages.push(page);
            }
            None => search.nothing_at(requested_offset),
        }
        if let Some(at) = search.end() {
            return (at, request);
        }
    }
    panic!("not found");
}

proptest! {
    #[test]
    fn the_end_is_found_whatever_the_total_says(
        end in prop_oneof![1_u64..300, 1_u64..100_000_000],
        total in proptest::option::of(prop_oneof![0_u64..300, 0_u64..200_000_000]),
        past in prop_oneof![
            Just(Past::Empty), Just(Past::Refused), Just(Past::LastPage)
        ],
        limit in 1_u8..=99,
        short in proptest::collection::vec(any::<bool>(), 1..7),
    ) {
        prop_assert_eq!(found(end, total, past, limit, &short).0, end);
    }

    #[test]
    fn a_last_page_that_comes_again_is_no_new_one(end in 1_u64..5_000, limit in 2_u8..=99) {
        let (at, _) = found(end, Some(end), Past::LastPageWithoutOffset, limit, &[false]);
        prop_assert_eq!(at, end);
    }
}

#[test]
fn a_true_total_costs_two_requests() {
    assert_eq!(found(250, Some(250), Past::Empty, 99, &[false]), (250, 2));
    assert_eq!(found(7, Some(7), Past::Empty, 99, &[false]), (7, 1));
}

fn order(rows: &[Value]) -> Option<(&'static str, Direction, bool)> {
    let order = order::find(&[rows.iter().collect()])?;
    Some((order.field, order.direction, order.exact))
}

fn by(field: &str, values: Vec<Value>) -> Vec<Value> {
    // A distinct id for each row, in no order.
    let ids = [5, 1, 9, 3, 7, 2, 8, 4, 6, 10];
    let rows = values.into_iter().zip(ids);
    rows.map(|(value, id)| json!({"id": id, field: value}))
        .collect()
}

#[test]
fn the_field_is_found_whatever_its_type() {
    let exact = |field, direction| Some((field, direction, true));
    let instants = (0..9).map(|day| json!(format!("2024-01-0{}T00:00:00Z", 9 - day)));
    let rows = by("created_at", instants.collect());
    assert_eq!(order(&rows), exact("created_at", Direction::Descending));
    let names = "Ada bob Cleo dora Emil fritz Grace hugo".split(' ');
    let rows = by("name", names.map(|name| json!(name)).collect());
    assert_eq!(order(&rows), exact("name", Direction::Ascending));
    let text_ids: Vec<Value> = (1..15).map(|id| json!({"id": id.to_string()})).collect();
    assert_eq!(order(&text_ids), exact("id", Direction::Ascending));
}

#[test]
fn equal_values_and_nulls_break_no_order() {
    let ids = [Some(1), Some(1), None, Some(2), Some(3), Some(5), Some(9)];
    let rows: Vec<Value> = ids.map(|id| json!({"id": id})).to_vec();
    assert_eq!(order(&rows), Some(("id", Direction::Ascending, true)));
}

#[test]
fn few_rows_prove_no_order() {
    let rows: Vec<Value> = (0..4).map(|id| json!({"id": id})).collect();
    assert_eq!(order(&rows), None);
    // Many short lists together are enough.
    let short: Vec<Vec<&Value>> = (0..7).map(|_| rows.iter().take(2).collect()).collect();
    assert!(order::find(&short).is_some());
    assert_eq!(order::find(&[]), None);
}

#[test]
fn a_coarse_order_is_a_rough_one() {
    let rows: Vec<Value> = (0..40).map(|place| json!({"id": place ^ 7})).collect();
    assert_eq!(order(&rows), Some(("id", Direction::Ascending, false)));
    let rows: Vec<Value> = (0..40)
        .map(|place| json!({"id": place * 23 % 41}))
        .collect();
    assert_eq!(order(&rows), None);
}

#[test]
fn rows_that_come_and_go_leave_an_order_stable() {
    let ids = |range: std::ops::Range<u32>| range.map(|id| id.to_string()).collect::<Vec<_>>();
    assert_eq!(is_stable(&ids(0..9), &ids(0..9)), Some(true));
    assert_eq!(is_stable(&ids(0..9), &ids(2..11)), Some(true));
    let mut turned = ids(0..9);
    turned.swap(3, 4);
    assert_eq!(is_stable(&ids(0..9), &turned), Some(false));
    assert_eq!(is_stable(&ids(0..9), &ids(50..59)), Some(false));
    assert_eq!(is_stable(&ids(0..4), &ids(0..4)), None);
}

proptest! {
    #[test]
    fn rows_by_chance_are_in_no_order(
        ids in proptest::collection::hash_set(any::<u32>(), SizeRange::from(30..60)),
    ) {
        let rows: Vec<Value> = ids.into_iter().map(|id| json!({"id": id})).collect();
        prop_assert_eq!(order(&rows), None);
    }
}

#[test]
fn a_sample_reaches_from_the_first_row_to_the_last() {
    assert_eq!(spread((0..100).collect(), 4), [0, 33, 66, 99]);
    assert_eq!(spread(vec![1, 2], 9), [1, 2]);
    assert_eq!(spread(vec![1, 2], 1), [1]);
    assert!(spread(vec![1, 2], 0).is_empty());
}
