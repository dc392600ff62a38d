//! The Python bindings of the mock and the clock: worlds, servers and lanes.

mod arguments;
pub mod clock;
mod lane;
mod lines;
mod server;
mod world;

use pyo3::prelude::*;

use backread_mock::service::OPENAPI;

/// Adds the mock's classes and functions, and `OPENAPI` (the text of the OpenAPI document), to the
/// module.
///
/// # Errors
/// Whatever Python raises while they are added.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("OPENAPI", OPENAPI)?;
    module.add_class::<world::World>()?;
    module.add_class::<world::WorldSnapshot>()?;
    module.add_class::<lane::NativeLane>()?;
    module.add_class::<server::NativeMockServer>()?;
    module.add_function(wrap_pyfunction!(lane::read_dialect, module)?)?;
    module.add_function(wrap_pyfunction!(lane::read_rate, module)?)?;
    module.add_function(wrap_pyfunction!(lane::read_fault, module)?)
}
