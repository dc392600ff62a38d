//! A walk as both faces read it: page by page, or as an Arrow stream.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::arrow::{Batches, schema_capsule, stream};
use super::convert::{self, walked_page};
use super::runtime::run;
use crate::core::batches::schema;
use crate::core::interface::Resource;
use crate::core::walk::Walk;

#[pyclass(frozen, name = "Walk", module = "backread._backread")]
pub struct NativeWalk {
    walk: Arc<Walk>,
    resource: Resource,
    /// What ended an Arrow stream, whose reader is told no more than a text.
    failed: Arc<Mutex<Option<PyErr>>>,
}

impl NativeWalk {
    pub fn new(walk: Walk, resource: Resource) -> Self {
        Self {
            walk: Arc::new(walk),
            resource,
            failed: Arc::default(),
        }
    }
}

#[pymethods]
impl NativeWalk {
    #[getter]
    fn report(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        convert::report(py, &self.walk.report.get()).map(Bound::unbind)
    }

    /// The next page, or None at the end.
    fn next_page(&self, py: Python<'_>, as_dict: bool, blocking: bool) -> PyResult<Py<PyAny>> {
        let walk = Arc::clone(&self.walk);
        let next = async move { walk.feed.next().await };
        run(py, blocking, next, move |py, page| match page {
            Some(page) => walked_page(py, &page, as_dict),
            None => Ok(py.None()),
        })
    }

    fn stop(&self) {
        self.walk.feed.stop();
    }

    /// The error that ended the Arrow stream, if one did.
    fn take_error(&self) -> Option<PyErr> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        schema_capsule(py, schema(self.resource))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = Batches::new(
            Arc::clone(&self.walk),
            self.resource,
            Arc::clone(&self.failed),
        );
        stream(py, batches, requested_schema)
    }
}
