//! Regression tests: walks that once failed.

use super::always::{replay, replay_whole};

#[test]
fn a_page_whose_rows_are_all_hidden_is_not_the_end() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 73, "order": "OldestFirst", "total": "Exact", "churn": "None", "deletes": true,
             "largest_page": 17, "reported": "Applied", "short_pages": true, "hidden": 21, "past_end": "Empty",
             "seed": 5804854183273049037},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_growing_list_is_not_followed_for_ever_past_a_capped_total() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 137, "order": "OldestFirst", "total": "Capped", "churn": "Heavy", "deletes": true,
             "largest_page": 91, "reported": "Requested", "short_pages": false, "hidden": 0, "past_end": "Empty",
             "seed": 34288},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_growing_list_is_not_followed_for_ever_past_a_small_total() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 511, "order": "NewestFirst", "total": "TooSmall", "churn": "Heavy", "deletes": true,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "Empty",
             "seed": 83165},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_growing_list_is_not_followed_for_ever_before_a_large_total() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 140, "order": "OldestFirst", "total": "TooLarge", "churn": "Heavy", "deletes": true,
             "largest_page": 49, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "Empty",
             "seed": 16289719841030384449},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn what_lies_past_a_capped_total_does_not_raise_the_bound() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 293, "order": "OldestFirst", "total": "Capped", "churn": "Heavy", "deletes": true,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "Empty",
             "seed": 74237},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_burst_at_the_front_is_not_read_again_page_by_page() {
    replay(
        r#"{"behaviour": {"messages": true, "rows": 1177, "order": "NewestFirst", "total": "Exact", "churn": "Bursts", "deletes": false,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "Empty",
             "seed": 22706},
            "page_size": 99, "concurrent_pages": 4, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn fills_do_not_raise_the_bound() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 317, "order": "OldestFirst", "total": "Exact", "churn": "Heavy", "deletes": true,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 29, "past_end": "Empty",
             "seed": 22706},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_small_list_without_a_total_is_not_read_over_and_over() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 6, "order": "OldestFirst", "total": "Null", "churn": "Heavy", "deletes": true,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "Empty",
             "seed": 34288},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_small_list_with_a_large_total_is_not_read_over_and_over() {
    replay(
        r#"{"behaviour": {"messages": true, "rows": 2, "order": "OldestFirst", "total": "TooLarge", "churn": "Heavy", "deletes": false,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "Empty",
             "seed": 3261},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn small_pages_that_hide_rows_lose_none() {
    replay(
        r#"{"behaviour": {"messages": true, "rows": 31, "order": "OldestFirst", "total": "Exact", "churn": "None", "deletes": false,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 12, "past_end": "Empty",
             "seed": 918},
            "page_size": 3, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn short_pages_before_a_large_total_lose_no_row() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 504, "order": "OldestFirst", "total": "TooLarge", "churn": "None", "deletes": true,
             "largest_page": 99, "reported": "Applied", "short_pages": true, "hidden": 0, "past_end": "Empty",
             "seed": 66586},
            "page_size": 99, "concurrent_pages": 5, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_clamped_list_by_updated_at_is_read_within_the_bound() {
    replay(
        r#"{"behaviour": {"messages": true, "rows": 107, "order": "UpdatedFirst", "total": "Exact", "churn": "Heavy", "deletes": true,
             "largest_page": 20, "reported": "Applied", "short_pages": true, "hidden": 0, "past_end": "Empty",
             "seed": 33445},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_small_page_size_is_read_within_the_bound() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 50, "order": "UpdatedFirst", "total": "Exact", "churn": "Moderate", "deletes": true,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "Empty",
             "seed": 30148},
            "page_size": 4, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn bursts_at_the_front_of_an_ordinary_list_are_read_within_the_bound() {
    replay(
        r#"{"behaviour": {"messages": true, "rows": 811, "order": "NewestFirst", "total": "Exact", "churn": "Bursts", "deletes": false,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "Empty",
             "seed": 5732904619393580359},
            "page_size": 99, "concurrent_pages": 6, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn an_empty_first_page_below_the_total_is_not_the_end() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 2, "order": "OldestFirst", "total": "Exact", "churn": "None", "deletes": true,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 12, "past_end": "Empty",
             "seed": 6531311974246921063},
            "page_size": 1, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn rows_of_a_list_at_rest_are_given_in_its_order() {
    replay(
        r#"{"behaviour": {"messages": true, "rows": 308, "order": "OldestFirst", "total": "Exact", "churn": "None", "deletes": false,
             "largest_page": 99, "reported": "Applied", "short_pages": true, "hidden": 0, "past_end": "Empty",
             "seed": 5629097191692861097},
            "page_size": 41, "concurrent_pages": 3, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_list_that_shrinks_before_its_last_page_does_not_fail_the_walk() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 61, "order": "OldestFirst", "total": "Exact", "churn": "Heavy", "deletes": true,
             "largest_page": 62, "reported": "Nothing", "short_pages": false, "hidden": 0, "past_end": "Refused",
             "seed": 22706},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_refusal_behind_the_last_row_does_not_fail_the_walk() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 1, "order": "OldestFirst", "total": "TooLarge", "churn": "None", "deletes": true,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "Refused",
             "seed": 58215},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn rows_that_a_link_given_up_brings_reach_the_reader() {
    replay(
        r#"{"behaviour": {"messages": true, "rows": 818, "order": "NewestFirst", "total": "Exact", "churn": "Bursts", "deletes": false,
             "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "Empty",
             "seed": 17988552570835447096},
            "page_size": 99, "concurrent_pages": 16, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn bursts_of_deletes_do_not_raise_the_bound() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 953, "order": "OldestFirst", "total": "Exact", "churn": "Bursts", "deletes": true,
             "largest_page": 58, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "Empty",
             "seed": 12368496598350005530},
            "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_first_page_that_comes_again_past_the_end_hides_no_row() {
    replay(
        r#"{"behaviour": {"messages": true, "rows": 595, "order": "OldestFirst", "total": "TooLarge", "churn": "None", "deletes": false,
             "largest_page": 99, "reported": "Applied", "short_pages": true, "hidden": 0, "past_end": "FirstPage",
             "seed": 2397},
            "page_size": 99, "concurrent_pages": 8, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn an_end_that_is_not_linked_proves_nothing() {
    replay(
        r#"{"behaviour": {"messages": false, "rows": 1270, "order": "UpdatedLast", "total": "Exact", "churn": "Bursts", "deletes": true,
             "largest_page": 55, "reported": "Nothing", "short_pages": false, "hidden": 0, "past_end": "LastPage",
             "seed": 14463212337318495136},
            "page_size": 99, "concurrent_pages": 3, "max_items": null, "killed_after": 6}"#,
    );
}

