use super::*;
use crate::api::{Limit, List};
use crate::walk::agreement;
use crate::walk::stages::{Fetch, Request, Response};

/// The total of the response of this number to a request that was sent after as many others.
fn arrival(sent_after: u64, number: u64, total: u64) -> ArrivedPage {
    let said = ["99".into(), "0".into(), total.to_string()];
    let page = agreement::page(List::Users, said, &[], None);
    let Some(Response::Page(read)) = page else {
        panic!("no page");
    };
    let (offset, limit) = (0, Limit::LARGEST);
    let request = Request {
        fetch: Fetch::Page { offset, limit },
        sent_after,
        total_before: 0,
    };
    ArrivedPage::of(&request, offset, limit, number, read)
}

#[test]
fn a_total_counts_if_it_was_requested_after_the_rows_had_come() {
    let counts = |pages: &[(u64, u64, u64, bool)], held: u64, found_by_id: u64| {
        let mut totals = Totals::default();
        for (sent_after, number, total, fresh) in pages {
            totals.take(&arrival(*sent_after, *number, *total));
            if *fresh {
                totals.note_fresh(*number);
            }
        }
        totals.count(held, found_by_id)
    };
    // Its own rows and its total are from one instant.
    assert!(counts(&[(0, 1, 140, true), (1, 2, 150, true)], 150, 0));
    let side_by_side = [(0, 1, 190, true), (1, 2, 200, true), (1, 3, 200, true)];
    assert!(!counts(&side_by_side, 200, 0));
    let late = [&side_by_side[..], &[(3, 4, 200, false)]].concat();
    assert!(counts(&late, 200, 0) && !counts(&late, 199, 0));
    // One that never changed counts the rows of pages, not those that were found by id.
    let unchanged = [(0, 1, 150, true), (0, 2, 150, true)];
    assert!(counts(&unchanged, 150, 0) && !counts(&unchanged, 150, 1));
}
