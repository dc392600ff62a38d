//! Record batches handed over through the Arrow C stream interface.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::{PyRecordBatchReader, PySchema};

use super::convert;
use super::convert::errors::is_ours;
use super::keyboard_interrupt::raise_on_return;
use super::runtime::block_anywhere;
use super::telemetry::CallObserver;
use crate::core::api::Resource;
use crate::core::arrow::batches::{batches, schema};
use crate::core::arrow::columns::{CURSORS, GONE, LISTS, MESSAGES, REJECTS, USERS};
use crate::core::prefetch::Prefetch;
use crate::core::walk::{SharedReport, Walk};

/// Makes what streams need; see `super::prepare`.
pub fn prepare(py: Python<'_>) {
    for schema in [&USERS, &MESSAGES, &LISTS, &REJECTS, &CURSORS, &GONE] {
        LazyLock::force(schema);
    }
    py.get_type::<PyRecordBatchReader>();
    py.get_type::<PySchema>();
}

/// Any reader of batches as the capsule that Arrow's consumers take.
pub fn stream<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let reader = Bound::new(py, PyRecordBatchReader::new(Box::new(batches)))?;
    let capsule = reader.call_method1("__arrow_c_stream__", (requested_schema,))?;
    Ok(capsule.cast_into::<PyCapsule>()?)
}

/// A schema as the capsule that Arrow's consumers take.
pub fn schema_capsule(py: Python<'_>, schema: SchemaRef) -> PyResult<Bound<'_, PyAny>> {
    Bound::new(py, PySchema::new(schema))?.call_method0("__arrow_c_schema__")
}

/// A walk as record batches; it waits for them without the GIL.
pub struct Batches {
    prefetch: Arc<Prefetch<RecordBatch>>,
    report: SharedReport,
    resource: Resource,
    failed: Arc<Mutex<Option<PyErr>>>,
    observer: CallObserver,
    ended: bool,
}

impl Batches {
    pub fn new(
        walk: Arc<Walk>,
        resource: Resource,
        failed: Arc<Mutex<Option<PyErr>>>,
        observer: CallObserver,
    ) -> Self {
        Self {
            report: walk.report.clone(),
            prefetch: Arc::new(batches(walk, resource)),
            resource,
            failed,
            observer,
            ended: false,
        }
    }

    fn gather(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let prefetch = Arc::clone(&self.prefetch);
        let gathered = block_anywhere(&self.observer, async move { prefetch.next().await });
        gathered.map_err(|error| {
            // Before an interrupt is raised again, which the first Python code to run would meet.
            let text = error.to_string();
            Python::attach(|py| {
                if let Err(error) = raised_by_handler(py, &error) {
                    error.write_unraisable(py, None);
                }
            });
            self.fail(error, text)
        })
    }

    /// Keeps what ended the stream, of which Arrow carries the text alone.
    fn fail(&self, error: PyErr, text: String) -> ArrowError {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        ArrowError::ExternalError(text.into())
    }

    /// Warns of lists that could not be read, once all others were.
    fn warn(&self) -> Result<(), ArrowError> {
        let report = self.report.get();
        if report.unread_users.is_empty() {
            return Ok(());
        }
        let warned = Python::attach(|py| {
            let report = convert::report(py, &report)?;
            let listing = py.import("backread._client.listing")?;
            listing
                .call_method1("warn_of_unread", (report,))
                .map(|_| ())
        });
        warned.map_err(|error| {
            let text = error.to_string();
            self.fail(error, text)
        })
    }
}

/// What is no error of ours was raised by the handler of a signal, and stops more than this stream.
fn raised_by_handler(py: Python<'_>, error: &PyErr) -> PyResult<()> {
    if !is_ours(py, error)?
        && !raise_on_return(py, error.clone_ref(py))?
        && error.is_instance_of::<PyKeyboardInterrupt>(py)
    {
        py.import("_thread")?.call_method0("interrupt_main")?;
    }
    Ok(())
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let gathered = self.gather();
        self.ended = !matches!(gathered, Ok(Some(_)));
        if self.ended {
            Python::attach(|py| self.observer.end(py, None));
        }
        match gathered {
            Ok(None) => self.warn().err().map(Err),
            gathered => gathered.transpose(),
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        schema(self.resource)
    }
}

/// One record batch; each call for its stream gives a new one.
#[pyclass(frozen, module = "backread._backread")]
pub struct ArrowTable {
    batch: RecordBatch,
}

impl ArrowTable {
    pub fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }
}

#[pymethods]
impl ArrowTable {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        stream(py, batches, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        schema_capsule(py, self.batch.schema())
    }
}

/// A table of no rows under the schema of the table of that name in a batch of a sync.
#[pyfunction]
pub fn empty_table(resource: &str) -> PyResult<ArrowTable> {
    let schema = match resource {
        "users" => &USERS,
        "messages" => &MESSAGES,
        "lists" => &LISTS,
        "rejects" => &REJECTS,
        "cursors" => &CURSORS,
        "gone" => &GONE,
        other => {
            return Err(PyValueError::new_err(format!(
                "no such table: {other:?}; there are users, messages, lists, rejects, cursors and gone"
            )));
        }
    };
    Ok(ArrowTable::new(RecordBatch::new_empty(Arc::clone(schema))))
}
