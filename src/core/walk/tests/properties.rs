//! What holds for any list at rest, and for any list that changes.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Simulated, Total, walk, walk_while};
use crate::fuzz_seeds::fuzz_seeds;
use crate::report::Certificate;
use crate::walk::{WalkSettings, agreement};

fn simulated() -> impl Strategy<Value = Simulated> {
    let totals = prop::sample::select(vec![
        Total::Exact,
        Total::Null,
        Total::TooSmall,
        Total::TooLarge,
    ]);
    (
        0_i64..400,
        1_usize..=99,
        any::<bool>(),
        totals,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(rows, largest_page, says_it, total, repeats_last_page_past_end, respelled)| {
                Simulated {
                    largest_page,
                    // A small total and silently shortened pages look like a short list.
                    says_what_it_applied: says_it || total == Total::TooSmall,
                    total,
                    repeats_last_page_past_end,
                    respelled,
                    ..Simulated::new(rows)
                }
            },
        )
}

proptest! {
    #[test]
    fn no_behaviour_of_a_service_loses_or_repeats_a_row_of_a_list_at_rest(list in simulated()) {
        let expected = list.ids.clone();
        let step = if list.largest_page > 2 { list.largest_page - 2 } else { list.largest_page };
        // Short pages of rows that are spelled anew cannot be linked, so they are read once more.
        let passes = 1 + usize::from(list.respelled);
        let pages = expected.len() / step + 1;
        let respelled = list.respelled && expected.len() > list.largest_page;
        let (mut given, report, requests) = walk(list);
        given.sort_unstable();
        prop_assert_eq!(given, expected);
        prop_assert!(requests <= (pages + 16) * passes, "{requests} for {pages}");
        prop_assert_eq!(report.rows, report.distinct + report.repeats);
        prop_assert!(!respelled || report.certificate != Certificate::Linked, "{report:?}");
    }

    #[test]
    fn a_snapshot_is_never_false(
        list in simulated().prop_filter("an honest total", |list| list.total == Total::Exact),
    ) {
        let expected = list.ids.clone();
        let (given, report, _) = walk(list);
        if report.certificate == Certificate::Snapshot {
            prop_assert_eq!(given, expected);
        }
    }

    #[test]
    fn a_list_that_changes_at_every_request_neither_loops_nor_gives_a_row_twice(
        rows in 0_i64..400,
        changes in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..60),
    ) {
        let mut changes = changes.into_iter();
        let mut newest = 1_000;
        let (given, report, _) = walk_while(Simulated::new(rows), WalkSettings::WHOLE, |list| {
            match changes.next() {
                Some((true, place)) => {
                    newest += 1;
                    list.ids.insert(place.index(list.ids.len() + 1), newest);
                }
                Some((false, place)) if !list.ids.is_empty() => {
                    list.ids.remove(place.index(list.ids.len()));
                }
                _ => {}
            }
        });
        prop_assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len());
        prop_assert_eq!(report.distinct as usize, given.len());
    }
}

#[test]
fn what_the_fuzzer_starts_from_is_certified_only_if_it_is_held() {
    let mut certified = 0;
    for seed in fuzz_seeds("walk") {
        let certificate = agreement::check(&seed);
        certified += usize::from(certificate != Certificate::Uncertified);
    }
    assert!(certified >= 8, "{certified}");
}
