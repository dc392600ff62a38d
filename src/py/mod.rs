//! The bindings for CPython: calls into the core and the mock, and the conversion of their results.

mod arguments;
mod arrow;
mod c_api;
mod client;
mod convert;
mod downloads;
mod forks;
mod rows_table;
mod runtime;
mod sync;
mod telemetry;
mod walk;

/// The mock and the clock: worlds, servers and lanes.
mod testing {
    mod arguments;
    pub mod clock;
    pub mod lane;
    mod lines;
    pub mod server;
    pub mod world;
}

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use self::forks::once;
use backread_mock::service::OPENAPI;

/// `sys` of the interpreter that imported this module; each interpreter has a separate one.
static SYS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// Cached Python objects belong to one interpreter; using them in another would crash.
fn check_interpreter(py: Python<'_>) -> PyResult<()> {
    let sys = py.import("sys")?;
    if once(py, &SYS, || Ok(sys.clone().unbind()))?.is(&sys) {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "backread works in one interpreter of a process, and another has imported it already; \
         subinterpreters are not supported, use threads or processes",
    ))
}

#[pymodule(gil_used = false)]
fn _backread(module: &Bound<'_, PyModule>) -> PyResult<()> {
    check_interpreter(module.py())?;
    #[cfg(unix)]
    c_api::watch_forks();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<client::NativeClient>()?;
    module.add_class::<walk::NativeWalk>()?;
    module.add_class::<sync::NativeSyncRun>()?;
    module.add_class::<downloads::NativeDownloads>()?;
    module.add_class::<sync::SyncBatch>()?;
    module.add_class::<sync::SyncPace>()?;
    module.add_class::<sync::HintsEvidence>()?;
    module.add_class::<arrow::ArrowTable>()?;
    module.add_class::<arguments::NativePrivacy>()?;
    module.add_class::<forks::OfProcess>()?;
    module.add_function(wrap_pyfunction!(sync::hints_evidence, module)?)?;
    module.add_function(wrap_pyfunction!(arguments::redacted, module)?)?;
    module.add_function(wrap_pyfunction!(arguments::hide_emails, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::empty_table, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::one_shot_stream, module)?)?;
    module.add_function(wrap_pyfunction!(rows_table::rows_table, module)?)?;
    module.add("OPENAPI", OPENAPI)?;
    module.add_class::<testing::clock::Clock>()?;
    module.add_class::<testing::world::World>()?;
    module.add_class::<testing::world::WorldSnapshot>()?;
    module.add_class::<testing::lane::NativeLane>()?;
    module.add_class::<testing::server::NativeMockServer>()?;
    module.add_function(wrap_pyfunction!(testing::lane::read_dialect, module)?)?;
    module.add_function(wrap_pyfunction!(testing::lane::read_rate, module)?)?;
    module.add_function(wrap_pyfunction!(testing::lane::read_fault, module)?)?;
    runtime::end_at_exit(module.py())
}

/// Imports and creates whatever the first calls need, when the first client is made. Otherwise a child
/// forked while another thread is doing so would wait for a thread that it does not have.
fn prepare(py: Python<'_>) -> PyResult<()> {
    arrow::prepare();
    runtime::prepare(py);
    convert::prepare(py)?;
    telemetry::prepare(py)
}
