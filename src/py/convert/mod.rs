//! Values of the core as the dataclasses of `backread.models`, or as dicts.

pub mod errors;
mod items;
mod records;
mod value;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDateTime, PyDict, PyTuple, PyType, PyTzInfo};
use pythonize::{PythonizeTypes, PythonizeUnnamedMappingAdapter, pythonize_custom};

use super::forks::once;
use backread_core::report::WalkReport;
use backread_core::timestamp::Timestamp;

pub use self::items::{items, page, single, walked_page};

static DATETIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Imports and creates what values need; see `super::prepare`.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    py.import("backread.errors")?;
    PyTzInfo::utc(py)?;
    datetime(py)?;
    records::prepare(py)
}

/// A class of `backread.models`.
pub fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("backread.models")?.getattr(name)
}

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

/// A datetime in UTC, or None.
pub fn instant(py: Python<'_>, timestamp: Option<Timestamp>) -> PyResult<Bound<'_, PyAny>> {
    let Some(timestamp) = timestamp else {
        return Ok(py.None().into_bound(py));
    };
    let civil = timestamp.civil();
    let fields = [
        civil.month(),
        civil.day(),
        civil.hour(),
        civil.minute(),
        civil.second(),
    ];
    let micros = (civil.subsec_nanosecond() / 1_000).to_be_bytes();
    // A datetime is made from seven numbers or, which is faster, from its ten pickled bytes.
    let pickled = [
        &civil.year().to_be_bytes()[..],
        &fields.map(i8::cast_unsigned),
        &micros[1..],
    ];
    datetime(py)?.call1((PyBytes::new(py, &pickled.concat()), PyTzInfo::utc(py)?))
}

fn datetime(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    let of_datetime = || {
        // freezegun replaces the class; what that inherits still leads to the real one.
        let method = py.get_type::<PyDateTime>().getattr("utcoffset")?;
        Ok(method.getattr("__objclass__")?.cast_into()?.unbind())
    };
    Ok(once(py, &DATETIME, of_datetime)?.bind(py))
}
