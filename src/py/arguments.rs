//! Parses arguments from Python: numbers, the options of a client and of a walk, and privacy.

use std::sync::Arc;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use pythonize::Depythonizer;
use serde::Deserialize;

use super::convert::errors::to_python;
use backread_core::api::{Limit, Natural};
use backread_core::error::Error;
use backread_core::privacy::{Privacy, replace_emails};
use backread_core::redact;
use backread_core::walk::WalkSettings;

/// An id or an offset; Python has checked its type.
pub fn natural(py: Python<'_>, name: &str, number: i64) -> PyResult<Natural> {
    Natural::new(name, number).map_err(|error| to_python(py, &error))
}

pub fn page_limit(py: Python<'_>, name: &str, number: i64) -> PyResult<Limit> {
    Limit::new(name, number).map_err(|error| to_python(py, &error))
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

/// How a walk reads, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct WalkOptions {
    strict: bool,
    page_size: i64,
    #[pyo3(default)]
    max_items: Option<u64>,
    #[pyo3(default)]
    ends_unread: bool,
}

impl WalkOptions {
    pub fn settings(self, py: Python<'_>) -> PyResult<WalkSettings> {
        Ok(WalkSettings {
            strict: self.strict,
            page_size: page_limit(py, "page_size", self.page_size)?,
            max_items: self.max_items,
            ends_unread: self.ends_unread,
            ..WalkSettings::WHOLE
        })
    }
}

/// What is replaced in rows before they are stored. Holds the key and never shows it: it has no
/// attributes, and does not pickle.
#[pyclass(frozen, module = "backread._backread")]
pub struct NativePrivacy(pub Arc<Privacy>);

#[pymethods]
impl NativePrivacy {
    #[new]
    fn new(key: Option<PyBackedBytes>, drop_bodies: bool, redact: bool) -> Self {
        Self(Arc::new(Privacy::new(key.as_deref(), drop_bodies, redact)))
    }
}

/// The text with `label` for each e-mail address, by the rule of `redact`.
#[pyfunction]
pub fn hide_emails(text: &str, label: &str) -> String {
    replace_emails(text, label).into_owned()
}
