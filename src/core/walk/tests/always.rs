//! What must hold for every walk, whatever happens to the list meanwhile.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::LazyLock;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::super::*;
use super::cases::{Case, Churn, Kind, Total, cases};
use super::changing_list::{ChangingList, Entry, Served};
use super::concurrent_walk::walk;
use crate::report::Certificate;

const WALKS: u32 = 3_000;
// Each share draws its own cases, so that the walks do not depend on the number of threads.
const SHARES: u32 = 16;
const TEN_PAGES: i64 = 991;
// A list of some 1,600 rows takes 17 full pages.
const ENDLESS_ROWS: u64 = 200 * 99;

/// What a walk did, beside a plain loop over the same list.
#[derive(Debug, Clone)]
pub struct Outcome {
    case: Case,
    kind: Kind,
    certified: bool,
    /// Untouched rows that existed the whole time and that it did not return,
    pub lost: u64,
    /// those of them that the plain loop got,
    plain_gets: u64,
    /// and those that the plain loop did not get.
    plain_lost: u64,
    requests: u64,
    plain_requests: u64,
    /// The plain loop would never have ended.
    plain_endless: bool,
}

/// The walks that all tests here examine: `BACKREAD_WALKS` of them.
static WALKED: LazyLock<Result<Vec<Outcome>, String>> = LazyLock::new(|| {
    let walks = std::env::var("BACKREAD_WALKS").ok();
    let walks = walks.map_or(WALKS, |walks| walks.parse().expect("a number of walks"));
    std::thread::scope(|scope| {
        let walk = |share| scope.spawn(move || walk_share(share, walks.div_ceil(SHARES)));
        let shares: Vec<_> = (0..SHARES).map(walk).collect();
        let shares = shares.into_iter().map(|share| share.join().unwrap());
        Ok(shares.collect::<Result<Vec<_>, String>>()?.concat())
    })
});

fn walk_share(share: u32, walks: u32) -> Result<Vec<Outcome>, String> {
    let config = Config {
        cases: walks,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = [share.to_le_bytes(); 8].concat();
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let outcomes = RefCell::new(Vec::new());
    let judged = TestRunner::new_with_rng(config, random).run(&cases(), |case| {
        let replay = serde_json::to_string(&case).unwrap();
        let fail = |failure| TestCaseError::fail(format!("{failure}\nBACKREAD_CASE='{replay}'"));
        outcomes.borrow_mut().push(judge(case).map_err(fail)?);
        Ok(())
    });
    judged.map_err(|failure| failure.to_string())?;
    Ok(outcomes.into_inner())
}

fn outcomes() -> impl Iterator<Item = &'static Outcome> {
    let walked = WALKED.as_ref();
    let walked = walked.unwrap_or_else(|failure| panic!("{failure}"));
    walked.iter().filter(|walk| walk.case.max_items.is_none())
}

fn outcomes_of(kind: Kind) -> Vec<&'static Outcome> {
    outcomes().filter(|walk| walk.kind == kind).collect()
}

fn count(walks: &[&Outcome], of: impl Fn(&Outcome) -> bool) -> u64 {
    walks.iter().filter(|walk| of(walk)).count() as u64
}

/// What most programs do: `offset += limit` until `total`. Returns the ids and the requests.
fn plain_walk(list: &mut ChangingList, page_size: Limit) -> (HashSet<i64>, u64) {
    let size = u64::from(page_size.get());
    let (mut held, mut requests) = (HashSet::new(), 0);
    while requests * size < ENDLESS_ROWS {
        let served = list.page(requests * size, page_size);
        requests += 1;
        let Served::Page {
            rows,
            fails_at: None,
            total,
            ..
        } = served
        else {
            break;
        };
        held.extend(rows.iter().map(|row| row.id));
        let over = match total {
            Some(total) => requests * size >= total as u64,
            None => rows.is_empty(),
        };
        if over {
            break;
        }
    }
    (held, requests)
}

