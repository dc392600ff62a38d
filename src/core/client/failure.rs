//! How an attempt fails or is redirected, and the error that its caller gets.

use std::time::{Duration, SystemTime};

use crate::api::EXTERNAL;
use crate::budget::Budget;
use crate::decode::json::{self, Fault};
use crate::error::{ErrorKind, Misfit, StatusFailure};
use crate::retry;
use crate::wire::{Answer, Failed, Headers, MOST_REDIRECTS, Resend, Target};

const REQUEST_ID_HEADERS: [&str; 3] = ["x-request-id", "request-id", "x-correlation-id"];

/// How one attempt failed.
pub(super) struct Failure {
    pub kind: ErrorKind,
    pub status: Option<u16>,
    pub transient: bool,
    pub resend: Resend,
    /// The response is a redirect within the origin, to follow.
    pub moved_to: Option<Target>,
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        Self {
            resend: failed.resend,
            ..failed.kind.into()
        }
    }
}

impl From<ErrorKind> for Failure {
    fn from(kind: ErrorKind) -> Self {
        let status = match &kind {
            ErrorKind::Status(failure) => Some(failure.status),
            _ => None,
        };
        Self {
            transient: retry::is_transient(&kind),
            status,
            kind,
            resend: Resend::Never,
            moved_to: None,
        }
    }
}

/// `start` is how the body began.
pub(super) fn unreadable(
    status: u16,
    headers: &Headers,
    start: Option<[u8; 2]>,
    mut fault: Fault,
) -> Failure {
    let media_type = headers.get("content-type").unwrap_or_default();
    if fault.misfit == Misfit::NotJson && json::is_utf_16(start, media_type) {
        let reason = "it is UTF-16, and JSON must be UTF-8 (RFC 8259, 8.1)";
        fault.reason = format!("{reason}: {}", fault.reason);
    }
    // The header is removed if the body is decoded.
    if fault.misfit == Misfit::NotJson
        && let Some(encoding) = headers.get("content-encoding")
        && !encoding.eq_ignore_ascii_case("identity")
    {
        let packed = format!("its content encoding is {encoding:?}, which is not decoded");
        fault.reason = format!("{packed}: {}", fault.reason);
    }
    Failure {
        status: Some(status),
        transient: fault.misfit == Misfit::NotJson,
        ..decode_failure(fault).into()
    }
}

pub(super) fn past_deadline(budget: &Budget, wait: Option<Duration>) -> ErrorKind {
    if budget.spends_run() {
        return ErrorKind::BudgetSpent;
    }
    ErrorKind::DeadlineExceeded {
        deadline: budget.deadline().unwrap_or_default(),
        wait,
    }
}

pub(super) fn status_failure(answer: Answer, now: SystemTime) -> ErrorKind {
    let header = |name: &str| answer.headers.get(name);
    let retry_after = match answer.status {
        429 | 503 => retry::wait_from_headers(header, now),
        // Others may have the rate limit's headers too, though it is not why they failed.
        408 | 500..=599 => {
            let asked = |name: &str| {
                let plain = ["retry-after", "date"].contains(&name);
                header(name).filter(|_| plain)
            };
            retry::wait_from_headers(asked, now)
        }
        _ => None,
    };
    let request_id = REQUEST_ID_HEADERS
        .iter()
        .find_map(|name| answer.headers.get(name))
        .map(str::to_owned);
    ErrorKind::Status(Box::new(StatusFailure {
        status: answer.status,
        headers: answer.headers.pairs().collect(),
        body: answer.body,
        request_id,
        retry_after,
    }))
}

/// Converts a fault in a response's JSON to the error that callers see.
pub(super) fn decode_failure(fault: Fault) -> ErrorKind {
    ErrorKind::Decode {
        path: fault.path,
        snippet: fault.snippet,
        reason: fault.reason,
        misfit: fault.misfit,
    }
}

/// The redirects of one attempt so far.
#[derive(Default)]
pub struct Redirects {
    pub target: Option<Target>,
    pub count: u32,
    /// How long they took: the timeout is over all of them.
    pub took: Duration,
}

impl Redirects {
    /// Names the cause of a failure behind a redirect to something else, such as a login page:
    /// requesting it again does not help.
    pub fn explain(&self, mut failure: Failure) -> Failure {
        if let Some(path) = self.target.as_ref().map(Target::path)
            && !path.contains(EXTERNAL)
            && let ErrorKind::Decode { reason, misfit, .. } = &mut failure.kind
            && *misfit == Misfit::NotJson
        {
            *reason = format!("it came after a redirect to {path}, perhaps a login: {reason}");
            failure.transient = false;
        }
        failure
    }

    /// The redirects with the one that an attempt ended in; `None` if it ended in none, or if there
    /// are too many, which is then its error.
    pub fn follow<T>(&self, outcome: &mut Result<T, Failure>, took: Duration) -> Option<Self> {
        let Err(failure) = outcome else {
            return None;
        };
        let target = failure.moved_to.take()?;
        if self.count == MOST_REDIRECTS {
            failure.kind = ErrorKind::Transport(format!(
                "more than {MOST_REDIRECTS} redirects, one after another; check base_url"
            ));
            failure.transient = false;
            return None;
        }
        Some(Self {
            target: Some(target),
            count: self.count + 1,
            took: self.took + took,
        })
    }
}
