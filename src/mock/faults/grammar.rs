//! The grammar of faults, as tokens and calls; their meaning is handled elsewhere.

use std::fmt::{self, Write as _};

use thiserror::Error;

/// Why a text is not a fault rule: the rule as written, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("fault \"{text}\": {problem}")]
pub struct GrammarError {
    pub text: String,
    pub problem: String,
}

/// A value as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'text> {
    /// A number or a word.
    Bare(&'text str),
    /// The text between quotes, unescaped.
    Quoted(String),
    /// `name(arguments)`.
    Call(Call<'text>),
}

/// A name with optional arguments in parentheses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call<'text> {
    pub name: &'text str,
    arguments: Vec<(Option<&'text str>, Value<'text>)>,
}

impl<'text> Call<'text> {
    /// Takes the argument with this name.
    ///
    /// # Errors
    /// The name was given more than once.
    pub fn named(&mut self, name: &str) -> Result<Option<Value<'text>>, String> {
        self.take(name, |given| given == Some(name))
    }

    /// Takes the first unnamed argument, or the one with this name.
    ///
    /// # Errors
    /// Both were given.
    pub fn first(&mut self, name: &str) -> Result<Option<Value<'text>>, String> {
        self.take(name, |given| given.is_none_or(|given| given == name))
    }

    fn take(
        &mut self,
        name: &str,
        wanted: impl Fn(Option<&str>) -> bool,
    ) -> Result<Option<Value<'text>>, String> {
        let Some(at) = self.arguments.iter().position(|(name, _)| wanted(*name)) else {
            return Ok(None);
        };
        let (_, value) = self.arguments.remove(at);
        if self
            .arguments
            .iter()
            .any(|(given, _)| given.is_some_and(|given| given == name))
        {
            return Err(format!("{name} was given more than once"));
        }
        Ok(Some(value))
    }

    /// Checks that every argument was taken.
    ///
    /// # Errors
    /// Names the first one that was not; `takes` lists the valid ones.
    pub fn finish(&self, takes: &str) -> Result<(), String> {
        let Some((name, value)) = self.arguments.first() else {
            return Ok(());
        };
        let call = self.name;
        let given = match name {
            Some(name) => format!("{name}={value}"),
            None => value.to_string(),
        };
        Err(if takes.is_empty() {
            format!("{call} takes no arguments, not {given}")
        } else {
            format!("{call} takes {takes}, not {given}")
        })
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bare(text) => formatter.write_str(text),
            Self::Quoted(text) => Quoted(text).fmt(formatter),
            Self::Call(call) => write!(formatter, "{}(...)", call.name),
        }
    }
}

/// A quoted text, escaped so that it parses back to the same text.
pub(crate) struct Quoted<'text>(pub &'text str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => formatter.write_str("\\\"")?,
                '\\' => formatter.write_str("\\\\")?,
                '\n' => formatter.write_str("\\n")?,
                '\r' => formatter.write_str("\\r")?,
                '\t' => formatter.write_str("\\t")?,
                control if control.is_control() => {
                    write!(formatter, "\\u{{{:x}}}", u32::from(control))?;
                }
                plain => formatter.write_char(plain)?,
            }
        }
        formatter.write_char('"')
    }
}

/// A position in the text; spaces before the next token are skipped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'text> {
    rest: &'text str,
}

impl<'text> Cursor<'text> {
    pub const fn new(text: &'text str) -> Self {
        Self { rest: text }
    }

