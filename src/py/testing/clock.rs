//! The clock as a Python class.

use std::time::{Duration, SystemTime};

use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use backread_clock::{MoveError, virtual_start};

/// The clock of a mock's lane and its clients: the system clock until `virtual` is called.
///
/// Virtual time stands still while real work is in progress, such as a request being answered. When
/// nothing else can happen, it jumps to the next deadline (of a wait, a delayed response or a
/// timeout): a minute of Retry-After takes milliseconds. A timeout also applies in real time, after
/// five seconds at least, in case the server uses another clock. In a forked child the clock is
/// real.
#[pyclass(frozen, module = "backread.testing")]
pub struct Clock(pub backread_clock::Clock);

#[pymethods]
impl Clock {
    #[new]
    fn new() -> Self {
        Self(backread_clock::Clock::switchable())
    }

    /// Switches to virtual time. Waits in progress continue with their remaining time.
    ///
    /// Args:
    ///     start: The virtual time to start at; None means 2026-01-01T00:00:00Z.
    ///
    /// Raises:
    ///     TypeError: If ``start`` has no time zone.
    #[pyo3(name = "virtual", signature = (start = None))]
    fn make_virtual(&self, py: Python<'_>, start: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let start = match start {
            None => virtual_start(),
            Some(start) => start.extract::<SystemTime>().map_err(|_| {
                PyTypeError::new_err(format!(
                    "start must be a datetime with a time zone, from 1970 on, not {start}"
                ))
            })?,
        };
        py.detach(|| self.0.make_virtual(start));
        Ok(())
    }

    /// Switches to the system clock. Waits in progress continue with their remaining time.
    fn real(&self, py: Python<'_>) {
        py.detach(|| self.0.make_real());
    }

    /// Advances virtual time; whatever is then due happens, including timeouts.
    ///
    /// Args:
    ///     seconds: Seconds or a timedelta.
    ///
    /// Raises:
    ///     RuntimeError: If the clock is real.
    ///     ValueError: If ``seconds`` is negative.
    ///     OverflowError: If it is more than ten years.
    fn advance(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let length = length(seconds)?;
        py.detach(|| self.0.advance(length))
            .map_err(|error| match error {
                MoveError::Real => PyRuntimeError::new_err(error.to_string()),
                MoveError::TooFar => PyOverflowError::new_err(error.to_string()),
            })
    }

    /// Whether the time is virtual.
    #[getter]
    fn is_virtual(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.is_virtual())
    }

    /// The date and time, in UTC.
    #[getter]
    fn now(&self, py: Python<'_>) -> SystemTime {
        py.detach(|| self.0.wall())
    }

    /// The waits of the lane's clients before retries, in seconds; the last 10,000.
    ///
    /// One entry for each Retry-After and each backoff, in the order in which they began. The
    /// Retry-After of a 429 holds back all requests of a client, and is one entry. Waits due to
    /// ``rate_limit=`` are not included.
    #[getter]
    fn slept(&self, py: Python<'_>) -> Vec<f64> {
        let slept = py.detach(|| self.0.slept());
        slept.iter().map(Duration::as_secs_f64).collect()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let now = self.now(py).into_pyobject(py)?.str()?;
        let mode = if self.is_virtual(py) {
            "virtual"
        } else {
            "real"
        };
        Ok(format!("Clock({mode}, now={now})"))
    }
}

/// A length of time, from a number of seconds or a timedelta.
fn length(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let kinds = value.py().import("backread._client.option_kinds")?;
    let checked = kinds
        .getattr("SECONDS")?
        .call_method1("check", ("seconds", value))?;
    let seconds: f64 = checked.extract()?;
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!(
            "seconds must be 0 or more, not {value}: time never goes back"
        )));
    }
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyOverflowError::new_err(MoveError::TooFar.to_string()))
}
