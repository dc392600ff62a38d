//! JSON values in one spelling, so that equal ones are equal texts.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde_json::Value;

use super::cursor::Cursor;

/// The most levels of nesting that are rewritten: as many as a row that is read has.
const DEEPEST: usize = 127;

/// A value without white space, escapes that are not needed and members that a later one replaces.
/// Numbers stay as they were sent. A text that is nested deeper, or no JSON, stays as it is.
pub fn rewritten(json: &str) -> String {
    let written = Cursor::new(json).and_then(|mut cursor| {
        cursor.space();
        let written = value(json, &mut cursor, DEEPEST)?;
        cursor.space();
        cursor.is_at_end().then_some(written)
    });
    written.unwrap_or_else(|| json.to_owned())
}

fn value(json: &str, cursor: &mut Cursor<'_>, levels: usize) -> Option<String> {
    Some(match cursor.peek() {
        b'{' => {
            let levels = levels.checked_sub(1)?;
            let mut members = Vec::new();
            cursor.object(|cursor, key| {
                members.push((key.text(json), value(json, cursor, levels)?));
                Some(())
            })?;
            object(members.into_iter())
        }
        b'[' => {
            let levels = levels.checked_sub(1)?;
            let mut items = Vec::new();
            cursor.array(|cursor| {
                items.push(value(json, cursor, levels)?);
                Some(())
            })?;
            format!("[{}]", items.join(","))
        }
        b'"' => Value::from(cursor.string()?.text(json)).to_string(),
        _ => cursor.value()?.of(json).to_owned(),
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
