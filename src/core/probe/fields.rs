//! Which fields records have and of which types, and the shape of a body: names and types only.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::schema::{ENVELOPE, Object, SenderType};

const LONGEST_NAME: usize = 64;
const MOST_NAMES: usize = 100;
const DEEPEST: usize = 4;
/// Replaces names that may contain data.
const UNNAMED: &str = "(other)";
const SHARE_DIGITS: f64 = 10_000.0;

/// A kind of object in the service's responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Page,
    User,
    UserAttribute,
    Message,
    UserSender,
    OperatorSender,
    OtherSender,
}

impl Group {
    pub fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::User => "user",
            Self::UserAttribute => "user_attribute",
            Self::Message => "message",
            Self::UserSender => "user_sender",
            Self::OperatorSender => "operator_sender",
            Self::OtherSender => "other_sender",
        }
    }

    /// The fields that the interface names (2.1 to 2.3).
    fn documented(self) -> Vec<&'static str> {
        let names = |object: Object| object.fields().iter().map(|field| field.name).collect();
        match self {
            Self::Page => ENVELOPE.to_vec(),
            Self::User => names(Object::User),
            Self::UserAttribute => names(Object::UserAttribute),
            Self::Message => names(Object::Message),
            Self::UserSender => SenderType::User.names().collect(),
            Self::OperatorSender => SenderType::Operator.names().collect(),
            Self::OtherSender => Vec::new(),
        }
    }
}

#[derive(Debug, Default)]
struct Seen {
    types: BTreeSet<&'static str>,
    nulls: u64,
    present: u64,
}

/// What was seen of one kind of object.
#[derive(Debug, Default)]
struct Tally {
    objects: u64,
    fields: BTreeMap<String, Seen>,
}

/// What was seen of all kinds.
#[derive(Debug, Default)]
pub struct Fields(BTreeMap<Group, Tally>);

impl Fields {
    pub fn user(&mut self, user: &Value) {
        self.object(Group::User, user, &[]);
        let attributes = user.get("user_attributes").and_then(Value::as_array);
        for attribute in attributes.into_iter().flatten() {
            self.object(Group::UserAttribute, attribute, &[]);
        }
    }

    pub fn message(&mut self, message: &Value) {
        self.object(Group::Message, message, &[]);
        let group = match message.get("sender_type").and_then(Value::as_str) {
            Some(SenderType::USER) => Group::UserSender,
            Some(SenderType::OPERATOR) => Group::OperatorSender,
            _ => Group::OtherSender,
        };
        if let Some(sender) = message.get("sender") {
            self.object(group, sender, &[]);
        }
    }

    /// Records an envelope; the key of its rows is not a finding.
    pub fn page(&mut self, envelope: &Value, rows: &str) {
        self.object(Group::Page, envelope, &[rows]);
    }

    fn object(&mut self, group: Group, value: &Value, left_out: &[&str]) {
        let Value::Object(object) = value else { return };
        let tally = self.0.entry(group).or_default();
        tally.objects += 1;
        let mut counted = BTreeSet::new();
        for (name, value) in object {
            if left_out.contains(&name.as_str()) {
                continue;
            }
            let name = shown(name);
            let known = tally.fields.len() < MOST_NAMES || tally.fields.contains_key(name);
            let name = if known { name } else { UNNAMED };
            let seen = tally.fields.entry(name.to_owned()).or_default();
            // Names that are not shown share one entry, which counts once per object.
            if counted.insert(name) {
                seen.present += 1;
                seen.nulls += u64::from(value.is_null());
            }
            if !value.is_null() {
                seen.types.insert(type_name(value));
            }
        }
    }

    /// Every kind that was seen, including documented fields that never came.
    pub fn profile(&self) -> BTreeMap<&'static str, BTreeMap<String, FieldProfile>> {
        self.0
            .iter()
            .map(|(group, tally)| (group.name(), tally.profile(&group.documented())))
            .collect()
    }
}

