//! Record batches and schemas that pass from one library to another: the Arrow PyCapsule interface.
//!
//! It calls arrow-rs directly: pyo3-arrow's classes come with methods that nothing here uses, and made
//! the native module 2 MB larger.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::sync::{Arc, LazyLock, Mutex};

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::c_api::take_stream;
use super::convert;
use super::convert::errors::EXITING;
use super::runtime::{OnShutdown, block};
use super::telemetry::CallObserver;
use backread_core::api::Resource;
use backread_core::arrow::batches::{batches, schema};
use backread_core::arrow::columns::{GONE, LISTS, MESSAGES, REJECTS, USERS};
use backread_core::lock;
use backread_core::prefetch::Prefetch;
use backread_core::privacy::Privacy;
use backread_core::walk::{SharedReport, Walk};

/// Bytes of record batches. Larger lists are read while the consumer takes them.
const READ_AHEAD: usize = 32 << 20;
pub const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ALREADY_READ: &str = "this Arrow stream was already read, and can be read only once; take a \
     new stream from its source, for example with polars.LazyFrame(x) or pyarrow.table(x)";

/// Makes what streams need; see `super::prepare`.
pub fn prepare() {
    for schema in [&USERS, &MESSAGES, &LISTS, &REJECTS, &GONE] {
        LazyLock::force(schema);
    }
}

/// Exports a reader of batches as an Arrow C stream; reading that a second time is an error. The error
/// of a batch must have no NUL, because it becomes a text of C.
///
/// A consumer that requests another schema gets ours, as the interface allows, and converts it:
/// arrow-rs would make nulls of what does not fit, and take columns by their position.
pub fn stream<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = OneShot {
        batches,
        ended: false,
    };
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value(py, stream, STREAM)
}

/// Exports a schema.
pub fn export_schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(unusable)?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// Takes the stream out of a capsule, which is empty then. Raises ValueError for a capsule of
/// something else, or of a stream that was taken.
fn import_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<ArrowArrayStreamReader> {
    ArrowArrayStreamReader::try_new(take_stream(capsule)?).map_err(unusable)
}

/// The stream of any object that exports one.
pub fn stream_of(source: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let exported = source.call_method0("__arrow_c_stream__")?;
    import_stream(exported.cast()?)
}

fn unusable(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Wraps another producer's stream so that reading it a second time is an error.
#[pyfunction]
pub fn one_shot_stream<'py>(
    py: Python<'py>,
    capsule: &Bound<'py, PyCapsule>,
) -> PyResult<Bound<'py, PyCapsule>> {
    stream(py, import_stream(capsule)?)
}

/// A reader that fails when it is read after its end. An Arrow stream is otherwise empty then, which
/// a consumer that keeps it cannot tell from a list without rows.
struct OneShot<R> {
    batches: R,
    ended: bool,
}

impl<R: RecordBatchReader> Iterator for OneShot<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return Some(Err(ArrowError::ExternalError(ALREADY_READ.into())));
        }
        let next = self.batches.next();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl<R: RecordBatchReader> RecordBatchReader for OneShot<R> {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }
}

/// A walk as record batches; it waits for them without the GIL.
pub struct Batches {
    prefetch: Arc<Prefetch<RecordBatch>>,
    read_ahead: VecDeque<RecordBatch>,
    report: SharedReport,
    resource: Resource,
    failed: Arc<Mutex<Option<PyErr>>>,
    observer: CallObserver,
    on_end: Option<Py<PyAny>>,
    ended: bool,
}

impl Batches {
    pub fn new(
        walk: Arc<Walk>,
        resource: Resource,
        failed: Arc<Mutex<Option<PyErr>>>,
        observer: CallObserver,
        privacy: Option<Arc<Privacy>>,
        on_end: Option<Py<PyAny>>,
    ) -> Self {
        Self {
            report: walk.report.clone(),
            prefetch: Arc::new(batches(walk, resource, privacy)),
            read_ahead: VecDeque::new(),
            resource,
            failed,
            observer,
            on_end,
            ended: false,
        }
    }

    /// Reads the first batches, up to `READ_AHEAD` bytes, before a consumer has the stream.
    ///
    /// A stream reports an error to its consumer as text only, and the consumer raises an error of
    /// its own. What fails here, or is interrupted by Ctrl-C, reaches the caller unchanged.
    pub fn read_ahead(&mut self, py: Python<'_>) -> PyResult<()> {
        let mut bytes = 0;
        while bytes < READ_AHEAD
            && let Some(batch) = self.receive(py)?
        {
            bytes += batch.get_array_memory_size();
            self.read_ahead.push_back(batch);
        }
        Ok(())
    }

    fn receive(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        if self.ended {
            return Ok(None);
        }
        let (prefetch, on_shutdown) = (Arc::clone(&self.prefetch), OnShutdown::SystemExit);
        let next = async move { prefetch.next().await };
        let received = block(py, on_shutdown, &self.observer, next, |_, batch| Ok(batch));
        self.ended = !matches!(received, Ok(Some(_)));
        if self.ended {
            self.observer.end(py, None);
            if let Some(on_end) = self.on_end.take() {
                on_end.call0(py)?;
            }
        }
        if matches!(received, Ok(None)) {
            self.warn(py)?;
        }
        received
    }

    /// Warns of lists that could not be read, once all others were.
    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        let report = self.report.get();
        if !report.unread_users.is_empty() {
            let report = convert::report(py, &report)?;
            py.import("backread._client.listing")?
                .call_method1("warn_of_unread", (report,))?;
        }
        Ok(())
    }

    /// Keeps what ended the stream for `take_error`, and sets Ctrl-C again for the consumer's caller.
    fn fail(&self, py: Python<'_>, error: PyErr) -> ArrowError {
        // Before the interrupt, which the first Python code to run would raise.
        // A text with a NUL is none in C, and arrow-rs would panic.
        let text = error.to_string().replace('\0', "\u{2400}");
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            let module = py.import("_thread");
            if let Err(failure) = module.and_then(|module| module.call_method0("interrupt_main")) {
                failure.write_unraisable(py, None);
            }
        }
        *lock(&self.failed) = Some(error);
        ArrowError::ExternalError(text.into())
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(batch) = self.read_ahead.pop_front() {
            return Some(Ok(batch));
        }
        if self.ended {
            return None;
        }
        // A consumer may still read while the interpreter ends, where nothing can attach any more.
        let received = Python::try_attach(|py| {
            let received = self.receive(py);
            received.map_err(|error| self.fail(py, error))
        });
        received
            .unwrap_or_else(|| {
                self.ended = true;
                Err(ArrowError::ExternalError(
                    format!("BackreadError: {EXITING}").into(),
                ))
            })
            .transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        schema(self.resource)
    }
}

/// One record batch; each call for its stream gives a new one.
#[pyclass(frozen, module = "backread._backread")]
#[derive(Clone)]
pub struct ArrowTable(pub RecordBatch);

#[pymethods]
impl ArrowTable {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // See `stream`.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        stream(py, batches)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.0.schema())
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
        "gone" => &GONE,
        other => {
            return Err(PyValueError::new_err(format!(
                "no such table: {other:?}; there are users, messages, lists, rejects and gone"
            )));
        }
    };
    Ok(ArrowTable(RecordBatch::new_empty(Arc::clone(schema))))
}
