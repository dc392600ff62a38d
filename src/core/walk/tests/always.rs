//! What must hold for every walk, whatever happens to the list meanwhile.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::super::*;
use super::behaviour::{Churn, Total};
use super::cases::{Case, Kind, cases};
use super::changing_list::ChangingList;
use super::concurrent_walk::walk;
use super::plain::plain_walk;
use super::tally::Tally;
use crate::report::Certificate;

const WALKS: u32 = 3_000;
// Each share draws its own cases, so that the walks do not depend on the number of threads.
const SHARES: u32 = 16;
const TEN_PAGES: i64 = 991;

/// The walks that all tests here examine: `BACKREAD_WALKS` of them.
static WALKED: LazyLock<Result<Tally, String>> = LazyLock::new(|| {
    let walks = std::env::var("BACKREAD_WALKS").ok();
    let walks = walks.map_or(WALKS, |walks| walks.parse().expect("a number of walks"));
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tallies: Vec<Result<Tally, String>> = std::thread::scope(|scope| {
        let work = || {
            let mut sum = Tally::default();
            loop {
                let share = next.fetch_add(1, Ordering::Relaxed) as u32;
                if share >= SHARES {
                    return Ok(sum);
                }
                sum.add(walk_share(share, walks.div_ceil(SHARES))?);
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut sum = Tally::default();
    for tally in tallies {
        sum.add(tally?);
    }
    Ok(sum)
});

fn walk_share(share: u32, walks: u32) -> Result<Tally, String> {
    let config = Config {
        cases: walks,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = [share.to_le_bytes(); 8].concat();
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let tally = RefCell::new(Tally::default());
    TestRunner::new_with_rng(config, random)
        .run(&cases(), |case| {
            judge(&case, &mut tally.borrow_mut()).map_err(|failure| {
                let replay = serde_json::to_string(&case).unwrap();
                TestCaseError::fail(format!("{failure}\nBACKREAD_CASE='{replay}'"))
            })
        })
        .map_err(|failure| failure.to_string())?;
    Ok(tally.into_inner())
}

fn tally() -> &'static Tally {
    WALKED
        .as_ref()
        .unwrap_or_else(|failure| panic!("{failure}"))
}

/// Walks once; fails if the walk did something forbidden.
fn judge(case: &Case, tally: &mut Tally) -> Result<(), String> {
    let mut list = ChangingList::new(case.behaviour.clone());
    let settings = WalkSettings {
        strict: false,
        page_size: Limit::new("page_size", case.page_size.into()).unwrap(),
        max_items: case.max_items,
        concurrent_pages: case.concurrent_pages,
        checkpoints: case.killed_after.is_some(),
        ends_unread: false,
    };
    let walked = walk(&mut list, settings, case.killed_after, 20_000)?;
    let report = &walked.report;
    let held: HashSet<i64> = walked.given.iter().map(|(id, _)| *id).collect();
    let require = |holds: bool, what: &str| {
        if holds {
            Ok(())
        } else {
            Err(format!("{what}; {report:?}"))
        }
    };

    require(held.len() == walked.given.len(), "a row was given twice")?;
    let strange = held.iter().find(|id| !list.was_there(**id));
    require(strange.is_none(), "a row was given that was never there")?;
    let all_given = report.distinct == held.len() as u64 || case.max_items.is_some();
    require(all_given, "distinct is not what was given")?;
    // Requests in flight when it was killed are unknown afterwards.
    let all_counted = match case.killed_after {
        None => report.requests == walked.requests,
        Some(_) => report.requests <= walked.requests,
    };
    require(all_counted, "requests are not those sent")?;
    let most_items = case.max_items.unwrap_or(u64::MAX);
    require(held.len() as u64 <= most_items, "more rows than max_items")?;

    let extent = list.greatest_extent as u64;
    // Pages share at most a quarter of their rows.
    let bound = 16 + 8 * case.pages(extent, case.size_of_a_page() / 4);
    let overlapping = case.pages(extent, 3);
    let proving = report.evidence.proving_requests;
    // Pages around rows that fail, and those between rows that are hidden, may be of any length.
    let bounded = case.behaviour.failing == 0 && case.behaviour.hidden_block == 0;
    require(
        proving <= bound || !bounded,
        &format!("more than {bound} requests for proof"),
    )?;
    require(
        report.requests <= overlapping + bound || !bounded,
        "more requests than pages and proof need",
    )?;

    let missing = |untouched: bool| {
        list.lasting()
            .filter(move |row| !(if untouched { row.touched } else { row.moved }))
            .filter(|row| !held.contains(&row.id))
            .count() as u64
    };
    let lost = missing(true);
    let truthful = match report.certificate {
        Certificate::Uncertified => true,
        Certificate::Snapshot if case.behaviour.total == Total::Exact => {
            list.had_just_these_contents(walked.given.iter().copied())
        }
        Certificate::Counted if case.counts_truly() => list.had_just(held.iter().copied()),
        Certificate::Linked if case.orders_truly() => missing(false) == 0,
        _ => true,
    };
    require(truthful, "a false certificate")?;
    if case.is_at_rest() {
        require(
            lost == 0,
            &format!("{lost} rows of a list at rest are lost"),
        )?;
        // If rows are hidden, nothing shows by how much pages overlap.
        let shown = walked.given.iter().map(|(id, _)| *id);
        let proved = report.certificate != Certificate::Uncertified;
        let in_order = !proved || case.behaviour.hidden > 0 || shown.eq(list.ids());
        require(
            in_order,
            "rows of a certified list at rest are out of order",
        )?;
    }

    let mut same_list = ChangingList::new(case.behaviour.clone());
    let plain = plain_walk(&mut same_list, settings.page_size);
    let plain_lost = same_list
        .lasting()
        .filter(|row| !row.touched && !plain.held.contains(&row.id))
        .count() as u64;
    let plain_gets = list
        .lasting()
        .filter(|row| !row.touched && !held.contains(&row.id) && plain.held.contains(&row.id))
        .count() as u64;
    // A loop that never ends gets no rows.
    let plain_gets = if plain.endless { 0 } else { plain_gets };
    if case.max_items.is_none() {
        let of_kind = tally.kinds.entry(case.kind()).or_default();
        of_kind.walks += 1;
        *of_kind.certificates.entry(report.certificate).or_default() += 1;
        if report.certificate == Certificate::Uncertified {
            of_kind.uncertified.count(lost);
        } else {
            of_kind.falsely_certified.count(lost);
            let moved = list.lasting().filter(|row| row.moved);
            of_kind
                .moved_away
                .count(moved.filter(|row| !held.contains(&row.id)).count() as u64);
        }
        of_kind.plain_gets.count(plain_gets);
        of_kind.plain.count(plain_lost);
        of_kind.plain_endless += u64::from(plain.endless);
        if case.reads_like_plain_loop() && !plain.endless {
            of_kind.requests += walked.requests;
            of_kind.plain_requests += plain.requests;
        }
    }
    if case.is_ordinary() && case.behaviour.rows >= TEN_PAGES {
        let overhead = 100.0 * (walked.requests as f64 / plain.requests as f64 - 1.0);
        tally
            .overheads
            .entry(case.behaviour.churn)
            .or_default()
            .push(overhead);
    }
    tally.requests += walked.requests;
    if bounded {
        tally.most_of_bound = tally.most_of_bound.max(proving as f64 / bound as f64);
    }
    Ok(())
}

#[test]
fn no_walk_loops_or_repeats_or_invents_or_certifies_what_is_false() {
    let table = tally().to_string();
    println!("{table}");
}

#[test]
fn lists_that_break_the_assumptions_are_falsely_certified_less_than_once_in_a_thousand_walks() {
    let mut kinds = tally().kinds.clone();
    let kept = kinds.remove(&Kind::KeepsThem).unwrap();
    assert_eq!(kept.falsely_certified.walks, 0);
    let walks: u64 = kinds.values().map(|of_kind| of_kind.walks).sum();
    let lost: u64 = kinds
        .values()
        .map(|of_kind| of_kind.falsely_certified.walks)
        .sum();
    assert!(lost * 1_000 < walks, "{lost} of {walks}");
}

#[test]
fn lists_of_each_kind_are_certified_as_often_as_before_and_lose_no_more_rows() {
    for (kind, of_kind) in &tally().kinds {
        let walks = of_kind.walks as f64;
        // Four standard deviations, since each run draws other lists.
        let chance = |share: f64| 4.0 * (share * (1.0 - share) / walks).sqrt() + 4.0 / walks;
        let measured = Kind::ALL.iter().find(|(of, ..)| of == kind);
        let (_, _, (certified, gets)) = *measured.unwrap();
        let of_walks = |counted: u64| counted as f64 / walks;
        let uncertified = of_kind.certificates.get(&Certificate::Uncertified);
        let now = 1.0 - of_walks(uncertified.copied().unwrap_or(0));
        assert!(
            now >= certified - chance(certified),
            "{kind:?}: {now} certified"
        );
        let now = of_walks(of_kind.plain_gets.walks);
        assert!(
            now <= gets + chance(gets),
            "{kind:?}: {now} lack rows that the plain loop got"
        );
    }
}

#[test]
fn the_median_walk_sends_at_most_a_twentieth_more_requests_than_the_plain_loop() {
    let median = tally().overhead(Churn::Moderate, 50);
    assert!(median.is_some_and(|median| median <= 5.0), "{median:?} %");
}

/// `BACKREAD_CASE` is what a failure prints.
#[test]
fn a_walk_that_failed_can_be_walked_again() {
    if let Ok(case) = std::env::var("BACKREAD_CASE") {
        replay(&case);
    }
}

pub fn replay(case: &str) {
    let case: Case = serde_json::from_str(case).unwrap();
    if let Err(failure) = judge(&case, &mut Tally::default()) {
        panic!("{failure}");
    }
}

/// The same for a walk that must return every row that existed the whole time.
pub fn replay_whole(case: &str) {
    let case: Case = serde_json::from_str(case).unwrap();
    let mut tally = Tally::default();
    judge(&case, &mut tally).unwrap();
    let lost: u64 = tally
        .kinds
        .values()
        .map(|of_kind| of_kind.uncertified.rows)
        .sum();
    assert_eq!(lost, 0);
}
