//! Tests of the parts of a walk; of whole walks, see `walk/tests`.

use bytes::Bytes;
use roaring::RoaringTreemap;
use serde_json::{Value, json};

use super::arrived::ArrivedPage;
use super::chain::{Chain, content};
use super::delivery::Delivery;
use super::page_length::PageLength;
use super::totals::Totals;
use super::{Fetch, Request};
use crate::api::{Limit, List, Resource};
use crate::client::{Read, Sent};
use crate::decode::json::Text;
use crate::decode::page::{Page, Row};
use crate::redact::Redactor;
use crate::report::WalkReport;
use crate::timestamp::Timestamp;

/// The response of this number, with this body, to a request that was sent after as many others.
fn arrival(offset: u64, body: &str, sent_after: u64, number: u64) -> ArrivedPage {
    let text = Text::repair(Bytes::from(body.to_owned()), None);
    let read = Read {
        value: Page::read(text, Resource::Users).unwrap(),
        sent: Sent {
            endpoint: List::Users.page(offset, Limit::LARGEST),
            attempts: Vec::new(),
            redactor: Redactor::default(),
            stored_at: None,
        },
    };
    let limit = Limit::LARGEST;
    let request = Request {
        fetch: Fetch::Page { offset, limit },
        sent_after,
        total_before: 0,
    };
    ArrivedPage::of(&request, offset, limit, number, read)
}

fn page(offset: u64, ids: &[i64], total: i64) -> ArrivedPage {
    let users: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    let body = json!({"limit": 99, "offset": offset, "total": total, "users": users});
    arrival(offset, &body.to_string(), 0, 1)
}

fn rows(ids: &[i64]) -> Vec<Row> {
    page(0, ids, 0).rows
}

fn edited(id: i64) -> Row {
    let body = json!({"users": [{"id": id, "name": "Ada"}]}).to_string();
    arrival(0, &body, 0, 1).rows.remove(0)
}

fn chain(ids: &[i64]) -> Chain {
    let mut chain = Chain::default();
    chain.join(&rows(ids), 1);
    chain
}

#[test]
fn a_page_shares_the_rows_that_are_unchanged_and_in_order() {
    let chain = chain(&[1, 2, 3, 4, 5]);
    for (ids, unchanged, inversions) in [
        (&[4, 5, 6][..], 2, 0),
        (&[5, 6, 7], 1, 0),
        (&[5, 4, 6], 2, 1),
        (&[7, 8], 0, 0),
    ] {
        let shared = chain.compare(&rows(ids));
        assert_eq!(
            (shared.unchanged, shared.inversions),
            (unchanged, inversions),
            "{ids:?}"
        );
    }
    assert_eq!(chain.compare(&[edited(5)]).unchanged, 0);
}