/// How many rows that existed the whole time are such.
fn lasting(list: &ChangingList, are: impl Fn(&Entry) -> bool) -> u64 {
    list.lasting().filter(|row| are(row)).count() as u64
}

/// Walks once; fails if the walk did something forbidden.
fn judge(case: Case) -> Result<Outcome, String> {
    let mut list = ChangingList::new(case.behaviour.clone());
    let settings = WalkSettings {
        page_size: Limit::new("page_size", case.page_size.into()).unwrap(),
        max_items: case.max_items,
        concurrent_pages: case.concurrent_pages,
        checkpoints: case.killed_after.is_some(),
        ..WalkSettings::WHOLE
    };
    let walked = walk(&mut list, settings, case.killed_after, 20_000)?;
    let report = &walked.report;
    let held: HashSet<i64> = walked.given.iter().map(|(id, _)| *id).collect();
    let certified = report.certificate != Certificate::Uncertified;
    let lost = lasting(&list, |row| !row.touched && !held.contains(&row.id));

    // Requests in flight when it was killed are unknown afterwards.
    let all_counted = match case.killed_after {
        None => report.requests == walked.requests,
        Some(_) => report.requests <= walked.requests,
    };
    let extent = list.greatest_extent as u64;
    // Pages share at most a quarter of their rows.
    let bound = 16 + 8 * case.pages(extent, case.size_of_a_page() / 4);
    // Pages around rows that fail, and those between rows that are hidden, may be of any length.
    let bounded = case.behaviour.failing == 0 && case.behaviour.hidden_block == 0;
    let truthful = match report.certificate {
        Certificate::Snapshot if case.behaviour.total == Total::Exact => {
            list.had_just_these_contents(walked.given.iter().copied())
        }
        Certificate::Counted if case.counts_truly() => list.had_just(held.iter().copied()),
        Certificate::Linked if case.orders_truly() => {
            lasting(&list, |row| !row.moved && !held.contains(&row.id)) == 0
        }
        _ => true,
    };
    let require = |holds: bool, what: &str| match holds {
        true => Ok(()),
        false => Err(format!("{what} ({lost} lost, bound {bound}); {report:?}")),
    };
    require(held.len() == walked.given.len(), "a row was given twice")?;
    let there = held.iter().all(|id| list.was_there(*id));
    require(there, "a row was given that was never there")?;
    let all_given = report.distinct == held.len() as u64 || case.max_items.is_some();
    require(all_given, "distinct is not what was given")?;
    require(all_counted, "requests are not those sent")?;
    let most = case.max_items.unwrap_or(u64::MAX);
    require(held.len() as u64 <= most, "more rows than max_items")?;
    let most = bound.max(if bounded { 0 } else { u64::MAX });
    let proving = report.evidence.proving_requests;
    require(proving <= most, "more requests for proof than the bound")?;
    let most = most.saturating_add(case.pages(extent, 3));
    require(
        report.requests <= most,
        "more requests than pages and proof need",
    )?;
    require(truthful, "a false certificate")?;
    if case.is_at_rest() {
        require(lost == 0, "rows of a list at rest are lost")?;
        // If rows are hidden, nothing shows by how much pages overlap.
        let shown = walked.given.iter().map(|(id, _)| *id);
        let ordered = !certified || case.behaviour.hidden > 0 || shown.eq(list.ids());
        require(ordered, "rows of a certified list at rest are out of order")?;
    }

    let mut same_list = ChangingList::new(case.behaviour.clone());
    let (plain, plain_requests) = plain_walk(&mut same_list, settings.page_size);
    let plain_endless = plain_requests * u64::from(case.page_size) >= ENDLESS_ROWS;
    let plain_gets = |row: &Entry| plain.contains(&row.id) && !held.contains(&row.id);
    Ok(Outcome {
        kind: case.kind(),
        certified,
        lost,
        // A loop that never ends gets no rows.
        plain_gets: match plain_endless {
            true => 0,
            false => lasting(&list, |row| !row.touched && plain_gets(row)),
        },
        plain_lost: lasting(&same_list, |row| !row.touched && !plain.contains(&row.id)),
        requests: walked.requests,
        plain_requests,
        plain_endless,
        case,
    })
}

