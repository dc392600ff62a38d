//! The requests that a fault applies to: `ROUTE [user=N] [message=N] [offset=N] [attempt=N]
//! [every=N] [p=F] : FAULT [xN]`.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use crate::faults::fault::Fault;
use crate::faults::grammar::{Cursor, GrammarError, Value, decimal, whole};
use crate::request_key::RequestKey;
use crate::routes::Route;

/// A fault and the requests that it applies to. Parses from its text, and displays as it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub on: Selector,
    /// Only this attempt of each request, from 1, counted since the rule was set.
    pub attempt: Option<NonZeroU64>,
    /// One request in this many, spread over the requests and over the attempts of each.
    pub every: Option<NonZeroU64>,
    /// With this probability.
    pub p: Option<Probability>,
    pub fault: Fault,
    /// At most this often for each distinct request.
    pub times: Option<NonZeroU64>,
}

/// Which requests match; all given parts must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    route: Option<Route>,
    user: Option<u64>,
    message: Option<u64>,
    offset: Option<u64>,
}

/// From 0 (never) to 1 (always).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Whether a number in `[0, 1)` is below it.
    #[must_use]
    pub fn holds(self, number: f64) -> bool {
        number < self.0
    }
}

/// The routes that can have faults.
const ROUTES: [Route; 4] = [Route::Users, Route::User, Route::Messages, Route::Message];

/// Whether requests of a route have a user, a message, an offset.
const fn parts(route: Route) -> (bool, bool, bool) {
    match route {
        Route::Users => (false, false, true),
        Route::User => (true, false, false),
        Route::Messages => (true, false, true),
        Route::Message => (true, true, false),
        Route::OpenApi | Route::Other => (false, false, false),
    }
}

impl Selector {
    /// Whether a request matches.
    #[must_use]
    pub fn matches(&self, request: &RequestKey) -> bool {
        let (user, message, offset) = parts(request.route);
        let part = |wanted: Option<u64>, there: bool, given: u64| {
            wanted.is_none_or(|wanted| there && wanted == given)
        };
        ROUTES.contains(&request.route)
            && self.route.is_none_or(|route| route == request.route)
            && part(self.user, user, request.user)
            && part(self.message, message, request.message)
            && part(self.offset, offset, request.offset)
    }

    /// Whether requests of this route can have the part.
    fn takes(&self, name: &str) -> bool {
        let parts = self.route.map_or((true, true, true), parts);
        match name {
            "user" => parts.0,
            "message" => parts.1,
            "offset" => parts.2,
            _ => true,
        }
    }
}

/// Rejects an argument that is given twice, which is probably a mistake.
fn once<T>(place: &mut Option<T>, name: &str, value: T) -> Result<(), String> {
    match place.replace(value) {
        Some(_) => Err(format!("{name} was given more than once")),
        None => Ok(()),
    }
}

