//! Python objects that only the process that made them may free.

use std::mem;

use pyo3::prelude::*;

use backread_core::process;

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

    fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let value = self.value.as_ref();
        value
            .filter(|_| self.process == process::id())
            .map(|value| value.clone_ref(py))
    }
}

impl Drop for OfProcess {
    fn drop(&mut self) {
        if self.process != process::id() {
            mem::forget(self.value.take());
        }
    }
}
