//! The fields of faults and conditions: what each accepts, and how its value is written.

use std::fmt;
use std::num::IntErrorKind;

use serde_json::Value as Json;

/// A name with fields in parentheses, such as a fault.
#[derive(Debug)]
pub(super) struct Form {
    pub name: &'static str,
    pub fields: &'static [Field],
}

/// A value with a name.
#[derive(Debug)]
pub(super) struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub omitted: Omitted,
    /// Whether it is written without its name; both ways can be parsed.
    pub bare: bool,
}

/// What a field accepts, with its bounds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A whole number.
    Whole(u64, u64),
    /// A number from 0.
    Number(f64),
    /// A number from 0, or a call such as `lognormal(200, 0.5)`.
    NumberOr(f64, &'static Form),
    /// Text in quotes, as in JSON.
    Text,
    /// The same, of printable ASCII only.
    Ascii,
    Words(&'static [&'static str]),
}

/// What it means that a field is not given.
#[derive(Clone, Copy, Debug)]
pub(super) enum Omitted {
    Wrong,
    Nothing,
    /// The same as this text.
    Same(&'static str),
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Whole(u64),
    Number(f64),
    Text(String),
    Word(&'static str),
    Call(Call),
}

/// A name, and its form's values in their order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub name: &'static str,
    pub values: Vec<Option<Value>>,
    /// The shortest text that has this meaning.
    pub text: String,
}

pub(super) const fn form(name: &'static str, fields: &'static [Field]) -> Form {
    Form { name, fields }
}

/// A field that is written without its name.
pub(super) const fn bare(name: &'static str, kind: Kind, omitted: Omitted) -> Field {
    Field {
        bare: true,
        ..named(name, kind, omitted)
    }
}

pub(super) const fn named(name: &'static str, kind: Kind, omitted: Omitted) -> Field {
    Field {
        name,
        kind,
        omitted,
        bare: false,
    }
}

impl Form {
    /// A call with these values and the defaults of the others.
    pub fn call(&self, mut values: Vec<Option<Value>>) -> Result<Call, String> {
        let mut shown = Vec::new();
        for (
            Field {
                kind,
                omitted,
                name,
                bare,
            },
            value,
        ) in self.fields.iter().zip(&mut values)
        {
            match (omitted, &value) {
                (Omitted::Wrong, None) => return Err(self.takes()),
                (Omitted::Same(word), None) => {
                    *value = Some(kind.quoted((*word).into()).or_else(|_| kind.value(word))?);
                }
                _ => {}
            }
            shown.extend(value.as_ref().map(|value| match bare {
                true => value.to_string(),
                false => format!("{name}={value}"),
            }));
        }
        Ok(Call {
            name: self.name,
            text: format!("{}({})", self.name, shown.join(", ")),
            values,
        })
    }

    /// What it takes, for an error message.
    pub fn takes(&self) -> String {
        let fields: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
        match fields.as_slice() {
            [] => format!("{} takes no arguments", self.name),
            _ => format!("{} takes {}", self.name, fields.join(", ")),
        }
    }
}

impl Kind {
    /// The value of a word, or what the word must be.
    pub fn value(self, word: &str) -> Result<Value, String> {
        match self {
            Self::Whole(least, most) => match word.parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(Value::Whole(number)),
                Err(error) if *error.kind() != IntErrorKind::PosOverflow => {
                    Err("a whole number".into())
                }
                _ => Err(format!("from {least} to {most}")),
            },
            Self::Number(most) | Self::NumberOr(most, _) => match word.parse::<f64>() {
                // Without the sign of a negative zero.
                Ok(number) if (0.0..=most).contains(&number) => Ok(Value::Number(number.abs())),
                Ok(number) if number.is_finite() => Err(format!("from 0 to {most}")),
                _ => Err("a number".into()),
            },
            Self::Words(words) => match words.iter().find(|each| **each == word) {
                Some(word) => Ok(Value::Word(word)),
                None => Err(words.join(" or ")),
            },
            Self::Text | Self::Ascii => Err("text in quotes, with escapes as in JSON".into()),
        }
    }

    /// The value of a text in quotes, or what it must be.
    pub fn quoted(self, text: String) -> Result<Value, String> {
        let printable = |byte: u8| (b' '..=b'~').contains(&byte);
        match self {
            Self::Text => Ok(Value::Text(text)),
            Self::Ascii if text.bytes().all(printable) => Ok(Value::Text(text)),
            Self::Ascii => Err("printable ASCII".into()),
            _ => self.value(""),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(formatter),
            Self::Number(number) => number.fmt(formatter),
            Self::Text(text) => Json::from(text.as_str()).fmt(formatter),
            Self::Word(word) => formatter.write_str(word),
            Self::Call(call) => formatter.write_str(&call.text),
        }
    }
}
