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
        ("any: drip", "any: drip(bytes=1024, ms=10)"),
        (
            "any: latency(lognormal)",
            "any: latency(lognormal(200, 0.5))",
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
            "any every=3 attempt=2: garbage(\"<\\\"\\u000a>\")",
            "any attempt=2 every=3: garbage(\"<\\\"\\n>\")",
        ),
        ("any: drip(ms=0.5, bytes=10)", "any: drip(bytes=10, ms=0.5)"),
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
        ("users where=1: reset()", "attempt, every, p, not \"where\""),
        ("users", "every, p, not the end"),
        ("users: explode()", "unknown fault \"explode\""),
        ("users: status()", "status takes code, retry_after, body"),
        (
            "users: status(99)",
            "code must be from 200 to 599, not \"99\"",
        ),
        (
            "users: status(503, retry=1)",
            "retry_after, body, not \"retry\"",
        ),
        ("users: latency(NaN)", "ms must be a number, not \"NaN\""),
        (
            "users: truncate(length=declared)",
            "truncate takes at, length",
        ),
        (
            "users: truncate(at=1, length=long)",
            "declared or honest, not \"long\"",
        ),
        ("users: garbage(\"\\x\")", "escapes as in JSON"),
        ("users: wrong_content_type(\"a\\nb\")", "printable ASCII"),
        ("users: stale_keepalive(1)", "takes no arguments, not \"1\""),
        (
            "users: reset() y",
            "expected xN or the end after the fault, not \"y\"",
        ),
        ("users: reset() x0", "must be from 1 to"),
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

proptest! {
    #[test]
    fn no_text_is_too_odd(text: String, tail in "[a-z0-9=:;(),\"\\\\.{}\n -]{0,60}") {
        let _ = read_rules(&text);
        let _ = text.parse::<Fault>();
        let _ = format!("users: {tail}").parse::<Rule>();
        let _ = read_rules(&tail);
    }
}
