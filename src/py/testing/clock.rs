//! The clock's face for Python.

use std::time::{Duration, SystemTime};

use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::clock::{MoveError, virtual_start};

#[pyclass(frozen, module = "backread.testing")]
pub struct Clock(pub crate::clock::Clock);

#[pymethods]
impl Clock {
    #[new]
    fn new() -> Self {
        Self(crate::clock::Clock::switchable())
    }

    #[pyo3(name = "virtual", signature = (start = None))]
    fn make_virtual(&self, py: Python<'_>, start: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let start = match start {
            None => virtual_start(),
            Some(start) => start.extract::<SystemTime>().map_err(|cause| {
                let error = PyTypeError::new_err(format!(
                    "start must be a datetime with a time zone, from 1970 on, not {start}"
                ));
                error.set_cause(py, Some(cause));
                error
            })?,
        };
        py.detach(|| self.0.make_virtual(start));
        Ok(())
    }

    fn real(&self, py: Python<'_>) {
        py.detach(|| self.0.make_real());
    }

    fn advance(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let length = length(seconds)?;
        py.detach(|| self.0.advance(length))
            .map_err(|error| match error {
                MoveError::Real => PyRuntimeError::new_err(error.to_string()),
                MoveError::TooFar => PyOverflowError::new_err(error.to_string()),
            })
    }

    #[getter]
    fn is_virtual(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.is_virtual())
    }

    #[getter]
    fn now(&self, py: Python<'_>) -> SystemTime {
        py.detach(|| self.0.wall())
    }

    #[getter]
    fn slept(&self, py: Python<'_>) -> Vec<f64> {
        let slept = py.detach(|| self.0.slept());
        slept.iter().map(Duration::as_secs_f64).collect()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let now = self.now(py).into_pyobject(py)?.str()?;
        let mode = match self.is_virtual(py) {
            true => "virtual",
            false => "real",
        };
        Ok(format!("Clock({mode}, now={now})"))
    }
}

/// A length of time, from a number of seconds or a timedelta.
fn length(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let refused = || {
        PyValueError::new_err(format!(
            "seconds must be 0 or more, not {value}: time never goes back"
        ))
    };
    let Ok(seconds) = value.extract::<f64>() else {
        return value.extract::<Duration>().map_err(|error| {
            match error.is_instance_of::<PyValueError>(value.py()) {
                true => refused(),
                false => PyTypeError::new_err(format!(
                    "seconds must be a number of seconds or a timedelta, not {value}"
                )),
            }
        });
    };
    if seconds.is_nan() || seconds < 0.0 {
        return Err(refused());
    }
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyOverflowError::new_err(MoveError::TooFar.to_string()))
}
