//! JSON values in one spelling, so that equal ones are equal texts.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use indexmap::IndexMap;
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
    let members: IndexMap<Cow<'a, str>, String> = members.collect();
    let members = members.into_iter();
    let members = members.map(|(key, value)| format!("{}:{value}", Value::from(key)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