impl Tally {
    fn profile(&self, documented: &[&str]) -> BTreeMap<String, FieldProfile> {
        let none = Seen::default();
        let names: BTreeSet<&str> = self
            .fields
            .keys()
            .map(String::as_str)
            .chain(documented.iter().copied())
            .collect();
        names
            .into_iter()
            .map(|name| {
                let seen = self.fields.get(name).unwrap_or(&none);
                let profile = FieldProfile {
                    documented: documented.contains(&name),
                    types: seen.types.iter().copied().collect(),
                    null_share: share(seen.nulls, self.objects),
                    missing_share: share(self.objects.saturating_sub(seen.present), self.objects),
                };
                (name.to_owned(), profile)
            })
            .collect()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldProfile {
    /// Whether the interface names it.
    pub documented: bool,
    /// The JSON types seen, except null.
    pub types: Vec<&'static str>,
    pub null_share: f64,
    pub missing_share: f64,
}

/// A share of a whole, to four digits.
pub fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => (part as f64 / whole as f64 * SHARE_DIGITS).round() / SHARE_DIGITS,
    }
}

/// A value's keys and types.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Shape {
    Scalar(&'static str),
    Object(BTreeMap<String, Shape>),
    /// By its first element.
    Array(Vec<Shape>),
}

impl Shape {
    pub fn of(value: &Value) -> Self {
        Self::at(value, 0)
    }

    fn at(value: &Value, depth: usize) -> Self {
        match value {
            Value::Object(object) if depth < DEEPEST => Self::Object(Self::fields(object, depth)),
            Value::Array(items) if depth < DEEPEST => {
                let first = items.first();
                Self::Array(
                    first
                        .map(|item| Self::at(item, depth + 1))
                        .into_iter()
                        .collect(),
                )
            }
            _ => Self::Scalar(type_name(value)),
        }
    }

    fn fields(object: &Map<String, Value>, depth: usize) -> BTreeMap<String, Self> {
        object
            .iter()
            .take(MOST_NAMES)
            .map(|(name, value)| (shown(name).to_owned(), Self::at(value, depth + 1)))
            .collect()
    }
}

/// The name of a field, unless it looks like a value: keys may be data.
fn shown(name: &str) -> &str {
    if is_word(name, LONGEST_NAME) {
        name
    } else {
        UNNAMED
    }
}

/// Whether a text looks like an identifier rather than like data.
pub fn is_word(text: &str, longest: usize) -> bool {
    text.len() <= longest
        && text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.$:".contains(&byte))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) => {
            if number.as_str().bytes().any(|byte| b".eE".contains(&byte)) {
                "number"
            } else {
                "integer"
            }
        }
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nulls_and_gaps_are_counted_apart() {
        let mut fields = Fields::default();
        for user in [
            json!({"id": 1, "name": null, "plan": 2.5}),
            json!({"id": "2", "name": "Zoë"}),
            json!({"id": 3}),
            json!({"id": 4, "name": "Ada"}),
        ] {
            fields.user(&user);
        }
        let profile = fields.profile().remove("user").unwrap();
        assert_eq!(profile["id"].types, ["integer", "string"]);
        let name = &profile["name"];
        assert_eq!((name.null_share, name.missing_share), (0.25, 0.25));
        assert_eq!(
            (profile["plan"].documented, profile["plan"].missing_share),
            (false, 0.75)
        );
        assert_eq!(profile["email"].missing_share, 1.0);
        assert!(profile["email"].types.is_empty());
    }

    #[test]
    fn a_sender_counts_by_its_type() {
        let mut fields = Fields::default();
        fields.message(&json!({"id": 1, "sender_type": "bot", "sender": {"title": "Bot"}}));
        fields.message(&json!({"id": 2, "sender_type": "user", "sender": {"id": 7}}));
        let profile = fields.profile();
        assert!(!profile["other_sender"]["title"].documented);
        assert_eq!(profile["user_sender"]["email"].missing_share, 1.0);
        assert!(!profile.contains_key("operator_sender"));
    }

    #[test]
    fn a_shape_has_no_values_and_no_keys_made_of_data() {
        let shape = Shape::of(&json!({
            "errors": [{"code": "x", "at": 3}, 7],
            "by": {"ada@example.com": true, "Ada Lovelace": 1.5},
        }));
        assert_eq!(
            serde_json::to_value(shape).unwrap(),
            json!({
                "errors": [{"code": "string", "at": "integer"}],
                "by": {"(other)": "number"},
            })
        );
    }

    #[test]
    fn names_without_end_are_bounded() {
        let mut fields = Fields::default();
        for number in 0..1000 {
            fields.user(&json!({format!("f{number}"): 1, "a b": number}));
        }
        assert!(fields.profile()["user"].len() <= MOST_NAMES + 10);
    }
}
