//! JSON values in one spelling, so that equal ones are equal texts.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::decode::model::Members;

/// The longest text that is rewritten, in bytes: each level of nesting is read again.
const MOST_REWRITTEN: usize = 256 * 1024;
/// The most levels of nesting in it.
const DEEPEST: usize = 127;

/// A value without white space, escapes that are not needed and members that a later one replaces.
/// Numbers stay as they were sent. A text that is long or no JSON only loses its white space.
pub fn rewritten(json: &str) -> String {
    let short = json.len() <= MOST_REWRITTEN;
    let value = short.then(|| value(json.trim(), DEEPEST));
    value.flatten().unwrap_or_else(|| without_space(json))
}

fn value(json: &str, levels: usize) -> Option<String> {
    let levels = levels.checked_sub(1)?;
    Some(match json.as_bytes().first()? {
        b'{' => {
            let Members(members) = serde_json::from_str(json).ok()?;
            let members = members
                .into_iter()
                .map(|(key, json)| Some((key, value(json, levels)?)));
            object(members.collect::<Option<Vec<_>>>()?.into_iter())
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            let items = items.iter().map(|item| value(item.get(), levels));
            format!("[{}]", items.collect::<Option<Vec<_>>>()?.join(","))
        }
        b'"' => Value::String(serde_json::from_str(json).ok()?).to_string(),
        _ => json.to_owned(),
    })
}

/// An object of these members, whose values are JSON; if a key occurs twice, the last value wins.
pub fn object<'a>(members: impl Iterator<Item = (Cow<'a, str>, String)>) -> String {
    let mut members: Vec<Member<'a>> = members.collect();
    let mut keys: Vec<&str> = members.iter().map(|(key, _)| &**key).collect();
    keys.sort_unstable();
    if !keys.is_sorted_by(|one, next| one < next) {
        members = without_repeats(members);
    }
    let mut json = String::from("{");
    for (key, value) in members {
        if json.len() > 1 {
            json.push(',');
        }
        json += &Value::from(key).to_string();
        json.push(':');
        json += &value;
    }
    json.push('}');
    json
}

type Member<'a> = (Cow<'a, str>, String);

fn without_repeats<'a>(members: Vec<Member<'a>>) -> Vec<Member<'a>> {
    let mut places = HashMap::new();
    let mut kept: Vec<Member<'a>> = Vec::new();
    for (key, value) in members {
        let place = *places.entry(key.clone()).or_insert(kept.len());
        match kept.get_mut(place) {
            Some((_, before)) => *before = value,
            None => kept.push((key, value)),
        }
    }
    kept
}

fn without_space(json: &str) -> String {
    let (mut quoted, mut escaped) = (false, false);
    json.chars()
        .filter(|character| {
            let kept = quoted || !matches!(character, ' ' | '\n' | '\t' | '\r');
            quoted ^= *character == '"' && !escaped;
            escaped = quoted && *character == '\\' && !escaped;
            kept
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_in_one_spelling() {
        for (json, expected) in [
            (
                r#"{ "b" : [1, 2.50] , "a": "\u00e9\u4e2d" }"#,
                r#"{"b":[1,2.50],"a":"é中"}"#,
            ),
            (
                r#"{ "b" : [1, 1e400] , "a": "\u4e2d" }"#,
                r#"{"b":[1,1e400],"a":"中"}"#,
            ),
            (r#""a \" b \\" "#, r#""a \" b \\""#),
            ("12345678901234567890123", "12345678901234567890123"),
        ] {
            assert_eq!(rewritten(json), expected);
        }
    }

    #[test]
    fn keys_that_serde_json_gives_a_meaning_are_kept() {
        for json in [
            r#"{"x":{"$serde_json::private::Number":"abc"}}"#,
            r#"{"x":{"$serde_json::private::Number":"12"}}"#,
            r#"{"x":{"$serde_json::private::RawValue":"[1]"}}"#,
        ] {
            assert_eq!(rewritten(json), json);
        }
        assert_eq!(
            rewritten("{\"$serde_json::private::Number\" : \"a \\\" b\" }"),
            "{\"$serde_json::private::Number\":\"a \\\" b\"}"
        );
    }

    #[test]
    fn the_last_of_equal_keys_wins_in_the_place_of_the_first() {
        let members = [("a", "1"), ("b\"", "2"), ("a", "3")];
        let members = members.map(|(key, value)| (Cow::from(key), value.to_owned()));
        assert_eq!(object(members.into_iter()), r#"{"a":3,"b\"":2}"#);
    }
}
