//! The text of fault rules.

use proptest::prelude::*;

use crate::faults::fault::Fault;
use crate::faults::rule::{Rule, read_rules};

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
            "messages user=42:truncate(at=100)x 3  each",
            "messages user=42: truncate(at=100, length=declared) x3 each",
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
            "any every=3 attempt=2: garbage(\"<\\\"\\u000a>\")",
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
        ("", "expected one rule"),
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
        ("users where=1: reset()", "attempt, every, p, not \"where\""),
        (
            "users offset: reset()",
            "expected = after offset, not \":\"",
        ),
        ("users reset()", "expected one of user, message"),
        ("users", "every, p, not the end"),
        ("users:", "a fault is missing"),
        ("users: explode()", "unknown fault \"explode\""),
        ("users: status()", "status takes code, retry_after, body"),
        (
            "users: status(99)",
            "code must be from 200 to 599, not \"99\"",
        ),
        ("users: status(-1)", "must be a whole number, not \"-1\""),
        ("users: status(503, 1, 2)", "body must be text in quotes"),
        (
            "users: status(503, retry=1)",
            "retry_after, body, not \"retry\"",
        ),
        (
            "users: status(503, code=500)",
            "code was given more than once",
        ),
        ("users: status(503, body=no)", "body must be text in quotes"),
        ("users: latency(-1)", "ms must be from 0 to"),
        ("users: latency(NaN)", "ms must be a number, not \"NaN\""),
        (
            "users: latency(lognormal(1, 2, 3))",
            "lognormal takes median, spread, not \"3\"",
        ),
        (
            "users: truncate(length=declared)",
            "truncate takes at, length",
        ),
        (
            "users: truncate(at=1, length=long)",
            "declared or honest, not \"long\"",
        ),
        ("users: drip(bytes=0, ms=1)", "bytes must be from 1 to"),
        ("users: garbage(\"x)", "text must be text in quotes"),
        ("users: garbage(\"\\x\")", "escapes as in JSON"),
        ("users: wrong_content_type(\"a\\nb\")", "printable ASCII"),
        ("users: stale_keepalive(1)", "takes no arguments, not \"1\""),
        (
            "users: reset() y",
            "expected xN or the end after the fault, not \"y\"",
        ),
        ("users: reset() x0", "must be from 1 to"),
        ("users: reset() x1 x2", "expected each or the end after xN"),
        ("users: reset() x1 every", "not \"every\""),
        ("users p=2: reset()", "p must be from 0 to 1, not \"2\""),
        ("users: reset(); users: stall()", "expected one rule"),
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
    let text = "\n users: garbage(\"a;\\nb\") ; any: reset()\r\n\nuser: stall() x2 each;";
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
            "user: stall() x2 each"
        ]
    );
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
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
                let body = body.map(|body| format!(", body={}", quoted(&body)));
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
        any::<String>().prop_map(|text| format!("garbage({})", quoted(&text))),
        "[ -~]{0,20}".prop_map(|text| { format!("wrong_content_type({})", quoted(&text)) }),
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
        let each = if p < 0.5 { " each" } else { "" };
        let times = times
            .map(|times| format!(" x{times}{each}"))
            .unwrap_or_default();
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

#[test]
fn a_fault_that_is_not_told_more_does_the_usual() {
    let usual = |text: &str| text.parse::<Fault>().unwrap().to_string();
    assert_eq!(usual("latency(lognormal)"), "latency(lognormal(200, 0.5))");
    assert_eq!(
        usual("latency(lognormal(90))"),
        "latency(lognormal(90, 0.5))"
    );
    assert_eq!(usual("drip"), "drip(bytes=1024, ms=10)");
    assert_eq!(usual("drip(8)"), "drip(bytes=8, ms=10)");
    assert_eq!(
        usual("wrong_content_type"),
        "wrong_content_type(\"text/html\")"
    );
    assert_eq!(usual("truncate(10)"), "truncate(at=10, length=declared)");
    assert_eq!(usual("reset(3)"), "reset(after_bytes=3)");
    assert_eq!(usual("stall(3)"), "stall(after_bytes=3)");
}
