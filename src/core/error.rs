//! The error tree: what happened, to which request, after which attempts, and what to do.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::report::WalkReport;

/// One request that was sent, and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attempt {
    /// The HTTP status, if a response came.
    pub status: Option<u16>,
    /// What went wrong, if anything.
    pub error: Option<String>,
    pub seconds_taken: f64,
    /// How long the client waited before this attempt.
    pub seconds_waited: f64,
}

/// A response with a non-success status, as received.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusFailure {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub request_id: Option<String>,
    /// The wait stated by `Retry-After` or `X-RateLimit-Reset`.
    pub retry_after: Option<Duration>,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ErrorKind {
    /// The interface forbids this argument; nothing was sent.
    #[error("{0}")]
    InvalidArgument(String),
    #[error("{0}")]
    Configuration(String),
    /// No response began: connection refused or reset, DNS failure.
    #[error("no answer: {0}; check base_url, the network and the proxy")]
    Connect(String),
    /// TLS failed in a way that waiting does not fix: certificates, protocol versions.
    #[error("no secure connection to {0}")]
    Insecure(String),
    /// A proxy answered 407 to CONNECT; another attempt might lock the account.
    #[error("the proxy refused the connection with 407: {}", PROXY_PASSWORD)]
    ProxyPassword,
    /// The head of the response is malformed.
    #[error(
        "the service answered with headers that are not HTTP: {0}; check base_url and the proxy"
    )]
    NotHttp(String),
    #[error("no complete answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("the answer's body is incomplete: {0}")]
    TruncatedBody(String),
    #[error("the answer is larger than {limit} bytes once decoded")]
    ResponseTooLarge { limit: u64 },
    /// A redirect, which is never followed, and other transport failures.
    #[error("{0}")]
    Transport(String),
    #[error(fmt = deadline_exceeded)]
    DeadlineExceeded {
        deadline: Duration,
        /// The wait that would have passed the deadline, if the call gave up early.
        wait: Option<Duration>,
    },
    /// The run may send no more requests, or its time is over; it ends early, without an error.
    #[error("the budget of this run is spent; run it again to go on")]
    BudgetSpent,
    #[error(fmt = misfit_at)]
    Decode {
        path: String,
        snippet: String,
        reason: String,
        misfit: Misfit,
    },
    #[error("{}", .0.in_words(.0.advice(), .0.words()))]
    Status(Box<StatusFailure>),
    #[error(
        "the list is not proved complete: {}",
        .0.reason.as_deref().unwrap_or("no reason is known")
    )]
    Incomplete(Box<WalkReport>),
    #[error("this client is closed; make a new one")]
    Closed,
    /// The background reader stopped without reporting a result: a bug in backread.
    #[error(
        "reading stopped before its end, which is a bug in backread; please report it, and read again"
    )]
    Aborted,
    /// The walk was started by another process, before a fork.
    #[error("this read was started before a fork, in another process; start a new one")]
    OtherProcess,
}

// How much of an error's body is read for its message, in bytes, and shown, in characters.
const MOST_BODY_READ: usize = 16 * 1024;
const MOST_WORDS: usize = 120;
// Where frameworks put it, in this order (`detail` and `title` are of RFC 9457).
const MESSAGE_FIELDS: [&str; 6] = ["detail", "message", "msg", "error", "errors", "title"];
const PROXY_PASSWORD: &str = "the proxy requires a user name and password, or rejected those \
                              given (only Basic, RFC 7617, is known: for NTLM or Negotiate, name a \
                              relay on this machine)";
const WEB_PAGE: &str = "; its answer is a web page, so something in front of the service may have \
                        sent it (a proxy, a firewall)";
const NO_LIST_OF_USERS: &str = "it has no list of users there; check base_url, which must be all \
                                that is in front of /external/users";

/// How a response differs from the documented shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// Not JSON; retrying may well give JSON.
    NotJson,
    /// JSON, but not an object, or not a page.
    Envelope,
    /// A record has no integer id.
    Field,
}

impl Misfit {
    fn in_words(self) -> &'static str {
        match self {
            Self::NotJson => "the answer is not JSON",
            Self::Envelope | Self::Field => "the answer does not have the documented shape",
        }
    }
}

/// The error of every operation of the core. Boxed, because results are moved far more often than
/// read.
#[derive(Debug, Clone, PartialEq)]
pub struct Error(Box<Details>);

