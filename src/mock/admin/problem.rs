//! Errors of the admin interface: what is wrong with a request, and what would be right.

use std::fmt::Display;

use serde_json::{Value, json};

use crate::world::WorldError;

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub status: u16,
    /// A machine-readable word.
    code: &'static str,
    /// A sentence for people.
    message: String,
    /// The allowed methods, if the request's method is not allowed.
    pub allow: Option<&'static str>,
}

impl Problem {
    const fn new(status: u16, code: &'static str, message: String) -> Self {
        Self {
            status,
            code,
            message,
            allow: None,
        }
    }

    /// The body or the query is invalid.
    pub fn wrong<T: Display>(message: T) -> Self {
        let message = message.to_string();
        Self::new(400, "wrong_request", message)
    }

    pub fn wrong_host() -> Self {
        let message = "the header Host must be an IP address or localhost, so that no website can \
                       reach this server through its own host name; use the server's URL unchanged";
        Self::new(403, "wrong_host", message.into())
    }

    pub fn unauthorized() -> Self {
        let message = "send exactly one header Authorization: Bearer ADMIN_TOKEN, with the token \
                       after the # of the inspector URL; the secret of a lane is not accepted";
        Self::new(401, "unauthorized", message.into())
    }

    pub fn unknown_path() -> Self {
        let message = "unknown path; the paths are /__mock/, /__mock/state, \
                       /__mock/lanes and /__mock/lanes/NAME, and below it journal, dialect, rate, \
                       faults, world, drifts, clock and audit";
        Self::new(404, "unknown_path", message.into())
    }

    /// Something that the path or the body names does not exist.
    pub fn not_found(message: impl Display) -> Self {
        Self::new(404, "not_found", message.to_string())
    }

    pub fn wrong_method(allow: &'static str) -> Self {
        let message = format!("this path supports only {allow}");
        Self {
            allow: Some(allow),
            ..Self::new(405, "wrong_method", message)
        }
    }

    /// The request is valid, but not in the current state.
    pub fn conflict(message: impl Display) -> Self {
        Self::new(409, "conflict", message.to_string())
    }

    pub fn too_large(most: usize) -> Self {
        let message = format!("the body is larger than {most} bytes");
        Self::new(413, "too_large", message)
    }

    /// A bug in the mock.
    pub fn defect() -> Self {
        let message = "the mock failed; please report this request as a bug";
        Self::new(500, "defect", message.into())
    }

    /// The body as sent.
    pub fn body(&self) -> Value {
        let Self {
            status,
            code,
            message,
            ..
        } = self;
        json!({"error": {"status": status, "code": code, "message": message}})
    }
}

impl From<WorldError> for Problem {
    fn from(error: WorldError) -> Self {
        match error {
            WorldError::NoUser { .. } | WorldError::NoMessage { .. } => Self::not_found(error),
            _ => Self::wrong(error),
        }
    }
}
