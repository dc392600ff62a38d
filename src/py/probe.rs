//! What the probe found, as JSON text: `backread.profile` reads it.

use pyo3::prelude::*;

use super::runtime::run;
use super::telemetry::CallObserver;
use crate::core::client::Client;
use crate::core::error::{Error, ErrorKind};
use crate::core::probe::{ProbeSettings, probe};

pub fn profile(
    py: Python<'_>,
    client: Client,
    observer: &CallObserver,
    settings: ProbeSettings,
    blocking: bool,
) -> PyResult<Py<PyAny>> {
    let measure = async move {
        let profile = probe(&client, settings).await?;
        serde_json::to_string(&profile).map_err(|_| Error::new(ErrorKind::Aborted))
    };
    let ends = observer.clone();
    run(py, blocking, observer, measure, move |py, json| {
        ends.end(py, None);
        Ok(json.into_pyobject(py)?.into_any().unbind())
    })
}
