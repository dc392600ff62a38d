//! The parser of fault rules. The tables in `fault.rs` and `rule.rs` say what may be written where.

use serde_json::Deserializer;
use thiserror::Error;

use super::field::{Call, Field, Form, Kind, Value};

/// Why a text is not a fault rule: the rule as written, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("fault \"{text}\": {problem}")]
pub struct GrammarError {
    pub text: String,
    pub problem: String,
}

/// The text that is not parsed yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parser<'text> {
    pub rest: &'text str,
}

impl<'text> Parser<'text> {
    fn skip_spaces(&mut self) {
        let space = |character: char| character.is_whitespace() && character != '\n';
        self.rest = self.rest.trim_start_matches(space);
    }

    /// Consumes a character, if it is next.
    pub fn token(&mut self, character: char) -> bool {
        self.skip_spaces();
        let rest = self.rest.strip_prefix(character);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Consumes a name or a number; empty if none comes next.
    pub fn word(&mut self) -> &'text str {
        self.skip_spaces();
        let wanted = |character: char| character.is_alphanumeric() || "_.+-".contains(character);
        let end = self.rest.find(|character| !wanted(character));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    /// Whether a rule ends here: at a newline, a semicolon or the end of the text.
    pub fn at_end(&mut self) -> bool {
        self.skip_spaces();
        self.rest.is_empty() || self.rest.starts_with(['\n', ';'])
    }

    /// An error that shows what comes instead.
    pub fn expected<T>(mut self, what: &str) -> Result<T, String> {
        let word = self.word();
        let next = self.rest.chars().next().filter(|next| *next != '\n');
        let next = next.map(String::from);
        Err(
            match Some(word)
                .filter(|word| !word.is_empty())
                .or(next.as_deref())
            {
                Some(next) => format!("{what}, not {next:?}"),
                None => format!("{what}, not the end"),
            },
        )
    }

    /// Parses one of the forms, with its fields in parentheses.
    pub fn call(&mut self, forms: &'static [Form]) -> Result<Call, String> {
        let name = self.word();
        let Some(form) = forms.iter().find(|form| form.name == name) else {
            let names: Vec<&str> = forms.iter().map(|form| form.name).collect();
            let names = names.join(", ");
            return Err(match name {
                "" => format!("a fault is missing; there are {names}"),
                _ => format!("unknown fault {name:?}; there are {names}"),
            });
        };
        let mut values = vec![None; form.fields.len()];
        let mut more = self.token('(') && !self.token(')');
        while more {
            self.argument(form, &mut values)?;
            more = self.token(',');
            if !more && !self.token(')') {
                return self.expected(&format!("expected , or ) in {name}(...)"));
            }
        }
        form.call(values)
    }

    /// Parses `value` or `name=value`, in its place.
    fn argument(&mut self, form: &Form, values: &mut [Option<Value>]) -> Result<(), String> {
        let mut ahead = *self;
        let name = ahead.word();
        let named = !name.is_empty() && ahead.token('=');
        let mut places = form.fields.iter().zip(values);
        let place = match named {
            true => places.find(|(field, _)| field.name == name),
            false => places.find(|(_, value)| value.is_none()),
        };
        let Some((field, value)) = place else {
            return self.expected(&form.takes());
        };
        if named {
            *self = ahead;
        }
        self.once(field, value)
    }

    /// Parses `name=value` for one of the fields.
    pub fn assignment(
        &mut self,
        fields: &[&Field],
        values: &mut [Option<Value>],
    ) -> Result<&'text str, String> {
        let start = *self;
        let name = self.word();
        let mut places = fields.iter().zip(values);
        let Some((field, value)) = places.find(|(field, _)| field.name == name) else {
            let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
            return start.expected(&format!("expected one of {}", names.join(", ")));
        };
        if !self.token('=') {
            return self.expected(&format!("expected = after {name}"));
        }
        self.once(field, value)?;
        Ok(name)
    }

    /// Parses the value of a field that has none yet.
    pub fn once(&mut self, field: &Field, value: &mut Option<Value>) -> Result<(), String> {
        match value.replace(self.value(field)?) {
            Some(_) => Err(format!("{} was given more than once", field.name)),
            None => Ok(()),
        }
    }

    fn value(&mut self, field: &Field) -> Result<Value, String> {
        self.skip_spaces();
        let start = *self;
        let mut texts = Deserializer::from_str(self.rest).into_iter::<String>();
        let value = match texts.next() {
            Some(Ok(text)) => {
                self.rest = self.rest.get(texts.byte_offset()..).unwrap_or_default();
                field.kind.quoted(text)
            }
            _ => match (self.word(), field.kind) {
                (word, Kind::NumberOr(_, form)) if word == form.name => {
                    *self = start;
                    return self.call(std::slice::from_ref(form)).map(Value::Call);
                }
                (word, kind) => kind.value(word),
            },
        };
        value.or_else(|must| start.expected(&format!("{} must be {must}", field.name)))
    }
}
