//! Parses arguments from Python: whole numbers, and the options of a client.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBool, PyDict, PyInt};
use pythonize::Depythonizer;
use serde::Deserialize;

use super::convert::errors::to_python;
use backread_core::api::{Limit, Natural};
use backread_core::error::Error;
use backread_core::redact;
use backread_core::walk::WalkSettings;

/// A whole number from Python, extracted late so that errors can name the argument.
pub struct Whole<'py>(pub Bound<'py, PyAny>);

impl<'a, 'py> FromPyObject<'a, 'py> for Whole<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.to_owned()))
    }
}

impl Whole<'_> {
    fn integer(&self, py: Python<'_>, name: &str) -> PyResult<i64> {
        if !self.0.is_instance_of::<PyInt>() || self.0.is_instance_of::<PyBool>() {
            let given = self.0.get_type().name()?;
            let message = format!("{name} must be an int, not {given}; nothing was sent");
            return Err(PyTypeError::new_err(message));
        }
        self.0.extract().map_err(|error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(py) {
                let message = format!("{name} must fit 64 bits; nothing was sent");
                return to_python(py, &Error::invalid_argument(message));
            }
            error
        })
    }

    pub fn natural(&self, py: Python<'_>, name: &str) -> PyResult<Natural> {
        Natural::new(name, self.integer(py, name)?).map_err(|error| to_python(py, &error))
    }

    pub fn limit(&self, py: Python<'_>, name: &str) -> PyResult<Limit> {
        Limit::new(name, self.integer(py, name)?).map_err(|error| to_python(py, &error))
    }
}

/// The fields of a core struct, checked, from a dict with their names as keys. An error's text hides
/// the secret.
pub fn from_dict<'py, T: Deserialize<'py>>(
    given: &Bound<'py, PyDict>,
    secret: &str,
) -> PyResult<T> {
    let py = given.py();
    serde_path_to_error::deserialize(&mut Depythonizer::from_object(given)).map_err(|error| {
        let name = error.path().to_string();
        let text = error.inner().to_string();
        let cause = PyErr::from(error.into_inner());
        if cause.is_instance_of::<PyTypeError>(py) {
            return PyTypeError::new_err(format!("{name}: {text}"));
        }
        let problem = if cause.is_instance_of::<PyUnicodeEncodeError>(py) {
            // This error holds the text that it could not encode, so it must not be shown.
            "has half of a character (a lone surrogate); pass the whole text".to_owned()
        } else if cause.is_instance_of::<PyOverflowError>(py) {
            "must fit 64 bits".to_owned()
        } else {
            text
        };
        let message = redact::redacted(&format!("{name} {problem}"), secret);
        to_python(py, &Error::configuration(message))
    })
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
    let most = max_items.map(|most| most.natural(py, "max_items"));
    Ok(WalkSettings {
        strict,
        page_size: page_size.limit(py, "page_size")?,
        max_items: most.transpose()?.map(Natural::get),
        ..WalkSettings::WHOLE
    })
}