#[test]
fn a_row_between_shared_ones_that_a_page_lacks_has_vanished_unless_it_is_younger() {
    let mut chain = chain(&[1, 2, 3, 4, 5]);
    let vanished = |chain: &Chain, ids: &[i64], sent_after| {
        let rows = rows(ids);
        let vanished = chain.vanished(&chain.compare(&rows), &rows, sent_after);
        vanished.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(vanished(&chain, &[2, 4, 5], 1), [3]);
    assert!(vanished(&chain, &[2, 4, 5], 0).is_empty());
    assert!(vanished(&chain, &[4, 5, 6], 1).is_empty());
    chain.join(&rows(&[5, 6, 7, 8]), 2);
    assert!(vanished(&chain, &[4, 5, 7], 1).is_empty());
}

#[test]
fn a_page_extends_the_chain_behind_its_last_shared_row() {
    let mut chain = chain(&[1, 2, 3, 4, 5]);
    let joined = chain.join(&rows(&[4, 5, 6, 7]), 2);
    assert_eq!((joined.appended, joined.behind), (2, 0));
    // Known rows, with a new one between them.
    let joined = chain.join(&rows(&[2, 9, 3]), 3);
    assert_eq!((joined.appended, joined.behind), (0, 4));
    assert!(chain.knows_all(&rows(&[9])));
    // Edited where it is, at the end of a page.
    let joined = chain.join(&[&rows(&[2, 3])[..], &[edited(4)]].concat(), 4);
    assert_eq!((joined.appended, joined.behind), (0, 3));
    // Others follow now.
    let joined = chain.join(&rows(&[5, 6, 20, 21]), 5);
    assert_eq!((joined.appended, joined.behind), (2, 0));
    assert!(!chain.knows_all(&rows(&[7])));
    assert_eq!(chain.before_end(1), Some(21));
}

#[test]
fn a_chain_without_hashes_knows_the_rows_before_it_by_their_ids() {
    let mut end = chain(&[1, 2, 3, 4, 5]).end(2);
    end.iter_mut().for_each(|row| row.forget_content());
    let mut chain = Chain::resumed(&end, false);
    assert_eq!(chain.compare(&[edited(4), edited(5)]).unchanged, 2);
    // The rows that it reads itself have their hashes.
    chain.join(&rows(&[4, 5, 6]), 1);
    assert_eq!(chain.compare(&[edited(6)]).unchanged, 0);
    assert_ne!(content(&edited(6)), content(&rows(&[6])[0]));
}

#[test]
fn the_most_rows_that_a_service_sends_are_known_once_two_pages_were_followed() {
    let mut length = PageLength::default();
    length.note_page(40, 99);
    length.note_cut(40);
    assert!(length.is_cut_short() && length.largest().is_none());
    length.note_page(40, 99);
    length.note_cut(40);
    assert!(!length.is_cut_short());
    assert_eq!(length.largest(), Some(40));
    // A longer one shows that the others were cut short.
    length.note_page(60, 99);
    assert!(length.is_cut_short() && length.largest().is_none());
    let mut length = PageLength::default();
    length.note_page(99, 99);
    assert_eq!(length.largest(), Some(99));
}

#[test]
fn a_total_counts_if_it_was_requested_after_the_rows_had_come() {
    let taken = |pages: &[(u64, u64, i64, bool)]| {
        let mut totals = Totals::default();
        for (sent_after, number, total, fresh) in pages {
            let body = json!({"total": total, "users": []}).to_string();
            totals.take(&arrival(0, &body, *sent_after, *number));
            if *fresh {
                totals.note_fresh(*number);
            }
        }
        totals
    };
    // Its own rows and its total are from one instant.
    assert!(taken(&[(0, 1, 140, true), (1, 2, 150, true)]).count(150, 0));
    let side_by_side = [(0, 1, 190, true), (1, 2, 200, true), (1, 3, 200, true)];
    assert!(!taken(&side_by_side).count(200, 0));
    let late = [&side_by_side[..], &[(3, 4, 200, false)]].concat();
    assert!(taken(&late).count(200, 0) && !taken(&late).count(199, 0));
    // One that never changed counts the rows of pages, not those that were found by id.
    assert!(taken(&[(0, 1, 150, true), (0, 2, 150, true)]).count(150, 0));
    assert!(!taken(&[(0, 1, 150, true), (0, 2, 150, true)]).count(150, 1));
}

#[test]
fn a_row_that_an_earlier_walk_delivered_is_still_one_that_cannot_be_read() {
    let known = RoaringTreemap::from_iter([1, 2]);
    let mut delivery = Delivery::new(List::Users, None);
    delivery.known = known;
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let text = format!(r#"{{"total":2,"users":[{{"id":1}},{{"id":2,"name":{deep}}}]}}"#);
    let mut report = WalkReport::start(Timestamp::now());
    for _ in 0..2 {
        assert_eq!(delivery.deliver(arrival(0, &text, 0, 1), &mut report), 0);
    }
    assert_eq!(report.unreadable_rows, 1);
    assert!(delivery.unreadable.in_words().contains("id 2"));
}
