//! Hundreds of rows inserted at once while a list is read.

use super::*;

/// Walks a list of 3,000 users, into which many more are inserted at a place after some pages.
fn walk_with_imports(
    imports: &[(usize, usize, usize)],
    concurrent_pages: usize,
) -> (Vec<i64>, WalkReport, usize) {
    let settings = WalkSettings {
        concurrent_pages,
        ..WalkSettings::WHOLE
    };
    let mut requests = 0;
    let mut newest = 100_000;
    walk_while(Simulated::new(3_000), settings, |list| {
        requests += 1;
        for (after, rows, place) in imports {
            if *after == requests {
                let rows = *rows as i64;
                list.ids.splice(place..place, newest..newest + rows);
                newest += rows;
            }
        }
    })
}

#[test]
fn an_import_at_the_front_loses_no_row() {
    for concurrent_pages in [1, 8] {
        for imports in [
            &[(5, 600, 0)][..],
            &[(5, 900, 0)],
            &[(10, 1_500, 0)],
            &[(10, 4_000, 0)],
            &[(30, 600, 0)],
            &[(5, 900, 0), (25, 1_500, 0), (45, 700, 0)],
            &[(5, 900, 200)],
            &[(10, 900, 600), (20, 900, 0)],
        ] {
            let (given, report, requests) = walk_with_imports(imports, concurrent_pages);
            let given: BTreeSet<i64> = given.into_iter().collect();
            let lost = (1..=3_000).filter(|id| !given.contains(id)).count();
            let case = format!(
                "{imports:?}, {concurrent_pages} concurrent_pages, {requests} requests: {report:?}"
            );
            assert_eq!(lost, 0, "{case}");
        }
    }
}
