//! Which requests fault rules fire on.

use std::time::Duration;

use crate::faults::delivery::Delivery;
use crate::faults::rule::read_rules;
use crate::faults::rules::Rules;
use crate::routes::{Attempts, Route, Target};

fn rules(text: &str) -> Rules {
    let rules = Rules::default();
    rules.add(read_rules(text).unwrap());
    rules
}

fn page(offset: u64) -> Target {
    Target {
        route: Route::Users,
        offset: Some(offset),
        limit: Some(99),
        ..Target::UNKNOWN
    }
}

fn messages(user: u64, offset: u64) -> Target {
    Target {
        route: Route::Messages,
        user: Some(user),
        ..page(offset)
    }
}

/// Whether a rule fires on each of these requests, in this order.
fn fires(rules: &Rules, requests: impl IntoIterator<Item = Target>) -> Vec<bool> {
    let requests = requests.into_iter();
    requests
        .map(|request| !rules.choose(1, &request).is_plain())
        .collect()
}

#[test]
fn a_rule_is_for_the_requests_that_it_names() {
    for (text, expected) in [
        ("messages user=42: reset()", [1, 1, 0, 0, 0, 0]),
        ("messages offset=0: reset()", [1, 0, 1, 0, 0, 0]),
        // A single user has no offset, not even 0.
        ("any offset=0: reset()", [1, 0, 1, 0, 0, 0]),
        ("any offset=99: reset()", [0, 1, 0, 1, 0, 0]),
        ("any user=42: reset()", [1, 1, 0, 0, 1, 0]),
        ("users: reset()", [0, 0, 0, 1, 0, 0]),
        ("any: reset()", [1, 1, 1, 1, 1, 0]),
    ] {
        let requests = [
            messages(42, 0),
            messages(42, 99),
            messages(43, 0),
            page(99),
            Target::read("/external/users/42"),
            Target::read("/openapi.json"),
        ];
        let fired = fires(&rules(text), requests);
        assert_eq!(fired, expected.map(|fires| fires == 1), "{text}");
    }
}

#[test]
fn times_count_in_all_or_for_each_request() {
    for (text, first, later) in [
        ("users: status(503) x2", [1, 1, 0, 0], [0, 0, 0, 0]),
        ("users: status(503) x2 each", [1, 1, 0, 0], [1, 1, 0, 0]),
        ("users attempt=2: status(503)", [0, 1, 0, 0], [0, 1, 0, 0]),
    ] {
        let rules = rules(text);
        for (offset, expected) in [(0, first), (99, later)] {
            let fired = fires(&rules, [page(offset); 4]);
            assert_eq!(fired, expected.map(|fires| fires == 1), "{text} {offset}");
        }
    }
}

#[test]
fn a_request_that_an_earlier_rule_took_does_not_use_up_a_later_one() {
    for text in [
        "users: status(503) x1; users: reset() x1",
        "users: status(503) x1 each; users: reset() x1 each",
    ] {
        let both = rules(text);
        let endings: Vec<Delivery> = (0..3).map(|_| both.choose(1, &page(0))).collect();
        assert!(endings[0].change.is_some() && endings[0].ending.is_none());
        assert!(endings[1].ending.is_some());
        assert!(endings[2].is_plain());
        let fired: Vec<u64> = both.list().iter().map(|(_, _, fired)| *fired).collect();
        assert_eq!(fired, [1, 1]);
    }
}

#[test]
fn every_takes_turns_along_a_list_and_lets_the_retry_pass() {
    let third = rules("any every=3: status(503)");
    let fired = fires(&third, (0..6).map(|number| page(number * 99)));
    assert_eq!(fired, [false, false, true, false, false, true]);
    let users = fires(&third, (0..3000).map(|user| messages(user, 0)));
    let users = users.iter().filter(|fired| **fired).count();
    assert!((900..1100).contains(&users), "{users}");
    let fired = fires(&third, [messages(5, 0); 30]);
    let thirds: Vec<bool> = (0..30).map(|at| fired[at % 3]).collect();
    assert_eq!(fired, thirds);
    assert_eq!(fired[..3].iter().filter(|fired| **fired).count(), 1);
}

#[test]
fn chance_belongs_to_the_request_and_not_to_its_place_in_the_queue() {
    let text = "any p=0.25: status(503); any: latency(lognormal(100, 0.5)); any p=0.25: latency(1)";
    let (forward, backward) = (rules(text), rules(text));
    let ahead: Vec<Delivery> = (0..2000).map(|at| forward.choose(7, &page(at))).collect();
    let behind = (0..2000).rev().map(|at| backward.choose(7, &page(at)));
    assert!(behind.eq(ahead.iter().rev().cloned()));
    let count = |of: fn(&Delivery) -> bool| ahead.iter().filter(|each| of(each)).count();
    let failed = count(|delivery| delivery.change.is_some());
    assert!((400..600).contains(&failed), "{failed}");
    let mut delays: Vec<Duration> = ahead.iter().map(|delivery| delivery.delay).collect();
    delays.sort();
    let median = delays[1000].as_secs_f64();
    assert!((0.09..0.11).contains(&median), "{median}");
    // Two rules with the same p do not fire together.
    let both = count(|delivery| delivery.rules.len() == 3);
    assert!((60..200).contains(&both), "{both}");
    assert_ne!(ahead[0].delay, forward.choose(8, &page(0)).delay);
}

#[test]
fn delays_add_up_and_of_the_rest_the_first_wins() {
    let fired = [
        "any: latency(2)",
        "any: drip(bytes=5, ms=1)",
        "any: garbage()",
        "any: latency(3)",
    ];
    let text = format!(
        "{}; any: reset(); any: drip(bytes=7, ms=1)",
        fired.join("; ")
    );
    let delivery = rules(&text).choose(1, &page(0));
    assert_eq!(delivery.delay, Duration::from_millis(5));
    assert_eq!(delivery.drip.map(|drip| drip.bytes.get()), Some(5));
    assert!(delivery.change.is_some() && delivery.ending.is_none());
    assert_eq!(delivery.rules, fired);
}

#[test]
fn attempts_are_remembered_for_the_latest_half_million_requests() {
    let attempts = Attempts::default();
    assert_eq!((attempts.next(&page(1)), attempts.next(&page(1))), (1, 2));
    for offset in 2..(1 << 19) + 2 {
        attempts.next(&page(offset));
    }
    assert_eq!(attempts.next(&page(1)), 3);
    for offset in 0..(1 << 20) {
        attempts.next(&messages(1, offset));
    }
    assert_eq!(attempts.next(&page(1)), 1);
}
