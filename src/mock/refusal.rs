//! The mock's error responses. The interface does not document errors, so all of this is a guess,
//! and every body says so.

use hyper::StatusCode;
use serde_json::json;

/// A response that is not data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    /// A machine-readable word.
    pub code: &'static str,
    /// A sentence for people: which part of the request was wrong, and what would be right.
    pub message: String,
    by_dialect: bool,
}

impl Refusal {
    /// The same, for a request that the interface allows but the dialect does not.
    pub fn by_dialect(self) -> Self {
        Self {
            by_dialect: true,
            ..self
        }
    }

    /// Why no client should have sent the request; `None` if the interface allows it.
    pub fn unexpected(&self) -> Option<&'static str> {
        (!self.by_dialect).then_some(self.code)
    }

    fn new(status: u16, code: &'static str, message: String) -> Self {
        Self {
            status,
            code,
            message,
            by_dialect: false,
        }
    }

    pub fn unknown_path(path: &str) -> Self {
        let message = format!(
            "unknown path {}; the paths are /external/users, /external/users/USER_ID, \
             /external/users/USER_ID/messages and /external/users/USER_ID/messages/MESSAGE_ID, \
             with plain integers for the ids",
            excerpt(path)
        );
        Self::new(404, "unknown_path", message)
    }

    pub fn wrong_method(method: &str) -> Self {
        Self::new(
            405,
            "wrong_method",
            format!("only GET is supported, not {}", excerpt(method)),
        )
    }

    pub fn unauthorized() -> Self {
        let message = "send exactly one header Authorization: Bearer API_SECRET, with this \
                       service's secret";
        Self::new(401, "unauthorized", message.into())
    }

    pub fn not_acceptable(media_type: &str) -> Self {
        let message = format!("the header Accept must name {media_type}; a wildcard is not enough");
        Self::new(406, "not_acceptable", message)
    }

    pub fn invalid_argument(code: &'static str, rule: &str, value: &str) -> Self {
        Self::new(422, code, format!("{rule}, not {}", excerpt(value)))
    }

    pub fn unknown_argument(name: &str, rule: &str) -> Self {
        Self::new(
            422,
            "unknown_argument",
            format!("unknown argument {}; {rule}", excerpt(name)),
        )
    }

    pub fn repeated_argument(name: &str) -> Self {
        Self::new(
            422,
            "repeated_argument",
            format!("{} was given more than once", excerpt(name)),
        )
    }

    pub fn unknown_user(user_id: u64) -> Self {
        Self::new(404, "unknown_user", format!("there is no user {user_id}"))
    }

    pub fn unknown_message(user_id: u64, message_id: u64) -> Self {
        let message = format!("user {user_id} has no message {message_id}");
        Self::new(404, "unknown_message", message)
    }

    pub fn past_end(offset: u64, rows: u64) -> Self {
        let message = format!("the list has {rows} rows, and none at offset {offset}");
        Self::new(404, "past_end", message)
    }

    pub fn rate_limited(status: u16) -> Self {
        let message = "too many requests with this secret; wait, then try again".to_owned();
        Self::new(status, "rate_limited", message)
    }

    /// The response of a fault without a given body.
    pub fn by_fault(status: u16) -> Self {
        let reason = StatusCode::from_u16(status).ok();
        let reason = reason.and_then(|status| status.canonical_reason());
        let message = format!("{}: set by a fault rule", reason.unwrap_or("fault"));
        Self::new(status, "fault", message)
    }

    /// The body as sent.
    pub fn body(&self) -> String {
        let (status, code, message) = (self.status, self.code, &self.message);
        json!({"error": {"status": status, "code": code, "message": message, "guess": true}})
            .to_string()
    }
}

/// A quoted part of the request, truncated if it is long.
fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    let start: String = text.chars().take(LONGEST).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{more}")
}
