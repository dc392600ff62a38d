//! A run of the mirror's reading, batch by batch.

use std::sync::Arc;

use pyo3::prelude::*;

use super::arrow::ArrowTable;
use super::convert;
use super::runtime::run;
use crate::core::client::Client;
use crate::core::report::WalkReport;
use crate::core::sync::{Batch, SyncRun};

#[pyclass(frozen, name = "SyncRun", module = "backread._backread")]
pub struct NativeSyncRun {
    run: Arc<SyncRun>,
}

impl NativeSyncRun {
    pub fn new(client: Client, done: Vec<i64>) -> Self {
        Self {
            run: Arc::new(SyncRun::new(client, done.into_iter().collect())),
        }
    }
}

#[pymethods]
impl NativeSyncRun {
    #[getter]
    fn requests(&self) -> u64 {
        self.run.requests()
    }

    #[getter]
    fn users_total(&self) -> Option<i64> {
        self.run.users_total()
    }

    /// The next batch, or None at the end.
    fn next_batch(&self, py: Python<'_>, blocking: bool) -> PyResult<Py<PyAny>> {
        let run_under_way = Arc::clone(&self.run);
        let next = async move { run_under_way.next().await };
        run(py, blocking, next, |py, batch| match batch {
            Some(batch) => Ok(Bound::new(py, SyncBatch::new(py, batch)?)?
                .into_any()
                .unbind()),
            None => Ok(py.None()),
        })
    }

    fn stop(&self) {
        self.run.stop();
    }
}

/// What belongs into one transaction; a table without rows is None.
#[pyclass(frozen, module = "backread._backread")]
pub struct SyncBatch {
    #[pyo3(get)]
    users: Option<Py<ArrowTable>>,
    #[pyo3(get)]
    messages: Option<Py<ArrowTable>>,
    #[pyo3(get)]
    lists: Option<Py<ArrowTable>>,
    #[pyo3(get)]
    rejects: Option<Py<ArrowTable>>,
    users_report: Option<Box<WalkReport>>,
}

impl SyncBatch {
    fn new(py: Python<'_>, batch: Batch) -> PyResult<Self> {
        let table = |batch: Option<_>| batch.map(|batch| Py::new(py, ArrowTable::new(batch)));
        Ok(Self {
            users: table(batch.users).transpose()?,
            messages: table(batch.messages).transpose()?,
            lists: table(batch.lists).transpose()?,
            rejects: table(batch.rejects).transpose()?,
            users_report: batch.users_report,
        })
    }
}

#[pymethods]
impl SyncBatch {
    #[getter]
    fn users_report(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.users_report
            .as_deref()
            .map(|report| convert::report(py, report).map(Bound::unbind))
            .transpose()
    }
}
