//! The requests that a fault applies to: `ROUTE [user=N] [message=N] [offset=N] [attempt=N]
//! [every=N] [p=F] : FAULT [xN [each]]`.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use super::fault::Fault;
use super::field::Kind::{Number, Whole};
use super::field::Omitted::Nothing;
use super::field::{Field, Value, named};
use super::grammar::{GrammarError, Parser};
use crate::routes::{Route, Target};

/// A fault and the requests that it applies to. Parses from its text, and displays as the shortest
/// text with the same meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub(super) text: String,
    /// Which requests match; `None` matches all.
    pub route: Option<Route>,
    pub user: Option<u64>,
    pub message: Option<u64>,
    pub offset: Option<u64>,
    /// Only this attempt of each request, from 1, counted since the rule was set.
    pub attempt: Option<u64>,
    /// One request in this many, spread over the requests and over the attempts of each.
    pub every: Option<u64>,
    /// With this probability, from 0 to 1.
    pub p: Option<f64>,
    pub fault: Fault,
    /// At most this often.
    pub times: Option<u64>,
    /// Whether `times` counts each distinct request separately.
    pub each: bool,
}

/// The routes that can have faults, and what distinguishes the requests of each.
const ROUTES: [(Route, &[&str]); 4] = [
    (Route::Users, &["offset"]),
    (Route::User, &["user"]),
    (Route::Messages, &["user", "offset"]),
    (Route::Message, &["user", "message"]),
];

const PARTS: &[&str] = &["user", "message", "offset"];

static CONDITIONS: [Field; 6] = [
    named("user", Whole(0, u64::MAX), Nothing),
    named("message", Whole(0, u64::MAX), Nothing),
    named("offset", Whole(0, u64::MAX), Nothing),
    named("attempt", Whole(1, u64::MAX), Nothing),
    named("every", Whole(1, u64::MAX), Nothing),
    named("p", Number(1.0), Nothing),
];

static TIMES: Field = named("the number after x", Whole(1, u64::MAX), Nothing);

impl Rule {
    /// Whether it applies to a request, apart from attempts and chance.
    pub fn matches(&self, request: &Target) -> bool {
        let matches = |wanted: Option<u64>, given| wanted.is_none() || wanted == given;
        ROUTES.iter().any(|(route, _)| *route == request.route)
            && self.route.is_none_or(|route| route == request.route)
            && matches(self.user, request.user)
            && matches(self.message, request.message)
            && matches(self.offset, request.offset)
    }

    fn parse(parser: &mut Parser<'_>) -> Result<Self, String> {
        let start = *parser;
        let name = parser.word();
        let (route, parts) = match ROUTES.iter().find(|(route, _)| route.name() == name) {
            Some((route, parts)) => (Some(*route), *parts),
            None if name == "any" => (None, PARTS),
            None => {
                return start.expected("expected a route (users, user, messages, message, any)");
            }
        };
        let mut values = [const { None }; CONDITIONS.len()];
        while !parser.token(':') {
            let condition = parser.assignment(&CONDITIONS.each_ref(), &mut values)?;
            if PARTS.contains(&condition) && !parts.contains(&condition) {
                return Err(format!("requests of the route {name} have no {condition}"));
            }
        }
        let shown = CONDITIONS.iter().zip(&values).filter_map(|(field, value)| {
            let value = value.as_ref()?;
            Some(format!(" {}={value}", field.name))
        });
        let shown: String = shown.collect();
        let whole = |value: &Option<Value>| match value {
            Some(Value::Whole(number)) => Some(*number),
            _ => None,
        };
        let [user, message, offset, attempt, every, p] = &values;
        if message.is_some() && offset.is_some() {
            return Err("no request has both a message and an offset".into());
        }
        let fault = Fault::parse(parser)?;
        let (times, each) = parse_times(parser)?;
        let times_shown = times.map_or_else(String::new, |times| format!(" x{times}"));
        let each_shown = if each { " each" } else { "" };
        Ok(Self {
            text: format!("{name}{shown}: {fault}{times_shown}{each_shown}"),
            route,
            user: whole(user),
            message: whole(message),
            offset: whole(offset),
            attempt: whole(attempt),
            every: whole(every),
            p: match p {
                Some(Value::Number(p)) => Some(*p),
                _ => None,
            },
            fault,
            times,
            each,
        })
    }
}

/// Parses `xN` or `xN each`, up to the end of the rule.
fn parse_times(parser: &mut Parser<'_>) -> Result<(Option<u64>, bool), String> {
    if parser.at_end() {
        return Ok((None, false));
    }
    if !parser.token('x') {
        return parser.expected("expected xN or the end after the fault");
    }
    let mut number = None;
    parser.once(&TIMES, &mut number)?;
    let mut ahead = *parser;
    let each = ahead.word() == "each";
    if each {
        *parser = ahead;
    }
    match number {
        Some(Value::Whole(times)) if parser.at_end() => Ok((Some(times), each)),
        _ => parser.expected("expected each or the end after xN"),
    }
}

/// Parses any number of rules, separated by newlines or semicolons.
///
/// # Errors
/// The first invalid rule, and why it is invalid.
pub fn read_rules(text: &str) -> Result<Vec<Rule>, GrammarError> {
    let mut parser = Parser { rest: text };
    let mut rules = Vec::new();
    loop {
        while parser.token('\n') || parser.token(';') {}
        if parser.at_end() {
            return Ok(rules);
        }
        let start = parser.rest;
        let rule = Rule::parse(&mut parser).map_err(|problem| GrammarError {
            text: start.lines().next().unwrap_or_default().trim().into(),
            problem,
        })?;
        rules.push(rule);
    }
}

impl FromStr for Rule {
    type Err = GrammarError;

    fn from_str(text: &str) -> Result<Self, GrammarError> {
        let mut rules = read_rules(text)?;
        match (rules.pop(), rules.is_empty()) {
            (Some(rule), true) => Ok(rule),
            _ => Err(GrammarError {
                text: text.trim().into(),
                problem: "expected one rule, as in users offset=0: status(503)".into(),
            }),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}