#[derive(Debug, Clone, PartialEq)]
pub struct Details {
    pub kind: ErrorKind,
    /// The URL of the request, without the secret.
    pub url: Option<String>,
    pub attempts: Vec<Attempt>,
    /// The failure that was being retried when the deadline passed.
    pub cause: Option<Error>,
    /// How long it waited for an outage to end, if that was not enough.
    pub patience: Option<Duration>,
}

impl Deref for Error {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl Error {
    pub fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Details {
            kind,
            url: None,
            attempts: Vec::new(),
            cause: None,
            patience: None,
        }))
    }

    pub fn invalid_argument(message: String) -> Self {
        Self::new(ErrorKind::InvalidArgument(message))
    }

    pub fn configuration<M: Into<String>>(message: M) -> Self {
        Self::new(ErrorKind::Configuration(message.into()))
    }

    pub fn during(mut self, url: String, attempts: Vec<Attempt>) -> Self {
        self.0.url = Some(url);
        self.0.attempts = attempts;
        self
    }

    /// The HTTP status of the response, if that is the error.
    pub fn status(&self) -> Option<u16> {
        match &self.kind {
            ErrorKind::Status(failure) => Some(failure.status),
            _ => None,
        }
    }

    /// Whether a user whose list was requested is not there: 404, or 410 where a service says that it
    /// was (RFC 9110 15.5.11).
    pub fn is_not_found(&self) -> bool {
        matches!(self.status(), Some(404 | 410))
    }

    /// Whether it is an error status whose body says that it is HTML or plain text, as gateways send
    /// them, and not JSON.
    pub fn is_page_or_text(&self) -> bool {
        matches!(&self.kind, ErrorKind::Status(failure) if failure.is_of_type("text/"))
    }

    /// Whether the response exceeds `max_response_bytes`.
    pub fn is_too_large(&self) -> bool {
        matches!(self.kind, ErrorKind::ResponseTooLarge { .. })
    }

    /// Whether the run's budget is spent, which ends the run early.
    pub fn is_budget_spent(&self) -> bool {
        self.kind == ErrorKind::BudgetSpent
    }

    /// Whether the service responded, even with something unusable.
    pub fn is_an_answer(&self) -> bool {
        matches!(self.kind, ErrorKind::Status(_) | ErrorKind::Decode { .. })
    }

    /// The same error with all the attempts of its request.
    pub fn after_attempts(mut self, attempts: Vec<Attempt>) -> Self {
        self.0.attempts = attempts;
        self
    }

    /// The same error, noting that outages outlasted this patience.
    pub fn after_patience(mut self, patience: Duration) -> Self {
        self.0.patience = Some(patience);
        self
    }

    pub fn because(mut self, cause: Self) -> Self {
        self.0.cause = Some(cause);
        self
    }

    pub fn into_cause(self) -> Option<Self> {
        self.0.cause
    }
}

impl std::error::Error for Error {}

impl Error {
    /// The message without any part of a response.
    pub fn without_content(&self) -> String {
        self.message(ErrorKind::without_content, |_| None)
    }

    /// The first page of all users was requested and is not there: at the right address, that is an
    /// empty page.
    fn without_any_users(&self) -> Option<&StatusFailure> {
        match (&self.kind, &self.url) {
            (ErrorKind::Status(failure), Some(url))
                if self.is_not_found() && url.contains("/external/users?offset=0&") =>
            {
                Some(failure)
            }
            _ => None,
        }
    }

    fn message(
        &self,
        describe: impl Fn(&ErrorKind) -> String,
        words: impl Fn(&StatusFailure) -> Option<String>,
    ) -> String {
        let url = self.url.as_ref();
        let mut message = url.map_or(String::new(), |url| format!("GET {url}: "));
        message.push_str(&match self.without_any_users() {
            Some(failure) => failure.in_words(NO_LIST_OF_USERS, words(failure)),
            None => describe(&self.kind),
        });
        if let Some(cause) = &self.cause {
            message.push_str(&format!("; before that: {}", describe(&cause.kind)));
        }
        if let Some(patience) = self.patience {
            let seconds = patience.as_secs_f64();
            message.push_str(&format!("; its outage_patience of {seconds} s is used up"));
        }
        match self.attempts.len() {
            0 => {}
            1 => message.push_str(" (after 1 attempt)"),
            count => message.push_str(&format!(" (after {count} attempts)")),
        }
        message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message(ErrorKind::to_string, StatusFailure::words))
    }
}

