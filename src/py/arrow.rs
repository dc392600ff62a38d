//! Record batches handed over through the Arrow C stream interface.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::{PyRecordBatchReader, PySchema};

use super::runtime::block_anywhere;
use crate::core::columns::{
    CURSORS, GONE, LISTS, MESSAGES, MessageColumns, REJECTS, USERS, UserColumns, columns_failure,
};
use crate::core::error::Error;
use crate::core::interface::Resource;
use crate::core::walk::{Walk, WalkedPage};

// Pages are gathered up to this many rows, so that readers are not handed crumbs.
const BATCH_ROWS: usize = 8_192;
// Or this much JSON: bodies have no documented size.
const BATCH_BYTES: usize = 64 * 1024 * 1024;

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

/// A walk as record batches; it waits for pages without the GIL.
pub struct Batches {
    walk: Arc<Walk>,
    resource: Resource,
    failed: Arc<Mutex<Option<PyErr>>>,
    ended: bool,
}

impl Batches {
    pub fn new(walk: Arc<Walk>, resource: Resource, failed: Arc<Mutex<Option<PyErr>>>) -> Self {
        Self {
            walk,
            resource,
            failed,
            ended: false,
        }
    }

    fn gather(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let (walk, resource) = (Arc::clone(&self.walk), self.resource);
        block_anywhere(async move { gather(&walk, resource).await }).map_err(|error| {
            let text = error.to_string();
            // The reader gets no more than a text, and may take Ctrl-C for an error like any other.
            let _ = Python::attach(|py| -> PyResult<()> {
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    py.import("_thread")?.call_method0("interrupt_main")?;
                }
                Ok(())
            });
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            *failed = Some(error);
            ArrowError::ExternalError(text.into())
        })
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let gathered = self.gather();
        self.ended = !matches!(gathered, Ok(Some(_)));
        gathered.transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        schema(self.resource)
    }
}

/// The schema of a resource's batches.
pub fn schema(resource: Resource) -> SchemaRef {
    match resource {
        Resource::Users => Arc::clone(&USERS),
        Resource::Messages => Arc::clone(&MESSAGES),
    }
}

async fn gather(walk: &Walk, resource: Resource) -> Result<Option<RecordBatch>, Error> {
    let mut users = UserColumns::default();
    let mut messages = MessageColumns::default();
    let (mut rows, mut bytes) = (0, 0);
    while rows < BATCH_ROWS
        && bytes < BATCH_BYTES
        && let Some(page) = walk.feed.next().await?
    {
        rows += page.rows.len();
        bytes += page.rows.iter().map(|row| row.json().len()).sum::<usize>();
        match resource {
            Resource::Users => append_users(&mut users, &page)?,
            Resource::Messages => append_messages(&mut messages, &page)?,
        }
    }
    if rows == 0 {
        return Ok(None);
    }
    let batch = match resource {
        Resource::Users => users.finish(),
        Resource::Messages => messages.finish(),
    };
    batch.map(Some).map_err(columns_failure)
}

fn append_users(users: &mut UserColumns, page: &WalkedPage) -> Result<(), Error> {
    for row in &page.rows {
        let user = row.user().map_err(|fault| page.sent.misfit(fault))?;
        users.append(&user);
    }
    Ok(())
}

fn append_messages(messages: &mut MessageColumns, page: &WalkedPage) -> Result<(), Error> {
    for row in &page.rows {
        let message = row.message().map_err(|fault| page.sent.misfit(fault))?;
        messages
            .append(page.user_id.unwrap_or_default(), &message)
            .map_err(columns_failure)?;
    }
    Ok(())
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
