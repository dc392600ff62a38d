//! What Python gives, checked: whole numbers, and the options made of them.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBool, PyInt, PyString};

use super::convert::errors::to_python;
use crate::core::api::{Limit, Natural};
use crate::core::config::{self, Options};
use crate::core::error::Error;
use crate::core::redact;
use crate::core::walk::WalkSettings;

/// A whole number from Python; one too large for any service is out of range, not an overflow.
pub struct Whole<'py>(pub Bound<'py, PyAny>);

impl<'a, 'py> FromPyObject<'a, 'py> for Whole<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.to_owned()))
    }
}

impl Whole<'_> {
    /// The number, or how it is refused when it does not fit.
    fn integer(&self, py: Python<'_>, name: &str, refuse: fn(String) -> Error) -> PyResult<i64> {
        if !self.0.is_instance_of::<PyInt>() || self.0.is_instance_of::<PyBool>() {
            let given = self.0.get_type().name()?;
            let message = format!("{name} must be an int, not {given}; nothing was sent");
            return Err(PyTypeError::new_err(message));
        }
        self.0.extract().map_err(|error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(py) {
                let message = format!("{name} must fit 64 bits; nothing was sent");
                return to_python(py, &refuse(message));
            }
            error
        })
    }

    pub fn count<T: TryFrom<i64>>(&self, py: Python<'_>, name: &str) -> PyResult<T> {
        let value = self.integer(py, name, Error::configuration::<String>)?;
        config::count(name, value).map_err(|error| to_python(py, &error))
    }

    pub fn natural(&self, py: Python<'_>, name: &str) -> PyResult<Natural> {
        Natural::new(name, self.integer(py, name, Error::invalid_argument)?)
            .map_err(|error| to_python(py, &error))
    }

    pub fn limit(&self, py: Python<'_>, name: &str) -> PyResult<Limit> {
        Limit::new(name, self.integer(py, name, Error::invalid_argument)?)
            .map_err(|error| to_python(py, &error))
    }
}

/// A text from Python, in the form that will hold it.
pub fn text<T: for<'a> From<&'a str>>(
    py: Python<'_>,
    name: &str,
    given: Option<Bound<'_, PyString>>,
) -> PyResult<Option<T>> {
    // The codec's own error would carry the text that it could not encode.
    given
        .map(|text| text.to_str().map(T::from))
        .transpose()
        .map_err(|_| to_python(py, &config::no_text(name)))
}

/// The text with stars where it repeats the secret.
#[pyfunction]
pub fn redacted(text: &str, secret: &str) -> String {
    redact::redacted(text, secret)
}

pub fn walk_settings(
    py: Python<'_>,
    strict: bool,
    page_size: Whole<'_>,
    max_items: Option<Whole<'_>>,
) -> PyResult<WalkSettings> {
    Ok(WalkSettings {
        strict,
        page_size: page_size.limit(py, "page_size")?,
        max_items: match max_items {
            None => None,
            Some(most) => Some(most.natural(py, "max_items")?.get()),
        },
        ..WalkSettings::WHOLE
    })
}

#[allow(clippy::too_many_arguments)]
pub fn options(
    py: Python<'_>,
    timeout: Option<f64>,
    deadline: Option<f64>,
    max_retries: Whole<'_>,
    max_concurrency: Whole<'_>,
    rate_limit: Option<f64>,
    on_rate_limit: &str,
    max_response_bytes: Whole<'_>,
    outage_patience: Option<f64>,
) -> PyResult<Options> {
    let length = |name: &str, seconds: Option<f64>| {
        seconds
            .map(|seconds| config::duration(name, seconds))
            .transpose()
            .map_err(|error| to_python(py, &error))
    };
    Ok(Options {
        timeout: length("timeout", timeout)?,
        deadline: length("deadline", deadline)?,
        max_retries: max_retries.count(py, "max_retries")?,
        max_concurrency: max_concurrency.count(py, "max_concurrency")?,
        rate_limit,
        on_rate_limit: config::on_rate_limit(on_rate_limit)
            .map_err(|error| to_python(py, &error))?,
        max_response_bytes: max_response_bytes.count(py, "max_response_bytes")?,
        outage_patience: config::patience("outage_patience", outage_patience)
            .map_err(|error| to_python(py, &error))?,
    })
}
