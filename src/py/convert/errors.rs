//! The core's errors as the exceptions of `backread.errors`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use pythonize::pythonize;

use super::class;
use backread_core::error::{Attempt, Error, ErrorKind, Misfit, StatusFailure};

/// What a call is told that comes while the interpreter ends.
pub const EXITING: &str = "the interpreter is exiting; read before its exit handlers run";

/// A class of `backread.errors`.
fn error_class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("backread.errors")?.getattr(name)
}

/// The exception that an error becomes, with its attributes, attempts and cause.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    build(py, error).unwrap_or_else(|failure| failure)
}

/// Raised for calls in exit handlers, which run after the runtime has ended.
pub fn exiting(py: Python<'_>) -> PyErr {
    let raised = error_class(py, "BackreadError").and_then(|class| class.call1((EXITING,)));
    raised.map_or_else(|failure| failure, PyErr::from_value)
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let mut message = error.to_string();
    if let Some(hint) = hint(error) {
        message = format!("{message}; {hint}");
    }
    if let ErrorKind::InvalidArgument(_) = &error.kind {
        return Ok(PyValueError::new_err(message));
    }
    let attributes = PyDict::new(py);
    attributes.set_item("attempts", attempts(py, &error.attempts)?)?;
    match &error.kind {
        ErrorKind::DeadlineExceeded { wait, .. } => {
            attributes.set_item("wait", wait.map(|wait| wait.as_secs_f64()))?;
        }
        ErrorKind::Decode { path, snippet, .. } => {
            attributes.set_item("path", path)?;
            attributes.set_item("snippet", snippet)?;
        }
        ErrorKind::Incomplete(report) => {
            attributes.set_item("report", super::report(py, report)?)?;
        }
        ErrorKind::Status(failure) => add_status(py, failure, &attributes)?,
        _ => {}
    }
    let class = error_class(py, class_name(&error.kind))?;
    let exception = class.call((message,), Some(&attributes))?;
    exception.setattr("url", &error.url)?;
    let exception = PyErr::from_value(exception);
    if let Some(cause) = &error.cause {
        exception.set_cause(py, Some(to_python(py, cause)));
    }
    Ok(exception)
}

/// The class of `backread.errors` for an error.
pub fn class_name(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidArgument(_) | ErrorKind::Configuration(_) => "ConfigurationError",
        ErrorKind::Connect(_) | ErrorKind::Insecure(_) | ErrorKind::ProxyPassword => "ConnectError",
        ErrorKind::Timeout(_) => "RequestTimeoutError",
        ErrorKind::TruncatedBody(_) => "TruncatedBodyError",
        ErrorKind::ResponseTooLarge { .. } => "ResponseTooLargeError",
        ErrorKind::NotHttp(_) | ErrorKind::Transport(_) => "TransportError",
        ErrorKind::Closed
        | ErrorKind::Aborted
        | ErrorKind::BudgetSpent
        | ErrorKind::OtherProcess => "BackreadError",
        ErrorKind::DeadlineExceeded { .. } => "DeadlineExceededError",
        ErrorKind::Decode { .. } => "DecodeError",
        ErrorKind::Incomplete(_) => "IncompleteError",
        ErrorKind::Status(failure) => match failure.status {
            400 | 422 => "BadRequestError",
            401 => "AuthenticationError",
            403 => "PermissionDeniedError",
            404 | 410 => "NotFoundError",
            429 => "RateLimitError",
            500..=599 => "ServerError",
            _ => "StatusError",
        },
    }
}

/// What the caller can change, by the names of the Python arguments.
fn hint(error: &Error) -> Option<&'static str> {
    const PROXY: &str = "give them in proxy= or HTTPS_PROXY, as in http://user:password@host:port";
    const PLAIN_PROXY: &str =
        "give them in proxy= or HTTP_PROXY, as in http://user:password@host:port";
    if error.patience.is_some() {
        return Some("raise outage_patience= to wait longer");
    }
    match &error.kind {
        ErrorKind::Timeout(_) => Some("raise timeout= if the service is this slow"),
        ErrorKind::ResponseTooLarge { .. } => {
            Some("raise max_response_bytes= or request smaller pages")
        }
        ErrorKind::DeadlineExceeded { wait: Some(_), .. } => {
            Some("raise deadline= or call again later")
        }
        ErrorKind::DeadlineExceeded { wait: None, .. } => Some("raise deadline= to allow more"),
        ErrorKind::Decode {
            misfit: Misfit::Field,
            ..
        } => Some("as_dict=True gives rows as they were sent"),
        ErrorKind::Incomplete(_) => Some("read it again, or without strict=True"),
        ErrorKind::ProxyPassword => Some(PROXY),
        ErrorKind::Status(failure) => match failure.status {
            407 => Some(PLAIN_PROXY),
            429 | 503 => Some("call again later or set rate_limit="),
            _ => None,
        },
        _ => None,
    }
}

fn add_status(
    py: Python<'_>,
    failure: &StatusFailure,
    attributes: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let headers = PyDict::new(py);
    for (name, value) in &failure.headers {
        // A repeated header is one list, joined by commas (RFC 9110, 5.3).
        let value = match headers.get_item(name)? {
            Some(before) => format!("{}, {value}", before.extract::<String>()?),
            None => value.clone(),
        };
        headers.set_item(name, value)?;
    }
    attributes.set_item("status_code", failure.status)?;
    attributes.set_item("headers", headers)?;
    attributes.set_item("body", PyBytes::new(py, &failure.body))?;
    attributes.set_item("request_id", &failure.request_id)?;
    if failure.status == 429 {
        let wait = failure.retry_after.map(|wait| wait.as_secs_f64());
        attributes.set_item("retry_after", wait)?;
    }
    Ok(())
}

fn attempts<'py>(py: Python<'py>, attempts: &[Attempt]) -> PyResult<Bound<'py, PyTuple>> {
    let class = class(py, "Attempt")?;
    let made = attempts
        .iter()
        .map(|attempt| {
            let fields = pythonize(py, attempt)?.cast_into::<PyDict>()?;
            class.call((), Some(&fields))
        })
        .collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, made)
}
