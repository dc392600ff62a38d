//! Attachments as Python reads them: what became of each, as they end.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;

use super::runtime::run;
use super::telemetry::CallObserver;
use backread_core::client::attachments::{Downloads, Outcome};
use backread_core::wire::download::Missing;

#[pyclass(frozen, name = "Downloads", module = "backread._backread")]
pub struct NativeDownloads {
    downloads: Arc<Downloads>,
    observer: CallObserver,
}

impl NativeDownloads {
    pub fn new(downloads: Downloads, observer: CallObserver) -> Self {
        Self {
            downloads: Arc::new(downloads),
            observer,
        }
    }
}

/// What became of a link, why, and its hash, bytes and media type.
type Row = (
    &'static str,
    Option<String>,
    Option<String>,
    Option<u64>,
    Option<String>,
);

fn row(outcome: Outcome) -> Row {
    match outcome {
        Outcome::Downloaded(file) => (
            "stored",
            None,
            Some(file.sha256),
            Some(file.bytes),
            file.media_type,
        ),
        Outcome::Missing(Missing::Refused(reason)) => ("failed", Some(reason), None, None, None),
        Outcome::Missing(Missing::Unwritten(error)) => {
            let reason = format!("it cannot be written: {error}");
            ("unwritten", Some(reason), None, None, None)
        }
        Outcome::Left => ("left", None, None, None, None),
    }
}

#[pymethods]
impl NativeDownloads {
    /// The downloads that end within `seconds`, but at least one; empty at the end.
    fn next(&self, py: Python<'_>, seconds: f64) -> PyResult<Py<PyAny>> {
        let downloads = Arc::clone(&self.downloads);
        let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let next = async move { Ok(downloads.next(time).await) };
        run(py, true, &self.observer, next, |py, ended| {
            let rows = ended.into_iter().map(|(number, outcome)| {
                let (state, reason, sha256, bytes, media_type) = row(outcome);
                (number, state, reason, sha256, bytes, media_type)
            });
            Ok(rows
                .collect::<Vec<_>>()
                .into_pyobject(py)?
                .into_any()
                .unbind())
        })
    }
}
