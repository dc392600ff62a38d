//! Regression tests: walks that once failed. What a case leaves out is as by default.

use super::always::{Outcome, replay};

#[test]
fn walks_that_once_did_what_no_walk_may_do_pass() {
    replay_each(ONCE_FORBIDDEN);
}

#[test]
fn walks_that_once_lost_rows_lose_none() {
    let outcomes = replay_each(ONCE_LOST_ROWS);
    assert!(outcomes.iter().all(|walk| walk.lost == 0), "{outcomes:?}");
}

fn replay_each(cases: &str) -> Vec<Outcome> {
    let cases = cases.lines().filter(|line| line.starts_with('{'));
    cases.map(replay).collect()
}

const ONCE_FORBIDDEN: &str = r#"
a page whose rows are all hidden is not the end
{"behaviour": {"rows": 73, "largest_page": 17, "short_pages": true, "hidden": 21, "seed": 5804854183273049037}}
a growing list is not followed for ever past a capped total
{"behaviour": {"rows": 137, "total": "Capped", "churn": "Heavy", "largest_page": 91, "reported": "Requested", "seed": 34288}}
a growing list is not followed for ever before a large total
{"behaviour": {"rows": 140, "total": "TooLarge", "churn": "Heavy", "largest_page": 49, "seed": 16289719841030384449}}
a small list without a total is not read over and over
{"behaviour": {"rows": 6, "total": "Null", "churn": "Heavy", "seed": 34288}}
small pages that hide rows lose none
{"behaviour": {"messages": true, "rows": 31, "deletes": false, "hidden": 12, "seed": 918}, "page_size": 3}
short pages before a large total lose no row
{"behaviour": {"rows": 504, "total": "TooLarge", "short_pages": true, "seed": 66586}, "concurrent_pages": 5}
bursts at the front of an ordinary list are read within the bound
{"behaviour": {"messages": true, "rows": 811, "order": "NewestFirst", "churn": "Bursts", "deletes": false, "seed": 5732904619393580359}, "concurrent_pages": 6}
an empty first page below the total is not the end
{"behaviour": {"rows": 2, "hidden": 12, "seed": 6531311974246921063}, "page_size": 1}
rows of a list at rest are given in its order
{"behaviour": {"messages": true, "rows": 308, "deletes": false, "short_pages": true, "seed": 5629097191692861097}, "page_size": 41, "concurrent_pages": 3}
a list that shrinks before its last page does not fail the walk
{"behaviour": {"rows": 61, "churn": "Heavy", "largest_page": 62, "reported": "Nothing", "past_end": "Refused", "seed": 22706}}
a refusal behind the last row does not fail the walk
{"behaviour": {"rows": 1, "total": "TooLarge", "past_end": "Refused", "seed": 58215}}
rows that a link given up brings reach the reader
{"behaviour": {"messages": true, "rows": 818, "order": "NewestFirst", "churn": "Bursts", "deletes": false, "seed": 17988552570835447096}, "concurrent_pages": 16}
a first page that comes again past the end hides no row
{"behaviour": {"messages": true, "rows": 595, "total": "TooLarge", "deletes": false, "short_pages": true, "past_end": "FirstPage", "seed": 2397}, "concurrent_pages": 8}
an end that is not linked proves nothing
{"behaviour": {"rows": 1270, "order": "UpdatedLast", "churn": "Bursts", "largest_page": 55, "reported": "Nothing", "past_end": "LastPage", "seed": 14463212337318495136}, "concurrent_pages": 3, "killed_after": 6}
an empty page does not prove the end of a list that lost a row
{"behaviour": {"messages": true, "rows": 69, "churn": "Bursts", "short_pages": true, "seed": 12591197207217039042}, "page_size": 13}
"#;

const ONCE_LOST_ROWS: &str = r#"
a first page with new rows that comes from past the end is not the end
{"behaviour": {"rows": 740, "order": "UpdatedFirst", "churn": "Bursts", "past_end": "FirstPage", "seed": 14282339218185417732}}
a first page that comes before a cached total is not the end
{"behaviour": {"rows": 299, "total": "Cached", "churn": "Bursts", "past_end": "FirstPage", "seed": 16900605432815476136}}
rows that are read again after a new beginning are not the end
{"behaviour": {"rows": 1392, "order": "NewestFirst", "churn": "Heavy", "tied": 122, "largest_page": 10, "reported": "Nothing", "short_pages": true, "seed": 9440516557437366746}, "concurrent_pages": 4}
an empty page behind rows that were deleted is not the end
{"behaviour": {"rows": 1546, "order": "UpdatedLast", "churn": "Bursts", "hidden": 25, "seed": 9047559042146539796}, "concurrent_pages": 16}
"#;