/// Prints the table of docs/explanation/certificates.md.
#[test]
fn no_walk_loops_or_repeats_or_invents_or_certifies_what_is_false() {
    println!(
        "|a list|walks|certified|of these, lost rows|lost rows that the plain loop got\
         |plain loops that lost rows|requests|"
    );
    for (kind, ..) in Kind::ALL {
        let walks = outcomes_of(kind);
        let lost = |rows: fn(&Outcome) -> u64| {
            let all: u64 = walks.iter().map(|walk| rows(walk)).sum();
            format!("{} ({all})", count(&walks, |walk| rows(walk) > 0))
        };
        let same_pages =
            |walk: &&&Outcome| walk.case.reads_like_plain_loop() && !walk.plain_endless;
        let requests = |of: fn(&Outcome) -> u64| -> u64 {
            walks.iter().filter(same_pages).map(|walk| of(walk)).sum()
        };
        println!(
            "|{kind:?}|{}|{:.3}|{}|{}|{}|{:.2}|",
            walks.len(),
            count(&walks, |walk| walk.certified) as f64 / walks.len() as f64,
            lost(|walk| if walk.certified { walk.lost } else { 0 }),
            lost(|walk| walk.plain_gets),
            lost(|walk| walk.plain_lost),
            requests(|walk| walk.requests) as f64 / requests(|walk| walk.plain_requests) as f64
        );
    }
}

#[test]
fn lists_that_break_the_assumptions_are_falsely_certified_less_than_once_in_a_thousand_walks() {
    let falsely = |walk: &Outcome| walk.certified && walk.lost > 0;
    assert_eq!(count(&outcomes_of(Kind::KeepsThem), falsely), 0);
    let others: Vec<_> = outcomes()
        .filter(|walk| walk.kind != Kind::KeepsThem)
        .collect();
    let (lost, walks) = (count(&others, falsely), others.len());
    assert!(lost * 1_000 < walks as u64, "{lost} of {walks}");
}

#[test]
fn lists_of_each_kind_are_certified_as_often_as_before_and_lose_no_more_rows() {
    for (kind, _, (certified, gets)) in Kind::ALL {
        let walks = outcomes_of(kind);
        // Four standard deviations, since each run draws other lists.
        let of_walks = |counted: u64| counted as f64 / walks.len() as f64;
        let chance =
            |share: f64| 4.0 * (share * (1.0 - share) / walks.len() as f64).sqrt() + of_walks(4);
        let now = of_walks(count(&walks, |walk| walk.certified));
        assert!(
            now >= certified - chance(certified),
            "{kind:?}: {now} certified"
        );
        let now = of_walks(count(&walks, |walk| walk.plain_gets > 0));
        assert!(
            now <= gets + chance(gets),
            "{kind:?}: {now} lack rows that the plain loop got"
        );
    }
}

#[test]
fn the_median_walk_sends_at_most_a_twentieth_more_requests_than_the_plain_loop() {
    let ordinary = outcomes().filter(|Outcome { case, .. }| {
        let list = &case.behaviour;
        case.is_ordinary() && list.churn == Churn::Moderate && list.rows >= TEN_PAGES
    });
    let more = ordinary.map(|walk| walk.requests as f64 / walk.plain_requests as f64);
    let mut more: Vec<f64> = more.collect();
    more.sort_by(f64::total_cmp);
    assert!(more[more.len() / 2] <= 1.05, "{more:?}");
}

/// `BACKREAD_CASE` is what a failure prints.
#[test]
fn a_walk_that_failed_can_be_walked_again() {
    if let Ok(case) = std::env::var("BACKREAD_CASE") {
        replay(&case);
    }
}

pub fn replay(case: &str) -> Outcome {
    judge(serde_json::from_str(case).unwrap()).unwrap_or_else(|failure| panic!("{failure}"))
}