#[test]
fn an_empty_page_does_not_prove_the_end_of_a_list_that_lost_a_row() {
    replay(
        r#"{"behaviour": {"messages": true, "rows": 69, "order": "OldestFirst", "total": "Exact", "churn": "Bursts", "deletes": true,
             "largest_page": 99, "reported": "Applied", "short_pages": true, "hidden": 0, "past_end": "Empty",
             "seed": 12591197207217039042},
            "page_size": 13, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_first_page_with_new_rows_that_comes_from_past_the_end_is_not_the_end() {
    replay_whole(
        r#"{"behaviour": {"messages": false, "rows": 740, "order": "UpdatedFirst", "total": "Exact", "churn": "Bursts", "tied": 8, "deletes": true, "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "FirstPage", "seed": 14282339218185417732}, "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn a_first_page_that_comes_before_a_cached_total_is_not_the_end() {
    replay_whole(
        r#"{"behaviour": {"messages": false, "rows": 299, "order": "OldestFirst", "total": "Cached", "churn": "Bursts", "tied": 8, "deletes": true, "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 0, "past_end": "FirstPage", "seed": 16900605432815476136}, "page_size": 99, "concurrent_pages": 1, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn rows_that_are_read_again_after_a_new_beginning_are_not_the_end() {
    replay_whole(
        r#"{"behaviour": {"messages": false, "rows": 1392, "order": "NewestFirst", "total": "Exact", "churn": "Heavy", "tied": 122, "deletes": true, "largest_page": 10, "reported": "Nothing", "short_pages": true, "hidden": 0, "past_end": "Empty", "seed": 9440516557437366746}, "page_size": 99, "concurrent_pages": 4, "max_items": null, "killed_after": null}"#,
    );
}

#[test]
fn an_empty_page_behind_rows_that_were_deleted_is_not_the_end() {
    replay_whole(
        r#"{"behaviour": {"messages": false, "rows": 1546, "order": "UpdatedLast", "total": "Exact", "churn": "Bursts", "tied": 8, "deletes": true, "largest_page": 99, "reported": "Applied", "short_pages": false, "hidden": 25, "past_end": "Empty", "seed": 9047559042146539796}, "page_size": 99, "concurrent_pages": 16, "max_items": null, "killed_after": null}"#,
    );
}
