//! Values of the core as the dataclasses of `backread.models`, or as dicts.

pub mod errors;
mod instant;
mod items;
mod records;
mod report;
mod string_cache;
mod value;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

use super::fork_safe_once::once;

pub use self::items::{items, page, single, walked_page};
pub use self::report::report;

static MODELS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// Creates what values need; see `super::prepare`.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    instant::prepare(py)?;
    records::prepare(py)
}

/// A class of `backread.models`.
pub fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let import = || py.import("backread.models").map(Bound::unbind);
    once(py, &MODELS, import)?.bind(py).getattr(name)
}
