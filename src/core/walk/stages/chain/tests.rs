use std::sync::Arc;

use super::*;
use crate::api::Resource;

fn row(id: i64, name: &str) -> Row {
    let json = format!(r#"{{"id":{id},"name":"{name}"}}"#);
    Row::alone(Arc::new(json), Resource::Users).unwrap()
}

fn rows(ids: &[i64]) -> Vec<Row> {
    ids.iter().map(|id| row(*id, "Bo")).collect()
}

#[test]
fn a_page_shares_the_rows_that_are_unchanged_and_in_order() {
    let mut chain = Chain::default();
    chain.join(&rows(&[1, 2, 3, 4, 5]), 1);
    for (ids, unchanged, inversions) in [
        (&[4, 5, 6][..], 2, 0),
        (&[5, 6, 7], 1, 0),
        (&[5, 4, 6], 2, 1),
        (&[7, 8], 0, 0),
    ] {
        let shared = chain.compare(&rows(ids));
        let found = (shared.unchanged, shared.inversions);
        assert_eq!(found, (unchanged, inversions), "{ids:?}");
    }
    assert_eq!(chain.compare(&[row(5, "Ada")]).unchanged, 0);
}

#[test]
fn a_row_between_shared_ones_that_a_page_lacks_has_vanished_unless_it_is_younger() {
    let mut chain = Chain::default();
    chain.join(&rows(&[1, 2, 3, 4, 5]), 1);
    chain.join(&rows(&[5, 6, 7, 8]), 2);
    for (ids, sent_after, expected) in [
        (&[2, 4, 5][..], 1, &[3][..]),
        (&[2, 4, 5], 0, &[]),
        (&[4, 5, 6], 1, &[]),
        (&[4, 5, 7], 1, &[]),
    ] {
        let rows = rows(ids);
        let vanished = chain.vanished(&chain.compare(&rows), &rows, sent_after);
        let vanished: Vec<i64> = vanished.into_iter().map(|(id, _)| id).collect();
        assert_eq!(vanished, expected, "{ids:?}");
    }
}

#[test]
fn a_chain_without_hashes_knows_the_rows_before_it_by_their_ids() {
    let mut chain = Chain::default();
    chain.join(&[row(4, "Bo"), row(5, "Bo")], 1);
    let mut end = chain.end(2);
    end.iter_mut().for_each(Remembered::forget_content);
    let mut chain = Chain::resumed(&end, false);
    assert_eq!(chain.compare(&[row(4, "Ada"), row(5, "Ada")]).unchanged, 2);
    // The rows that it reads itself have their hashes.
    chain.join(&[row(5, "Ada"), row(6, "Ada")], 1);
    assert_eq!(chain.compare(&[row(6, "Bo")]).unchanged, 0);
}
