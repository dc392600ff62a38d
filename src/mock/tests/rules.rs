//! Fault rules: their text, and which requests they fire on.

use std::time::Duration;

use proptest::prelude::*;

use crate::mock::fault::Fault;
use crate::mock::grammar::Quoted;
use crate::mock::key::{Attempts, RequestKey};
use crate::mock::manner::{Ending, Manner};
use crate::mock::routes::Route;
use crate::mock::rule::{Rule, read_rules};
use crate::mock::rules::Rules;

fn rules(text: &str) -> Rules {
    let rules = Rules::default();
    for rule in read_rules(text).unwrap() {
        rules.add(rule);
    }
    rules
}

fn page(offset: u64) -> RequestKey {
    RequestKey {
        route: Route::Users,
        user: 0,
        message: 0,
        offset,
    }
}

fn messages(user: u64, offset: u64) -> RequestKey {
    RequestKey {
        route: Route::Messages,
        user,
        ..page(offset)
    }
}

fn fires(rules: &Rules, request: &RequestKey) -> bool {
    !rules.choose(1, request, 99).is_plain()
}

fn problem(text: &str) -> String {
    text.parse::<Rule>().unwrap_err().to_string()
}

#[test]
fn a_rule_is_written_one_way_and_read_in_many() {
    for (given, canonical) in [
        (
            "users offset=99: status(429, retry_after=1) x2",
            "users offset=99: status(429, retry_after=1) x2",
        ),
        (" any\tp = .10 :latency( 250 ) ", "any p=0.1: latency(250)"),
        (
            "messages user=42:truncate(at=100)x 3",
            "messages user=42: truncate(at=100, length=declared) x3",
        ),
        (
            "message message=7 user=42: reset",
            "message user=42 message=7: reset()",
        ),
        (
            "user: latency(ms=lognormal(200, 0.5))",
            "user: latency(lognormal(200, 0.5))",
        ),
        (
            "any every=3 attempt=2: garbage(\"<\\\"\n>\")",
            "any attempt=2 every=3: garbage(\"<\\\"\\n>\")",
        ),
        ("any: stall(after_bytes=0)", "any: stall(after_bytes=0)"),
        ("any: drip(ms=0.5, bytes=10)", "any: drip(bytes=10, ms=0.5)"),
        ("any: stale_keepalive", "any: stale_keepalive()"),
        (
            "any: wrong_content_type(\"text/html; a=b\")",
            "any: wrong_content_type(\"text/html; a=b\")",
        ),
        ("any: status(503, body=\"\")", "any: status(503, body=\"\")"),
    ] {
        let rule: Rule = given.parse().unwrap();
        assert_eq!(rule.to_string(), canonical);
        assert_eq!(rule, canonical.parse().unwrap());
    }
}

#[test]
fn what_is_no_rule_is_told_with_its_place() {
    assert_eq!(
        problem("users offset=x: status(503)"),
        "fault \"users offset=x: status(503)\": offset must be a whole number, not \"x\""
    );
    for (text, part) in [
        ("", "expected a rule"),
        ("people: reset()", "not \"people\""),
        (
            "users user=1: reset()",
            "requests of the route users have no user",
        ),
        (
            "any message=1 offset=2: reset()",
            "both a message and an offset",
        ),
        (
            "users offset=1 offset=2: reset()",
            "offset was given more than once",
        ),
        ("users where=1: reset()", "unknown condition \"where\""),
        (
            "users offset: reset()",
            "expected = after offset, not \":\"",
        ),
        ("users reset()", "expected = after reset, not \"(\""),
        ("users", "or a colon, not the end"),
        ("users:", "a fault is missing"),
        ("users: explode()", "unknown fault \"explode\""),
        ("users: status()", "status takes a code"),
        ("users: status(99)", "must be from 200 to 599, not 99"),
        ("users: status(-1)", "must be a whole number, not \"-1\""),
        ("users: status(503, 1)", "not 1"),
        ("users: status(503, retry=1)", "not retry=1"),
        (
            "users: status(503, code=500)",
            "code was given more than once",
        ),
        ("users: status(503, body=no)", "body must stand in quotes"),
        ("users: latency(-1)", "latency must be from 0 to"),
        ("users: latency(NaN)", "latency must be a number, not NaN"),
        ("users: latency(lognormal(1))", "lognormal takes"),
        ("users: truncate(length=declared)", "truncate takes at=N"),
        (
            "users: truncate(at=1, length=long)",
            "declared or honest, not long",
        ),
        ("users: drip(bytes=0, ms=1)", "bytes must be from 1 to"),
        ("users: garbage(\"x)", "a closing quote is missing"),
        ("users: garbage(\"\\x\")", "unknown escape \\x"),
        ("users: wrong_content_type(\"a\\nb\")", "printable ASCII"),
        ("users: stale_keepalive(1)", "takes no arguments, not 1"),
        (
            "users: reset() y",
            "expected xN or the end after the fault, not \"y\"",
        ),
        ("users: reset() x0", "must be from 1 to"),
        ("users: reset() x1 x2", "expected the end after x1"),
        ("users p=2: reset()", "p must be from 0 to 1, not 2"),
        ("users: reset(); users: stall()", "not several"),
    ] {
        let told = problem(text);
        assert!(told.contains(part), "{text}: {told}");
    }
    let second = read_rules("any: reset()\nany: rest() ; any: stall()").unwrap_err();
    assert!(
        second.to_string().starts_with("fault \"any: rest()"),
        "{second}"
    );
}

