//! What is replaced in rows before they are stored, as Python passes it.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use backread_core::privacy::{Privacy, replace_emails};

/// Holds the key and shows it to nobody: it has no attributes, and does not pickle.
#[pyclass(frozen, module = "backread._backread")]
pub struct NativePrivacy(Arc<Privacy>);

impl NativePrivacy {
    pub fn shared(&self) -> Arc<Privacy> {
        Arc::clone(&self.0)
    }
}

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
