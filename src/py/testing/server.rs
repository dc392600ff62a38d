//! Mock servers as a Python class.

use std::sync::Arc;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use super::arguments::count;
use super::lane::NativeLane;
use super::world::World;
use backread_mock::admin::read_lane;
use backread_mock::lane::LaneOptions;
use backread_mock::server::{MockServer, Options, StartError};

fn raised(error: StartError) -> PyErr {
    let text = error.to_string();
    match error.source.map(|source| source.raw_os_error()) {
        None => PyValueError::new_err(text),
        // With a number, Python picks the subclass and fills errno.
        Some(Some(number)) => PyOSError::new_err((number, text)),
        Some(None) => PyOSError::new_err(text),
    }
}

/// A running mock server for a world, in a separate thread. Changes of the world show in the next
/// response.
///
/// It accepts requests once the constructor returns, which raises OSError if the port is taken and
/// ValueError for an invalid argument.
#[pyclass(frozen, module = "backread._backread")]
#[derive(Debug)]
pub struct NativeMockServer {
    inner: MockServer,
}

#[pymethods]
impl NativeMockServer {
    #[new]
    #[pyo3(signature = (world, *, host, port, secret, vendor, journal, lane))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        world: &World,
        host: String,
        port: &Bound<'_, PyAny>,
        secret: Option<String>,
        vendor: Option<String>,
        journal: &Bound<'_, PyAny>,
        lane: &str,
    ) -> PyResult<Self> {
        let (_, lane) = read_lane(lane).map_err(PyValueError::new_err)?;
        let options = Options {
            host,
            port: count("port", port, u64::from(u16::MAX))? as u16,
            secret,
            vendor,
            lane: LaneOptions {
                journal: count("journal", journal, 1 << 24)? as usize,
                ..lane
            },
        };
        let world = Arc::clone(&world.0);
        Ok(Self {
            inner: py
                .detach(|| MockServer::start(world, options))
                .map_err(raised)?,
        })
    }

    /// The base URL.
    #[getter]
    fn url(&self) -> String {
        self.inner.url()
    }

    /// The port that it listens on.
    #[getter]
    fn port(&self) -> u16 {
        self.inner.port()
    }

    /// The vendor word of the media type.
    #[getter]
    fn vendor(&self) -> &str {
        self.inner.vendor()
    }

    /// The token for the admin interface below /__mock/.
    #[getter]
    fn admin_token(&self) -> &str {
        self.inner.admin_token()
    }

    /// The lane of the server's own secret.
    fn lane(&self) -> NativeLane {
        NativeLane(Arc::clone(self.inner.service().main()))
    }

    /// Opens a lane with a new secret and clock, and a world (None: a copy of the server's). `lane`
    /// is its name, seed, dialect, rate and faults as JSON. Raises ValueError for an invalid one.
    fn open_lane(&self, world: Option<&World>, lane: &str) -> PyResult<NativeLane> {
        let (name, options) = read_lane(lane).map_err(PyValueError::new_err)?;
        let world = world.map(|world| Arc::clone(&world.0));
        let lane = self.inner.service().open_lane(name, world, options);
        lane.map(NativeLane).map_err(PyValueError::new_err)
    }

    /// Closes a lane, so that its secret is unknown. Does nothing for the server's own lane.
    fn close_lane(&self, lane: &NativeLane) {
        self.inner.service().close(&lane.0);
    }

    /// Drops all connections and frees the port. May be called again.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.inner.stop());
    }

    fn __repr__(&self) -> String {
        format!("NativeMockServer({})", self.inner.url())
    }
}
