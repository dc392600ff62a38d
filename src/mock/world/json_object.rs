//! JSON objects as text: read field by field, and edited without touching other fields.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::calendar::read_timestamp;
use super::overlay::Fields;

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

    /// The value of a field; the last one, if the name occurs twice.
    pub fn get(&self, name: &str) -> Option<&'text RawValue> {
        let mut entries = self.0.iter().rev();
        entries
            .find(|(key, _)| is_name(key, name))
            .map(|(_, value)| *value)
    }

    /// The value of a timestamp field in milliseconds since 1970, if it is one.
    pub fn moment(&self, name: &str) -> Option<u64> {
        read_timestamp(&string(self.get(name)?)?)
    }

    /// The object without whitespace between its tokens.
    pub fn to_text(&self) -> Vec<u8> {
        let mut out = vec![b'{'];
        for (number, (key, value)) in self.0.iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            out.extend_from_slice(key.get().as_bytes());
            out.push(b':');
            write_compact(value.get(), &mut out);
        }
        out.push(b'}');
        out
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
fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    let text = value.get();
    match text.strip_prefix('"')?.strip_suffix('"') {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(text).ok().map(Cow::Owned),
    }
}

/// Whether a key, once unescaped, is this name.
pub fn is_name(key: &RawValue, name: &str) -> bool {
    string(key).is_some_and(|key| key == name)
}

/// The object with fields set: in place, or at the end.
pub fn with_fields(row: &[u8], fields: &Fields) -> Vec<u8> {
    let Ok(Entries(entries)) = Entries::read(row) else {
        return row.to_vec();
    };
    let mut out = Vec::with_capacity(row.len() + 32);
    let mut missing: Vec<_> = fields.iter().collect();
    out.push(b'{');
    for (key, value) in entries {
        out.extend_from_slice(key.get().as_bytes());
        out.push(b':');
        let name = string(key);
        match name.and_then(|name| fields.get_key_value(&*name)) {
            Some((name, value)) => {
                missing.retain(|(other, _)| *other != name);
                out.extend_from_slice(value.to_string().as_bytes());
            }
            None => out.extend_from_slice(value.get().as_bytes()),
        }
        out.push(b',');
    }
    for (name, value) in missing {
        let name = serde_json::Value::from(name.as_str());
        out.extend_from_slice(format!("{name}:{value},").as_bytes());
    }
    if out.len() > 1 {
        out.pop();
    }
    out.push(b'}');
    out
}

/// Writes JSON without whitespace between its tokens.
pub fn write_compact(value: &str, out: &mut Vec<u8>) {
    let (mut inside, mut escaped) = (false, false);
    let is_space = |byte: &u8| {
        let outside = !inside;
        if inside {
            inside = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else {
            inside = *byte == b'"';
        }
        outside && matches!(*byte, b' ' | b'\t' | b'\n' | b'\r')
    };
    for part in value.as_bytes().split(is_space) {
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(row: &str, fields: serde_json::Value) -> String {
        let fields = match fields {
            serde_json::Value::Object(fields) => fields,
            _ => Fields::new(),
        };
        String::from_utf8_lossy(&with_fields(row.as_bytes(), &fields)).into_owned()
    }

    #[test]
    fn fields_are_set_where_they_stand_and_others_stay_to_the_byte() {
        let row = r#"{"id":1.50e2,"n\u0061me":"\ud800","deep":[[{"a":"\/"}]]}"#;
        assert_eq!(set(row, json!({})), row);
        assert_eq!(
            set(row, json!({"new \"one\"": 1, "name": null})),
            r#"{"id":1.50e2,"n\u0061me":null,"deep":[[{"a":"\/"}]],"new \"one\"":1}"#
        );
        let entries = Entries::read(row.as_bytes()).ok();
        let name = entries.as_ref().and_then(|entries| entries.get("id"));
        assert_eq!(name.map(RawValue::get), Some("1.50e2"));
        assert_eq!(set("{}", json!({"a": {}})), r#"{"a":{}}"#);
        assert_eq!(set(r#"{"a":1,"a":2}"#, json!({"a": 3})), r#"{"a":3,"a":3}"#);
    }

    #[test]
    fn only_the_space_between_tokens_goes() {
        let mut out = Vec::new();
        write_compact("{ \"a \\\\\" :\t[ \"b \\\" c\" ,\r\n1.0 ] }", &mut out);
        assert_eq!(out, br#"{"a \\":["b \" c",1.0]}"#);
    }
}
