//! What the handler of a signal raises while somebody else's code reads an Arrow stream. A reader is
//! told no more than that the stream has failed, and raises an error of its own: Ctrl-C would pass
//! for bad data. So what was raised takes the place of that error on its way to the caller.

use pyo3::prelude::*;

/// Raises an error once the code that is being called from Python is left, whatever it raises or
/// gives itself; false where that cannot be done.
pub fn raise_on_return(py: Python<'_>, error: PyErr) -> PyResult<bool> {
    let sys = py.import("sys")?;
    // A debugger, or who measures which lines run, is not put aside.
    if !sys.call_method0("gettrace")?.is_none() {
        return Ok(false);
    }
    let caller = sys.call_method0("_getframe")?;
    let raiser = Bound::new(py, Raiser { error })?;
    caller.setattr("f_trace", &raiser)?;
    sys.call_method1("settrace", (raiser,))?;
    Ok(true)
}

/// A trace function for one event: by raising it ends the tracing.
#[pyclass(frozen, module = "backread._backread")]
struct Raiser {
    error: PyErr,
}

#[pymethods]
impl Raiser {
    fn __call__(
        &self,
        py: Python<'_>,
        _frame: &Bound<'_, PyAny>,
        event: &str,
        _argument: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match event {
            // The code that is being called may itself call Python before it is left.
            "call" => Ok(()),
            _ => Err(self.error.clone_ref(py)),
        }
    }
}