#[test]
fn rules_stand_on_lines_or_behind_semicolons() {
    let text = "\n users: garbage(\"a;\\nb\") ; any: reset()\r\n\nuser: stall() x2;";
    let shown: Vec<String> = read_rules(text)
        .unwrap()
        .iter()
        .map(Rule::to_string)
        .collect();
    assert_eq!(
        shown,
        [
            "users: garbage(\"a;\\nb\")",
            "any: reset()",
            "user: stall() x2"
        ]
    );
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
    let single = RequestKey {
        route: Route::User,
        ..messages(42, 0)
    };
    assert!(!fires(&rules("any offset=0: reset()"), &single));
    assert!(fires(&rules("any user=42: reset()"), &single));
    let document = RequestKey {
        route: Route::OpenApi,
        ..page(0)
    };
    assert!(!fires(&rules("any: reset()"), &document));
}

#[test]
fn times_and_attempts_are_counted_for_each_request() {
    let twice = rules("users: status(503) x2");
    let pattern = |rules: &Rules, request: &RequestKey| -> Vec<bool> {
        (0..5).map(|_| fires(rules, request)).collect()
    };
    assert_eq!(pattern(&twice, &page(0)), [true, true, false, false, false]);
    assert_eq!(
        pattern(&twice, &page(99)),
        [true, true, false, false, false]
    );
    let second = rules("users attempt=2: status(503)");
    assert_eq!(
        pattern(&second, &page(0)),
        [false, true, false, false, false]
    );
    // One after the other: what an earlier rule takes is not spent by a later one.
    let both = rules("users: status(503) x1; users: reset() x1");
    let endings: Vec<Manner> = (0..3).map(|_| both.choose(1, &page(0), 99)).collect();
    assert!(endings[0].change.is_some() && endings[0].ending == Ending::Whole);
    assert_eq!(endings[1].ending, Ending::Reset { after_bytes: None });
    assert!(endings[2].is_plain());
    assert_eq!(
        both.list()
            .iter()
            .map(|rule| rule.fired)
            .collect::<Vec<_>>(),
        [1, 1]
    );
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
    let requests: Vec<RequestKey> = (0..2000).map(|number| page(number)).collect();
    let (forward, backward) = (rules(text), rules(text));
    let ahead: Vec<Manner> = requests
        .iter()
        .map(|request| forward.choose(7, request, 1))
        .collect();
    let mut behind: Vec<Manner> = requests
        .iter()
        .rev()
        .map(|request| backward.choose(7, request, 1))
        .collect();
    behind.reverse();
    assert_eq!(ahead, behind);
    let failed = ahead
        .iter()
        .filter(|manner| manner.change.is_some())
        .count();
    assert!((400..600).contains(&failed), "{failed}");
    let mut delays: Vec<Duration> = ahead.iter().map(|manner| manner.delay).collect();
    delays.sort();
    let median = delays[1000].as_secs_f64();
    assert!((0.09..0.11).contains(&median), "{median}");
    // Two rules with the same p do not fire together.
    let both = ahead
        .iter()
        .filter(|manner| manner.rules.len() == 3)
        .count();
    assert!((60..200).contains(&both), "{both}");
    assert_ne!(ahead[0].delay, forward.choose(8, &requests[0], 1).delay);
}

