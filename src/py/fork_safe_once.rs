//! Python objects that are created at first use and cached, safely across forks.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The cached value, created by the first call.
///
/// Not `get_or_try_init`, which holds a lock while the value is created, for as long as an import
/// takes: if another thread forks meanwhile, it stays locked in the child.
pub fn once<'place, T>(
    py: Python<'_>,
    place: &'place PyOnceLock<T>,
    make: impl FnOnce() -> PyResult<T>,
) -> PyResult<&'place T> {
    if place.get(py).is_none() {
        // If another thread was first, its value is kept.
        let _ = place.set(py, make()?);
    }
    place
        .get(py)
        .ok_or_else(|| PyRuntimeError::new_err("a cached value is gone"))
}

/// A Python string that is created once; not `intern!`, for the same reason.
macro_rules! name {
    ($py:expr, $text:literal) => {{
        static NAME: ::pyo3::sync::PyOnceLock<::pyo3::Py<::pyo3::types::PyString>> =
            ::pyo3::sync::PyOnceLock::new();
        let py = $py;
        $crate::py::fork_safe_once::once(py, &NAME, || {
            Ok(::pyo3::types::PyString::intern(py, $text).unbind())
        })?
        .bind(py)
    }};
}
pub(super) use name;
