//! The Arrow PyCapsule interface: how record batches and schemas pass from one library to another.
//!
//! It calls arrow-rs directly: pyo3-arrow's classes come with methods that nothing here uses, and made
//! the native module 2 MB larger.

use std::ffi::CStr;

use arrow_array::RecordBatchReader;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_schema::{ArrowError, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::c_api::take_stream;

const SCHEMA: &CStr = c"arrow_schema";
pub const STREAM: &CStr = c"arrow_array_stream";

/// Exports a reader. The error of a batch must have no NUL, because it becomes a text of C.
pub fn export_stream<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
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
pub fn import_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<ArrowArrayStreamReader> {
    ArrowArrayStreamReader::try_new(take_stream(capsule)?).map_err(unusable)
}

/// The stream of any object that exports one.
pub fn stream_of(source: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let exported = source.call_method0(intern!(source.py(), "__arrow_c_stream__"))?;
    import_stream(exported.cast()?)
}

fn unusable(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
