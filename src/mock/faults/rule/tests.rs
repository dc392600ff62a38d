use proptest::prelude::*;

use super::*;

/// The columns of a table.
fn rows<'table>(table: &'table [&str]) -> impl Iterator<Item = (&'table str, &'table str)> {
    table.iter().map(|line| line.split_once(" => ").unwrap())
}

#[test]
fn a_rule_is_written_one_way_and_read_in_many() {
    for (given, canonical) in rows(&[
        r#"users offset=99: status(429,retry_after=1) => users offset=99: status(429, retry_after=1)"#,
        r#"users: reset() x2 => users: reset() x2"#,
        r#"any: drip => any: drip(bytes=1024, ms=10)"#,
        r#"any: latency(lognormal) => any: latency(lognormal(200, 0.5))"#,
        "any\tp = .10 :latency( 250 )  => any p=0.1: latency(250)",
        r#"messages user=4:truncate(at=9)x 3  each => messages user=4: truncate(at=9, length=declared) x3 each"#,
        r#"message message=7 user=42: reset => message user=42 message=7: reset()"#,
        r#"any every=3 attempt=2: garbage("<\"\u000a>") => any attempt=2 every=3: garbage("<\"\n>")"#,
        r#"any: drip(ms=0.5, bytes=10) => any: drip(bytes=10, ms=0.5)"#,
    ]) {
        let rule: Rule = given.parse().unwrap();
        assert_eq!(rule.to_string(), canonical);
        assert_eq!(rule, canonical.parse().unwrap());
    }
}

#[test]
fn what_is_no_rule_is_told_with_its_place() {
    for (text, part) in rows(&[
        r#"users offset=x: reset() => fault "users offset=x: reset()": offset must be a whole number, not "x""#,
        r#"people: reset() => not "people""#,
        r#"users user=1: reset() => requests of the route users have no user"#,
        r#"any message=1 offset=2: reset() => both a message and an offset"#,
        r#"users where=1: reset() => attempt, every, p, not "where""#,
        r#"users => every, p, not the end"#,
        r#"users: explode() => unknown fault "explode""#,
        r#"users: status() => status takes code, retry_after, body"#,
        r#"users: status(99) => code must be from 200 to 599, not "99""#,
        r#"users: status(503, retry=1) => retry_after, body, not "retry""#,
        r#"users: latency(NaN) => ms must be a number, not "NaN""#,
        r#"users: truncate(length=declared) => truncate takes at, length"#,
        r#"users: truncate(at=1, length=long) => declared or honest, not "long""#,
        r#"users: garbage("\x") => escapes as in JSON"#,
        r#"users: wrong_content_type("a\nb") => printable ASCII"#,
        r#"users: stale_keepalive(1) => takes no arguments, not "1""#,
        r#"users: reset() y => expected xN or the end after the fault, not "y""#,
        r#"users: reset() x0 => must be from 1 to"#,
        r#"users: reset(); users: stall() => expected one rule"#,
    ]) {
        let told = text.parse::<Rule>().unwrap_err().to_string();
        assert!(told.contains(part), "{text}: {told}");
    }
    let second = read_rules("any: reset()\nany: rest() ; any: stall()").unwrap_err();
    assert!(second.to_string().starts_with("fault \"any: rest()"));
}

#[test]
fn rules_stand_on_lines_or_behind_semicolons() {
    let text = "\n users: garbage(\"a;\\nb\") ; any: reset()\r\n\nuser: stall() x2 each;";
    let rules = read_rules(text).unwrap();
    let shown: Vec<String> = rules.iter().map(Rule::to_string).collect();
    let expected = [
        "users: garbage(\"a;\\nb\")",
        "any: reset()",
        "user: stall() x2 each",
    ];
    assert_eq!(shown, expected);
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