    /// The unread rest.
    pub const fn rest(&self) -> &'text str {
        self.rest
    }

    fn skip_spaces(&mut self) {
        self.rest = self
            .rest
            .trim_start_matches(|character: char| character.is_whitespace() && character != '\n');
    }

    /// Whether only spaces are left.
    pub fn at_end(&mut self) -> bool {
        self.skip_spaces();
        self.rest.is_empty()
    }

    /// Consumes a newline or a semicolon, which end a rule.
    pub fn separator(&mut self) -> bool {
        self.token('\n') || self.token(';')
    }

    /// Whether a rule ends here.
    pub fn at_separator(&mut self) -> bool {
        self.at_end() || self.rest.starts_with(['\n', ';'])
    }

    /// Consumes one character, if it is next.
    pub fn token(&mut self, character: char) -> bool {
        self.skip_spaces();
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Consumes the characters of a number or word; empty if none comes next.
    pub fn bare(&mut self) -> &'text str {
        self.skip_spaces();
        let wanted = |character: char| character.is_alphanumeric() || "_.+-".contains(character);
        let end = self.rest.find(|character| !wanted(character));
        let (bare, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        bare
    }

    /// What comes next, for an error message.
    pub fn shown(&mut self) -> String {
        let mut ahead = *self;
        let bare = ahead.bare();
        match ahead.rest.chars().next() {
            _ if !bare.is_empty() => format!("{bare:?}"),
            Some('\n') | None => "the end".into(),
            Some(other) => format!("{:?}", other.to_string()),
        }
    }

    /// A name, with optional arguments in parentheses.
    pub fn call(&mut self) -> Result<Call<'text>, String> {
        let name = self.bare();
        self.arguments(name, true)
    }

    fn arguments(&mut self, name: &'text str, nested: bool) -> Result<Call<'text>, String> {
        let mut arguments = Vec::new();
        if self.token('(') && !self.token(')') {
            loop {
                arguments.push(self.argument(nested)?);
                if self.token(')') {
                    break;
                }
                if !self.token(',') {
                    return Err(format!(
                        "expected , or ) in {name}(...), not {}",
                        self.shown()
                    ));
                }
            }
        }
        Ok(Call { name, arguments })
    }

    fn argument(&mut self, nested: bool) -> Result<(Option<&'text str>, Value<'text>), String> {
        let mut ahead = *self;
        let name = ahead.bare();
        if !name.is_empty() && ahead.token('=') {
            *self = ahead;
            return Ok((Some(name), self.value(nested)?));
        }
        Ok((None, self.value(nested)?))
    }

    fn value(&mut self, nested: bool) -> Result<Value<'text>, String> {
        if self.token('"') {
            return self.quoted().map(Value::Quoted);
        }
        let bare = self.bare();
        if bare.is_empty() {
            return Err(format!("expected a value, not {}", self.shown()));
        }
        // Calls nest only one level deep; without a limit, odd texts could exhaust the stack.
        if nested && self.rest.starts_with('(') {
            return self.arguments(bare, false).map(Value::Call);
        }
        Ok(Value::Bare(bare))
    }

    fn quoted(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut characters = self.rest.chars();
        while let Some(character) = characters.next() {
            text.push(match character {
                '"' => {
                    self.rest = characters.as_str();
                    return Ok(text);
                }
                '\\' => match characters.next() {
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    Some('u') => {
                        let (code, rest) = characters
                            .as_str()
                            .strip_prefix('{')
                            .and_then(|rest| rest.split_once('}'))
                            .ok_or("\\u needs a code in braces, as in \\u{7f}")?;
                        characters = rest.chars();
                        u32::from_str_radix(code, 16)
                            .ok()
                            .and_then(char::from_u32)
                            .ok_or_else(|| format!("\\u{{{code}}} is not a character"))?
                    }
                    Some(same @ ('"' | '\\')) => same,
                    Some(other) => {
                        return Err(format!(
                            "unknown escape \\{other}; there are \\\" \\\\ \\n \\r \\t \\u{{...}}"
                        ));
                    }
                    None => break,
                },
                plain => plain,
            });
        }
        Err("a closing quote is missing".into())
    }
}

/// Parses a whole number from `least` to `most`.
pub(super) fn whole(name: &str, value: &Value<'_>, least: u64, most: u64) -> Result<u64, String> {
    let Value::Bare(text) = value else {
        return Err(format!("{name} must be a whole number, not {value}"));
    };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse::<u64>().ok();
    match number.filter(|_| digits) {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        None if !digits => Err(format!("{name} must be a whole number, not {text:?}")),
        _ => Err(format!("{name} must be from {least} to {most}, not {text}")),
    }
}

/// Parses a number, with or without a decimal point.
pub(super) fn decimal(name: &str, value: &Value<'_>) -> Result<f64, String> {
    let number = match value {
        Value::Bare(text) => text.parse::<f64>().ok(),
        Value::Quoted(_) | Value::Call(_) => None,
    };
    let refuse = || format!("{name} must be a number, not {value}");
    number
        .filter(|number| number.is_finite())
        .ok_or_else(refuse)
}

/// Parses a quoted text.
pub(super) fn quoted(name: &str, value: Value<'_>) -> Result<String, String> {
    match value {
        Value::Quoted(text) => Ok(text),
        other => Err(format!(
            "{name} must be in quotes, as in \"...\", not {other}"
        )),
    }
}
