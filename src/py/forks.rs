//! What forked processes need: Python objects cached without locks, and those that a child must not free.

use std::mem;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use backread_core::process;

/// The cached value, created by the first call.
///
/// Not `get_or_try_init`, and so no `intern!` either: it holds a lock while the value is created, for
/// as long as an import takes; if another thread forks meanwhile, it stays locked in the child.
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

/// Holds an object that ends threads when it is freed, such as a connection of DuckDB. A child
/// process that was forked has no such threads, and freeing the object would crash it; so it never
/// does.
#[pyclass(frozen, generic, module = "backread._backread")]
pub struct OfProcess {
    /// `None` once it is left to the process that made it.
    value: Option<Py<PyAny>>,
    process: u32,
}

#[pymethods]
impl OfProcess {
    #[new]
    fn new(value: Py<PyAny>) -> Self {
        Self {
            value: Some(value),
            process: process::id(),
        }
    }

    fn get(&self) -> Option<&Py<PyAny>> {
        let value = self.value.as_ref();
        value.filter(|_| self.process == process::id())
    }
}

impl Drop for OfProcess {
    fn drop(&mut self) {
        if self.process != process::id() {
            mem::forget(self.value.take());
        }
    }
}
