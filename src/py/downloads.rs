//! Attachments as Python reads them: what became of each, as they end.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;

use super::runtime::{OnShutdown, block};
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

/// The number of a link, what became of it, why, and its hash, bytes and media type.
type Row = (
    usize,
    &'static str,
    Option<String>,
    Option<String>,
    Option<u64>,
    Option<String>,
);

fn row(number: usize, outcome: Outcome) -> Row {
    let missing = |state, reason| (number, state, reason, None, None, None);
    match outcome {
        Outcome::Downloaded(file) => {
            let (sha256, bytes) = (Some(file.sha256), Some(file.bytes));
            (number, "stored", None, sha256, bytes, file.media_type)
        }
        Outcome::Missing(Missing::Refused(reason)) => missing("failed", Some(reason)),
        Outcome::Missing(Missing::Unwritten(error)) => {
            missing("unwritten", Some(format!("it cannot be written: {error}")))
        }
        Outcome::Left => missing("left", None),
    }
}

#[pymethods]
impl NativeDownloads {
    /// The downloads that end within `seconds`, but at least one; empty at the end.
    fn next(&self, py: Python<'_>, seconds: f64) -> PyResult<Vec<Row>> {
        let downloads = Arc::clone(&self.downloads);
        let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let next = async move { Ok(downloads.next(time).await) };
        block(
            py,
            OnShutdown::SystemExit,
            &self.observer,
            next,
            |_, ended| {
                let rows = ended.into_iter();
                Ok(rows.map(|(number, outcome)| row(number, outcome)).collect())
            },
        )
    }
}
