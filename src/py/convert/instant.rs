//! Instants as aware datetimes.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDateTime, PyType, PyTzInfo};

use crate::py::fork_safe_once::once;
use backread_core::timestamp::Timestamp;

static DATETIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();

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
    class(py)?.call1((PyBytes::new(py, &pickled.concat()), PyTzInfo::utc(py)?))
}

/// Imports datetime; see `crate::py::prepare`.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    PyTzInfo::utc(py)?;
    class(py).map(|_| ())
}

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    let of_datetime = || {
        // freezegun replaces the class; what that inherits still leads to the real one.
        let method = py.get_type::<PyDateTime>().getattr("utcoffset")?;
        Ok(method.getattr("__objclass__")?.cast_into()?.unbind())
    };
    Ok(once(py, &DATETIME, of_datetime)?.bind(py))
}
