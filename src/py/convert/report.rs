//! What a walk asked, got and proved, as a `WalkReport`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::class;
use super::instant::instant;
use crate::core::report::WalkReport;

/// The report as a `WalkReport`.
pub fn report<'py>(py: Python<'py>, report: &WalkReport) -> PyResult<Bound<'py, PyAny>> {
    let lists = PyDict::new(py);
    for (certificate, count) in &report.lists_by_certificate {
        lists.set_item(certificate, count)?;
    }
    let evidence = &report.evidence;
    let arguments = [
        report.requests.into_pyobject(py)?.into_any(),
        report.pages.into_pyobject(py)?.into_any(),
        report.rows.into_pyobject(py)?.into_any(),
        report.distinct.into_pyobject(py)?.into_any(),
        report.repeats.into_pyobject(py)?.into_any(),
        report.total_first.into_pyobject(py)?,
        report.total_last.into_pyobject(py)?,
        report.sweeps.into_pyobject(py)?.into_any(),
        report.repaired_text.into_pyobject(py)?.into_any(),
        report.certificate.name().into_pyobject(py)?.into_any(),
        instant(py, report.started_at)?,
        instant(py, report.ended_at)?,
        report.reason.as_deref().into_pyobject(py)?,
        lists.into_any(),
        PyTuple::new(py, &report.uncertified_users)?.into_any(),
        evidence.links.into_pyobject(py)?.into_any(),
        evidence.missing_links.into_pyobject(py)?.into_any(),
        evidence.inversions.into_pyobject(py)?.into_any(),
        evidence.rows_gone.into_pyobject(py)?.into_any(),
        evidence.rows_moved.into_pyobject(py)?.into_any(),
        evidence.rows_short.into_pyobject(py)?,
        evidence.proving_requests.into_pyobject(py)?.into_any(),
        evidence.rows_found_by_id.into_pyobject(py)?.into_any(),
        report.outage_seconds.into_pyobject(py)?.into_any(),
        report.odd_values.into_pyobject(py)?.into_any(),
        PyTuple::new(py, &report.unread_users)?.into_any(),
        report.unreadable_rows.into_pyobject(py)?.into_any(),
    ];
    class(py, "WalkReport")?.call1(PyTuple::new(py, arguments)?)
}
