//! What is made of Python at its first use, and kept.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The value kept at a place, made if it is the first time.
///
/// Not `get_or_try_init`: that holds a lock while the value is made, as long as an import takes,
/// and a fork by another thread meanwhile would leave it locked in the child for good.
pub fn once<'place, T>(
    py: Python<'_>,
    place: &'place PyOnceLock<T>,
    make: impl FnOnce() -> PyResult<T>,
) -> PyResult<&'place T> {
    if place.get(py).is_none() {
        // If another thread was first, its value stays.
        let _ = place.set(py, make()?);
    }
    place
        .get(py)
        .ok_or_else(|| PyRuntimeError::new_err("what was kept is gone"))
}

/// A Python string that is made once; not `intern!`, for the reason above.
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
