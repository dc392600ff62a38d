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

fn fires(rules: &Rules, request: &Target) -> bool {
    !rules.choose(1, request).is_plain()
}

#[test]
fn a_rule_is_for_the_requests_that_it_names() {
    let others = [messages(42, 0), messages(42, 99), messages(43, 0), page(99)];
    let hit = |text: &str| -> Vec<bool> {
        let rules = rules(text);
        others
            .iter()
            .map(|request| fires(&rules, request))
            .collect()
    };
    assert_eq!(hit("messages user=42: reset()"), [true, true, false, false]);
    assert_eq!(
        hit("messages offset=0: reset()"),
        [true, false, true, false]
    );
    assert_eq!(hit("any offset=99: reset()"), [false, true, false, true]);
    assert_eq!(hit("users: reset()"), [false, false, false, true]);
    // A single user has no offset, not even 0.
    let single = Target::read("/external/users/42");
    assert!(!fires(&rules("any offset=0: reset()"), &single));
    assert!(fires(&rules("any user=42: reset()"), &single));
    let document = Target::read("/openapi.json");
    assert!(!fires(&rules("any: reset()"), &document));
}

#[test]
fn times_count_in_all_or_for_each_request() {
    let pattern = |rules: &Rules, request: &Target| -> Vec<bool> {
        (0..5).map(|_| fires(rules, request)).collect()
    };
    let twice = rules("users: status(503) x2");
    assert_eq!(pattern(&twice, &page(0)), [true, true, false, false, false]);
    assert_eq!(pattern(&twice, &page(99)), [false; 5]);
    let each = rules("users: status(503) x2 each");
    for offset in [0, 99] {
        assert_eq!(
            pattern(&each, &page(offset)),
            [true, true, false, false, false]
        );
    }
    let second = rules("users attempt=2: status(503)");
    for offset in [0, 99] {
        assert_eq!(
            pattern(&second, &page(offset)),
            [false, true, false, false, false]
        );
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
    let first: Vec<bool> = (0..6)
        .map(|number| fires(&third, &page(number * 99)))
        .collect();
    assert_eq!(first, [false, false, true, false, false, true]);
    let users = (0..3000)
        .filter(|user| fires(&third, &messages(*user, 0)))
        .count();
    assert!((900..1100).contains(&users), "{users}");
    let request = messages(5, 0);
    let fired: Vec<usize> = (0..30).filter(|_| fires(&third, &request)).collect();
    assert_eq!(fired.len(), 10);
    assert!(fired.windows(2).all(|pair| pair[1] - pair[0] == 3));
}

#[test]
fn chance_belongs_to_the_request_and_not_to_its_place_in_the_queue() {
    let text = "any p=0.25: status(503); any: latency(lognormal(100, 0.5)); any p=0.25: latency(1)";
    let requests: Vec<Target> = (0..2000).map(page).collect();
    let (forward, backward) = (rules(text), rules(text));
    let ahead: Vec<Delivery> = requests
        .iter()
        .map(|request| forward.choose(7, request))
        .collect();
    let mut behind: Vec<Delivery> = requests
        .iter()
        .rev()
        .map(|request| backward.choose(7, request))
        .collect();
    behind.reverse();
    assert_eq!(ahead, behind);
    let failed = ahead
        .iter()
        .filter(|delivery| delivery.change.is_some())
        .count();
    assert!((400..600).contains(&failed), "{failed}");
    let mut delays: Vec<Duration> = ahead.iter().map(|delivery| delivery.delay).collect();
    delays.sort();
    let median = delays[1000].as_secs_f64();
    assert!((0.09..0.11).contains(&median), "{median}");
    // Two rules with the same p do not fire together.
    let both = ahead
        .iter()
        .filter(|delivery| delivery.rules.len() == 3)
        .count();
    assert!((60..200).contains(&both), "{both}");
    assert_ne!(ahead[0].delay, forward.choose(8, &requests[0]).delay);
}

#[test]
fn delays_add_up_and_of_the_rest_the_first_wins() {
    let all = rules(
        "any: latency(2); any: drip(bytes=5, ms=1); any: garbage(); any: reset(); any: latency(3); \
         any: drip(bytes=7, ms=1)",
    );
    let delivery = all.choose(1, &page(0));
    assert_eq!(delivery.delay, Duration::from_millis(5));
    assert_eq!(delivery.drip.map(|drip| drip.bytes.get()), Some(5));
    assert!(delivery.change.is_some() && delivery.ending.is_none());
    let fired: Vec<&str> = delivery.rules.iter().map(String::as_str).collect();
    assert_eq!(
        fired,
        [
            "any: latency(2)",
            "any: drip(bytes=5, ms=1)",
            "any: garbage()",
            "any: latency(3)"
        ]
    );
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
