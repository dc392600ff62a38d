//! Access control: the token, the host names that requests may use, and errors.

use std::fmt::Display;
use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

use crate::world::WorldError;

/// An error response: what is wrong with a request, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub status: u16,
    pub message: String,
    /// The allowed methods, if the request's method is not allowed.
    pub allow: Option<&'static str>,
}

impl Problem {
    pub fn new(status: u16, message: impl Display) -> Self {
        Self {
            status,
            message: message.to_string(),
            allow: None,
        }
    }

    /// The body or the query is invalid.
    pub fn wrong(message: impl Display) -> Self {
        Self::new(400, message)
    }

    /// The request is valid, but not in the current state.
    pub fn conflict(message: impl Display) -> Self {
        Self::new(409, message)
    }

    pub fn wrong_method(allow: &'static str) -> Self {
        Self {
            allow: Some(allow),
            ..Self::new(405, format!("this path supports only {allow}"))
        }
    }

    /// The body as sent.
    pub fn body(&self) -> Value {
        let code = match self.status {
            401 => "unauthorized",
            403 => "wrong_host",
            404 => "not_found",
            405 => "wrong_method",
            409 => "conflict",
            413 => "too_large",
            500 => "defect",
            _ => "wrong_request",
        };
        json!({"error": {"status": self.status, "code": code, "message": self.message}})
    }
}

impl From<WorldError> for Problem {
    fn from(error: WorldError) -> Self {
        match error {
            WorldError::NoUser { .. } | WorldError::NoMessage { .. } => Self::new(404, error),
            _ => Self::wrong(error),
        }
    }
}

/// Admits a request that carries the token, in a header that no foreign page can make a browser
/// send.
///
/// # Errors
/// 401.
pub fn check_token(token: &SecretString, headers: &HeaderMap) -> Result<(), Problem> {
    let given = single(headers, &AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let given = given.unwrap_or_default().as_bytes();
    // Constant time, so that timing does not show how much of a guess was right.
    if bool::from(given.ct_eq(token.expose_secret().as_bytes())) {
        return Ok(());
    }
    Err(Problem::new(
        401,
        "send exactly one header Authorization: Bearer ADMIN_TOKEN, with the token after the # of \
         the inspector URL; the secret of a lane is not accepted",
    ))
}

/// Rejects requests that used a host name: the owner of a name can point it at this machine, and a
/// browser here then treats this server as part of that owner's site (DNS rebinding).
///
/// # Errors
/// 403.
pub fn check_host(headers: &HeaderMap) -> Result<(), Problem> {
    if single(headers, &HOST).is_some_and(is_address) {
        return Ok(());
    }
    Err(Problem::new(
        403,
        "the header Host must be an IP address or localhost, so that no website can reach this \
         server through its own host name; use the server's URL unchanged",
    ))
}

/// The value of a header that came exactly once.
fn single<'headers>(headers: &'headers HeaderMap, name: &HeaderName) -> Option<&'headers str> {
    let mut given = headers.get_all(name).iter();
    let value = given.next().filter(|_| given.next().is_none());
    value?.to_str().ok()
}

/// Whether it is an IP address or `localhost`, with or without a port.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let unbracketed = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let address = unbracketed.unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}
