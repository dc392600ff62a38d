//! The page arguments in a request's query, as a dialect reads them.

#[cfg(test)]
mod tests;

use hyper::Uri;

use super::dialect::{Dialect, OverLimit, Strict};
use super::refusal::Refusal;
use super::routes::{MAX_LIMIT, Target, plain_integer};

/// Parses the query of a list, and adds the page to apply to the target.
///
/// # Errors
/// A refusal with status 422 for an unknown, repeated or out-of-range argument, if the dialect is
/// that strict.
pub fn read_page(target: Target, uri: &Uri, dialect: &Dialect) -> Result<Target, Refusal> {
    let strict = dialect.strict == Strict::Yes;
    let (mut offset, mut limit) = (None, None);
    for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or("").as_bytes()) {
        let before = match &*name {
            "offset" => read_offset(&value, strict)?.and_then(|value| offset.replace(value)),
            "limit" => read_limit(&value, dialect)?.and_then(|value| limit.replace(value)),
            _ if strict => {
                let rule = "a list takes offset and limit";
                return Err(Refusal::unknown_argument(&name, rule));
            }
            _ => None,
        };
        if strict && before.is_some() {
            return Err(Refusal::repeated_argument(&name));
        }
    }
    let usual = dialect.default_limit.get().min(dialect.max_limit.get());
    Ok(Target {
        offset: offset.or(Some(0)),
        limit: limit.or(Some(usual)),
        ..target
    })
}

/// Refuses any query: single items take no arguments (interface 4).
///
/// # Errors
/// A refusal with status 422 that names the first argument.
pub fn refuse_query(uri: &Uri) -> Result<(), Refusal> {
    match url::form_urlencoded::parse(uri.query().unwrap_or("").as_bytes()).next() {
        Some((name, _)) => Err(Refusal::unknown_argument(&name, "a single item takes none")),
        None => Ok(()),
    }
}

/// The limit to apply; `None` for an invalid one that is ignored.
fn read_limit(value: &str, dialect: &Dialect) -> Result<Option<u64>, Refusal> {
    let most = dialect.max_limit.get();
    let refusal = |limit: Option<u64>| {
        let rule = match most {
            MAX_LIMIT => "limit must be an integer greater than 0 and lower than 100".to_owned(),
            _ => format!("limit must be an integer from 1 to {most}"),
        };
        let refusal = Refusal::invalid_argument("invalid_limit", &rule, value);
        Err(match limit {
            Some(1..=MAX_LIMIT) => refusal.by_dialect(),
            _ => refusal,
        })
    };
    match (plain_integer(value), dialect.over_limit) {
        (Some(limit), _) if (1..=most).contains(&limit) => Ok(Some(limit)),
        (Some(limit), OverLimit::Refuse) => refusal(Some(limit)),
        (Some(limit), OverLimit::Clamp) => Ok(Some(limit.clamp(1, most))),
        (Some(_), OverLimit::Ignore) => Ok(None),
        (None, _) if dialect.strict == Strict::Yes => refusal(None),
        (None, _) => Ok(None),
    }
}

fn read_offset(value: &str, strict: bool) -> Result<Option<u64>, Refusal> {
    match plain_integer(value).filter(|offset| i64::try_from(*offset).is_ok()) {
        None if strict => {
            let rule = "offset must be an integer from 0 to 9223372036854775807";
            Err(Refusal::invalid_argument("invalid_offset", rule, value))
        }
        offset => Ok(offset),
    }
}
