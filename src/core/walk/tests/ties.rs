//! Rows with equal sort keys.

use super::behaviour::{Behaviour, Order};
use super::changing_list::ChangingList;
use super::*;

fn heavy_ties(messages: bool, rows: i64, tied: u16) -> ChangingList {
    ChangingList::new(Behaviour {
        messages,
        rows,
        order: Order::Ties,
        tied,
        deletes: false,
        seed: 7,
        ..Behaviour::default()
    })
}

#[test]
fn rows_that_ties_hide_are_found_by_id_where_ids_are_dense() {
    let mut list = heavy_ties(false, 2_000, 400);
    let walked = concurrent_walk::walk(&mut list, WalkSettings::WHOLE, None, 1_000).unwrap();
    let report = &walked.report;
    assert_eq!(walked.given.len(), 2_000, "{report:?}");
    assert!(report.evidence.rows_found_by_id > 0, "{report:?}");
    let reason = report.reason.as_deref().unwrap();
    assert!(reason.contains("found by fetching ids"), "{reason}");
}

#[test]
fn messages_that_ties_hide_are_counted_once_all_are_found() {
    let mut list = heavy_ties(true, 300, 100);
    let walked = concurrent_walk::walk(&mut list, WalkSettings::WHOLE, None, 1_000).unwrap();
    assert_eq!(walked.report.certificate, Certificate::Counted);
    assert_eq!(walked.given.len(), 300);
}
