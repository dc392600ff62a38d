//! Runs the probe; `backread.profile` reads its result.

use pyo3::prelude::*;
use pythonize::pythonize;

use super::runtime::run;
use super::telemetry::CallObserver;
use backread_core::client::Client;
use backread_core::probe::probe;

/// The profile as a dict.
pub fn profile(
    py: Python<'_>,
    client: Client,
    observer: &CallObserver,
    (most, users): (u64, usize),
    blocking: bool,
) -> PyResult<Py<PyAny>> {
    // Boxed because it is large, and passed on to the thread that waits.
    let measure = Box::pin(async move { probe(&client, most, users).await });
    let convert = observer.ending(|py: Python<'_>, profile| Ok(pythonize(py, &profile)?.unbind()));
    run(py, blocking, observer, measure, convert)
}