impl ErrorKind {
    /// What went wrong, without any part of a response, for logs and traces.
    pub fn without_content(&self) -> String {
        match self {
            // Path and reason may come from the service, as the snippet does.
            Self::Decode { misfit, .. } => misfit.in_words().to_owned(),
            Self::Status(failure) => failure.in_words(failure.advice(), None),
            kind => kind.to_string(),
        }
    }
}

fn deadline_exceeded(
    deadline: &Duration,
    wait: &Option<Duration>,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let deadline = deadline.as_secs_f64();
    match wait.map(|wait| wait.as_secs_f64()) {
        Some(wait) => write!(
            formatter,
            "the next attempt would have to wait {wait:.3} s, past the deadline of {deadline} s"
        ),
        None => write!(
            formatter,
            "not finished within the deadline of {deadline} s"
        ),
    }
}

fn misfit_at(
    path: &str,
    snippet: &str,
    reason: &str,
    misfit: &Misfit,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (place, advice) = match misfit {
        Misfit::NotJson => (String::new(), "; check base_url, or call again later"),
        Misfit::Envelope => (format!(" at {path}"), "; check base_url and vendor"),
        Misfit::Field => (format!(" at {path}"), ""),
    };
    let what = misfit.in_words();
    write!(
        formatter,
        "{what}{place}: {reason}, near {snippet:?}{advice}"
    )
}

impl StatusFailure {
    /// Whether it has a body, whose media type begins so.
    fn is_of_type(&self, start: &str) -> bool {
        let mut headers = self.headers.iter();
        let named = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        !self.body.is_empty()
            && named.is_some_and(|(_, value)| {
                let found = value.get(..start.len());
                found.is_some_and(|found| found.eq_ignore_ascii_case(start))
            })
    }

    /// Some services send JSON with the type of a page.
    fn is_web_page(&self) -> bool {
        self.is_of_type("text/html") && self.body.trim_ascii_start().starts_with(b"<")
    }

    /// The message of a JSON body.
    fn words(&self) -> Option<String> {
        if self.body.len() > MOST_BODY_READ {
            return None;
        }
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        let words = message_in(&body)?;
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        (!words.is_empty()).then(|| words.chars().take(MOST_WORDS).collect())
    }

    fn advice(&self) -> &'static str {
        match self.status {
            400 | 422 => "it rejected the arguments; see the response body",
            403 if self.is_web_page() => {
                "its answer is a web page: something in front of the service refused it (a proxy, \
                 a firewall, too many requests: see rate_limit), or the secret may not read this"
            }
            401 => "it rejected the secret; check api_secret or BACKREAD_API_SECRET",
            403 => {
                "the secret is wrong or may not read this; check api_secret (BACKREAD_API_SECRET)"
            }
            404 | 410 => {
                "there is no such user or message, or base_url is not what is in front of \
                 /external/users"
            }
            406 => "it does not know the media type; check vendor or BACKREAD_VENDOR",
            407 => PROXY_PASSWORD,
            429 => "it asks for fewer requests",
            300..=399 => "a redirect that is not followed; check base_url",
            511 => "this network wants a login (RFC 6585, 6)",
            503 => "it is down or asks for fewer requests",
            500..=599 => "it failed; call again later",
            _ => "its body may say why",
        }
    }

    fn in_words(&self, advice: &str, said: Option<String>) -> String {
        let mut text = format!("the service answered {}: {advice}", self.status);
        if matches!(self.status, 400..=402 | 404..=406 | 410 | 422) && self.is_web_page() {
            text.push_str(WEB_PAGE);
        }
        if let Some(said) = said {
            text.push_str(&format!("; it says {said:?}"));
        }
        if let Some(wait) = self.retry_after {
            text.push_str(&format!("; it asked to wait {} s", wait.as_secs_f64()));
        }
        if let Some(request_id) = &self.request_id {
            text.push_str(&format!("; request id {request_id}"));
        }
        text
    }
}

/// The first text in the fields for a message, or in objects and lists there.
fn message_in(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(values) => values.iter().find_map(message_in),
        Value::Object(fields) => {
            let mut values = MESSAGE_FIELDS.iter().filter_map(|name| fields.get(*name));
            values.find_map(message_in)
        }
        _ => None,
    }
}
