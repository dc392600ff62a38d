//! JSON objects as text: read field by field, and edited without touching other fields.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::changes::Fields;
use super::row::{Moment, TIMES};

/// The fields of an object as in its text, in order; names may occur twice.
#[derive(Debug)]
pub struct Entries<'text>(pub Vec<(&'text RawValue, &'text RawValue)>);

impl<'text> Entries<'text> {
    /// Reads an object.
    ///
    /// # Errors
    /// The JSON is invalid or not an object.
    pub fn read(text: &'text [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text)
    }

    /// The index of a field; the last one, if the name occurs twice.
    pub fn find(&self, name: &str) -> Option<usize> {
        let named = |(key, _): &(&RawValue, _)| string(key).is_some_and(|key| key == name);
        self.0.iter().rposition(named)
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&'text RawValue> {
        Some(self.0.get(self.find(name)?)?.1)
    }

    /// The latest of the times in a row.
    pub fn latest(&self) -> Option<u64> {
        let read = |name| Some(Moment::read(&string(self.get(name)?)?)?.0);
        TIMES.into_iter().filter_map(read).max()
    }

    /// The object with fields set, in place or at the end.
    pub fn with_fields(&self, fields: &Fields) -> Vec<u8> {
        let mut missing: Vec<(&String, &Value)> = fields.iter().collect();
        let mut parts = Vec::with_capacity(self.0.len() + fields.len());
        for (key, value) in &self.0 {
            let name = string(key);
            let set = name.and_then(|name| fields.get_key_value(&*name));
            parts.push(match set {
                Some((name, value)) => {
                    missing.retain(|(other, _)| *other != name);
                    format!("{key}:{value}")
                }
                None => format!("{key}:{value}"),
            });
        }
        let missing = missing.into_iter();
        parts.extend(missing.map(|(name, value)| format!("{}:{value}", Value::from(&**name))));
        format!("{{{}}}", parts.join(",")).into_bytes()
    }
}

impl<'text> Deserialize<'text> for Entries<'text> {
    fn deserialize<D: Deserializer<'text>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'text> Visitor<'text> for Object {
            type Value = Entries<'text>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'text>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The text of a JSON string; `None` for other values, and for one with a lone surrogate.
pub fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    let text = value.get();
    match text.strip_prefix('"')?.strip_suffix('"') {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(text).ok().map(Cow::Owned),
    }
}

/// The row with fields set; other fields stay as they are, byte for byte.
pub fn with_fields(row: &[u8], fields: &Fields) -> Vec<u8> {
    match Entries::read(row) {
        Ok(entries) => entries.with_fields(fields),
        Err(_) => row.to_vec(),
    }
}

/// JSON without whitespace between its tokens.
pub fn compact(text: &[u8]) -> Vec<u8> {
    let (mut inside, mut escaped) = (false, false);
    let mut is_kept = |byte: &u8| {
        let quote = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        inside ^= quote;
        inside || !byte.is_ascii_whitespace()
    };
    text.iter().copied().filter(|byte| is_kept(byte)).collect()
}