#[test]
fn delays_add_up_and_of_the_rest_the_first_wins() {
    let all = rules(
        "any: latency(2); any: drip(bytes=5, ms=1); any: garbage(); any: reset(); any: latency(3); \
         any: drip(bytes=7, ms=1)",
    );
    let manner = all.choose(1, &page(0), 99);
    assert_eq!(manner.delay, Duration::from_millis(5));
    assert_eq!(manner.drip.map(|drip| drip.bytes.get()), Some(5));
    assert!(manner.change.is_some() && manner.ending == Ending::Whole);
    let fired: Vec<&str> = manner.rules.iter().map(|rule| &**rule).collect();
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
fn rules_come_and_go() {
    let rules = Rules::default();
    let first = rules.add("users: reset() x1".parse().unwrap());
    let second = rules.add("users: stall()".parse().unwrap());
    assert!(fires(&rules, &page(0)));
    assert!(rules.remove(second) && !rules.remove(second));
    assert!(!fires(&rules, &page(0)));
    assert!(rules.remove(first));
    // A rule that is set again starts its count again.
    rules.add("users: reset() x1".parse().unwrap());
    assert!(fires(&rules, &page(0)));
    rules.clear();
    assert!(rules.list().is_empty() && !fires(&rules, &page(99)));
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
    assert_eq!(attempts.so_far(&page(1)), 0);
}

fn texts() -> impl Strategy<Value = String> {
    let bytes = || {
        prop_oneof![
            Just(String::new()),
            (0..9000_u64).prop_map(|n| format!("after_bytes={n}"))
        ]
    };
    let faults = prop_oneof![
        (200..600_u16, any::<Option<u32>>(), any::<Option<String>>()).prop_map(
            |(code, after, body)| {
                let after = after.map(|seconds| format!(", retry_after={seconds}"));
                let body = body.map(|body| format!(", body={}", Quoted(&body)));
                format!(
                    "status({code}{}{})",
                    after.unwrap_or_default(),
                    body.unwrap_or_default()
                )
            }
        ),
        (0.0..86_400_000.0_f64).prop_map(|ms| format!("latency({ms})")),
        (0.0..1000.0_f64, 0.0..10.0_f64).prop_map(|(a, b)| format!("latency(lognormal({a}, {b}))")),
        bytes().prop_map(|bytes| format!("reset({bytes})")),
        bytes().prop_map(|bytes| format!("stall({bytes})")),
        (0..9000_u64, any::<bool>()).prop_map(|(at, honest)| {
            let length = if honest { ", length=honest" } else { "" };
            format!("truncate(at={at}{length})")
        }),
        (1..9000_u64, 0.0..9.0_f64).prop_map(|(bytes, ms)| format!("drip(bytes={bytes}, ms={ms})")),
        any::<String>().prop_map(|text| format!("garbage({})", Quoted(&text))),
        "[ -~]{0,20}".prop_map(|text| { format!("wrong_content_type({})", Quoted(&text)) }),
        Just("stale_keepalive".to_owned()),
    ];
    let routes = prop_oneof![
        Just("any"),
        Just("any user=5"),
        Just("users offset=99"),
        Just("messages user=1 offset=2"),
        Just("message user=1 message=2"),
    ];
    let conditions = (
        any::<Option<std::num::NonZeroU64>>(),
        any::<Option<u8>>(),
        0.0..1.0_f64,
    );
    (routes, conditions, faults).prop_map(|(route, (times, every, p), fault)| {
        let times = times.map(|times| format!(" x{times}")).unwrap_or_default();
        let every = every.map(|every| format!(" every={}", u64::from(every) + 1));
        format!("{route}{} p={p}: {fault}{times}", every.unwrap_or_default())
    })
}

proptest! {
    #[test]
    fn every_rule_reads_back_as_it_shows(text in texts()) {
        let rule: Rule = text.parse().unwrap();
        prop_assert_eq!(&rule.to_string().parse::<Rule>().unwrap(), &rule);
        prop_assert_eq!(&rule.fault.to_string().parse::<Fault>().unwrap(), &rule.fault);
    }

    #[test]
    fn no_text_is_too_odd(text: String, tail in "[a-z0-9=:;(),\"\\\\.{}\n -]{0,60}") {
        let _ = read_rules(&text);
        let _ = text.parse::<Fault>();
        let _ = format!("users: {tail}").parse::<Rule>();
        let _ = read_rules(&tail);
    }
}