/// A whole number, 1 or more.
fn positive(name: &str, value: &Value<'_>) -> Result<NonZeroU64, String> {
    let number = whole(name, value, 1, u64::MAX)?;
    Ok(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
}

fn read_route(cursor: &mut Cursor<'_>) -> Result<Option<Route>, String> {
    let shown = cursor.shown();
    let name = cursor.bare();
    let route = ROUTES.into_iter().find(|route| route.name() == name);
    if route.is_some() || name == "any" {
        return Ok(route);
    }
    Err(format!(
        "expected a route (users, user, messages, message, any), not {shown}"
    ))
}

fn read_times(cursor: &mut Cursor<'_>) -> Result<Option<NonZeroU64>, String> {
    if cursor.at_separator() {
        return Ok(None);
    }
    let shown = cursor.shown();
    let refuse = || format!("expected xN or the end after the fault, not {shown}");
    let digits = cursor.bare().strip_prefix('x').ok_or_else(refuse)?;
    // Accepts "x 2" as well as "x2".
    let digits = if digits.is_empty() {
        cursor.bare()
    } else {
        digits
    };
    let times = positive("the number after x", &Value::Bare(digits))?;
    if cursor.at_separator() {
        return Ok(Some(times));
    }
    Err(format!(
        "expected the end after x{times}, not {}",
        cursor.shown()
    ))
}

fn read_rule(cursor: &mut Cursor<'_>) -> Result<Rule, String> {
    let mut on = Selector {
        route: read_route(cursor)?,
        ..Selector::default()
    };
    let (mut attempt, mut every, mut p) = (None, None, None);
    while !cursor.token(':') {
        let shown = cursor.shown();
        let name = cursor.bare();
        if name.is_empty() {
            return Err(format!(
                "expected a condition such as offset=0, or a colon, not {shown}"
            ));
        }
        if !cursor.token('=') {
            return Err(format!("expected = after {name}, not {}", cursor.shown()));
        }
        if !on.takes(name) {
            let route = on.route.map_or("any", Route::name);
            return Err(format!("requests of the route {route} have no {name}"));
        }
        let value = Value::Bare(cursor.bare());
        match name {
            "user" => once(&mut on.user, name, whole(name, &value, 0, u64::MAX)?)?,
            "message" => once(&mut on.message, name, whole(name, &value, 0, u64::MAX)?)?,
            "offset" => once(&mut on.offset, name, whole(name, &value, 0, u64::MAX)?)?,
            "attempt" => once(&mut attempt, name, positive(name, &value)?)?,
            "every" => once(&mut every, name, positive(name, &value)?)?,
            "p" => {
                let number = decimal(name, &value)?;
                if !(0.0..=1.0).contains(&number) {
                    return Err(format!("p must be from 0 to 1, not {number}"));
                }
                once(&mut p, name, Probability(number.abs()))?;
            }
            other => {
                return Err(format!(
                    "unknown condition {other:?}; there are user, message, offset, attempt, \
                     every, p"
                ));
            }
        }
    }
    if on.message.is_some() && on.offset.is_some() {
        return Err("no request has both a message and an offset".into());
    }
    let fault = cursor.call().and_then(Fault::read)?;
    Ok(Rule {
        on,
        attempt,
        every,
        p,
        fault,
        times: read_times(cursor)?,
    })
}

/// Parses any number of rules, separated by newlines or semicolons.
///
/// # Errors
/// The first invalid rule, and why it is invalid.
pub fn read_rules(text: &str) -> Result<Vec<Rule>, GrammarError> {
    let mut cursor = Cursor::new(text);
    let mut rules = Vec::new();
    loop {
        while cursor.separator() {}
        if cursor.at_end() {
            return Ok(rules);
        }
        let start = cursor.rest();
        let rule = read_rule(&mut cursor).map_err(|problem| {
            let line = start.lines().next().unwrap_or_default().trim();
            GrammarError {
                text: line.into(),
                problem,
            }
        })?;
        rules.push(rule);
    }
}

impl FromStr for Rule {
    type Err = GrammarError;

    fn from_str(text: &str) -> Result<Self, GrammarError> {
        let error = |problem: &str| GrammarError {
            text: text.trim().into(),
            problem: problem.into(),
        };
        let mut rules = read_rules(text)?;
        match (rules.pop(), rules.is_empty()) {
            (Some(rule), true) => Ok(rule),
            (Some(_), false) => Err(error("expected one rule, not several")),
            (None, _) => Err(error("expected a rule, as in users offset=0: status(503)")),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.on.route.map_or("any", Route::name))?;
        let positive = |number: Option<NonZeroU64>| number.map(NonZeroU64::get);
        for (name, value) in [
            ("user", self.on.user),
            ("message", self.on.message),
            ("offset", self.on.offset),
            ("attempt", positive(self.attempt)),
            ("every", positive(self.every)),
        ] {
            if let Some(value) = value {
                write!(formatter, " {name}={value}")?;
            }
        }
        if let Some(Probability(p)) = self.p {
            write!(formatter, " p={p}")?;
        }
        write!(formatter, ": {}", self.fault)?;
        match self.times {
            Some(times) => write!(formatter, " x{times}"),
            None => Ok(()),
        }
    }
}
