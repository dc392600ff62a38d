//! The core's errors as the exceptions of `backread.errors`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyModule, PyTuple};

use super::class;
use crate::core::error::{Attempt, Error, ErrorKind, StatusFailure};
use crate::py::fork_safe_once::once;

static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// Imports the errors; see `super::prepare`.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    errors(py).map(|_| ())
}

/// Whether it is one of `backread.errors`.
pub fn is_ours(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let base = errors(py)?.getattr("BackreadError")?;
    Ok(error.matches(py, base)?)
}

fn errors(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let import = || py.import("backread.errors").map(Bound::unbind);
    Ok(once(py, &ERRORS, import)?.bind(py))
}

/// The exception that an error becomes, with its attributes, attempts and cause.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    build(py, error).unwrap_or_else(|failure| failure)
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    if let ErrorKind::InvalidArgument(message) = &error.kind {
        return Ok(PyValueError::new_err(message.clone()));
    }
    let attributes = PyDict::new(py);
    attributes.set_item("attempts", attempts(py, &error.attempts)?)?;
    let class = match &error.kind {
        ErrorKind::InvalidArgument(_) | ErrorKind::Configuration(_) => "ConfigurationError",
        ErrorKind::Connect(_) | ErrorKind::Insecure(_) | ErrorKind::ProxyPassword => "ConnectError",
        ErrorKind::Timeout(_) => "RequestTimeoutError",
        ErrorKind::TruncatedBody(_) => "TruncatedBodyError",
        ErrorKind::ResponseTooLarge { .. } => "ResponseTooLargeError",
        ErrorKind::Transport(_) => "TransportError",
        ErrorKind::Closed | ErrorKind::Aborted | ErrorKind::Exiting | ErrorKind::OtherProcess => {
            "BackreadError"
        }
        ErrorKind::DeadlineExceeded { wait, .. } => {
            attributes.set_item("wait", wait.map(|wait| wait.as_secs_f64()))?;
            "DeadlineExceededError"
        }
        ErrorKind::Decode { path, snippet, .. } => {
            attributes.set_item("path", path)?;
            attributes.set_item("snippet", snippet)?;
            "DecodeError"
        }
        ErrorKind::Incomplete(report) => {
            attributes.set_item("report", super::report(py, report)?)?;
            "IncompleteError"
        }
        ErrorKind::Status(failure) => status(py, failure, &attributes)?,
    };
    let exception = errors(py)?
        .getattr(class)?
        .call((error.to_string(),), Some(&attributes))?;
    let exception = PyErr::from_value(exception);
    if let Some(cause) = &error.cause {
        exception.set_cause(py, Some(to_python(py, cause)));
    }
    Ok(exception)
}

fn status(
    py: Python<'_>,
    failure: &StatusFailure,
    attributes: &Bound<'_, PyDict>,
) -> PyResult<&'static str> {
    let headers = PyDict::new(py);
    for (name, value) in &failure.headers {
        // A header that comes again is one list, joined by commas (RFC 9110, 5.3).
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
    Ok(match failure.status {
        400 | 422 => "BadRequestError",
        401 => "AuthenticationError",
        403 => "PermissionDeniedError",
        404 => "NotFoundError",
        429 => {
            let wait = failure.retry_after.map(|wait| wait.as_secs_f64());
            attributes.set_item("retry_after", wait)?;
            "RateLimitError"
        }
        500..=599 => "ServerError",
        _ => "StatusError",
    })
}

fn attempts<'py>(py: Python<'py>, attempts: &[Attempt]) -> PyResult<Bound<'py, PyTuple>> {
    let made = attempts
        .iter()
        .map(|attempt| {
            class(py, "Attempt")?.call1((
                attempt.status,
                &attempt.error,
                attempt.seconds_taken,
                attempt.seconds_waited,
            ))
        })
        .collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, made)
}
