//! What a walk requested, received and proved, as a `WalkReport`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pythonize::{PythonizeTypes, PythonizeUnnamedMappingAdapter, pythonize_custom};

use super::class;
use super::instant::instant;
use backread_core::report::WalkReport;

/// Lists become tuples, because records are immutable.
struct Immutable;

impl PythonizeTypes for Immutable {
    type Map = PyDict;
    type NamedMap = PythonizeUnnamedMappingAdapter<PyDict>;
    type List = PyTuple;
}

/// The report as a `WalkReport`, whose fields have the names of the core's.
pub fn report<'py>(py: Python<'py>, report: &WalkReport) -> PyResult<Bound<'py, PyAny>> {
    let fields = pythonize_custom::<Immutable, _>(py, report)?.cast_into::<PyDict>()?;
    fields.set_item("started_at", instant(py, report.started_at)?)?;
    fields.set_item("ended_at", instant(py, report.ended_at)?)?;
    class(py, "WalkReport")?.call((), Some(&fields))
}
