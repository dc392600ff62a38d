//! Arguments from Python, with errors that name them.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBool, PyDict};

use backread_mock::world::Fields;

/// An id.
#[derive(Clone, Copy)]
pub struct Id(pub u64);

impl FromPyObject<'_, '_> for Id {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        count("id", &value, u64::MAX).map(Self)
    }
}

/// A whole number from 0 to `most`, or an error that names the argument.
pub fn count(argument: &str, value: &Bound<'_, PyAny>, most: u64) -> PyResult<u64> {
    let range_error = || {
        let text = format!("{argument}: must be from 0 to {most}, not {value}");
        PyValueError::new_err(text)
    };
    let kind_error = || {
        let kind = value.get_type();
        let kind = kind
            .name()
            .map_or_else(|_| "that".to_owned(), |name| name.to_string());
        PyValueError::new_err(format!("{argument}: must be a whole number, not {kind}"))
    };
    match value.extract::<u64>() {
        // Python's True is the number 1, and is never meant as one.
        Ok(_) if value.is_instance_of::<PyBool>() => Err(kind_error()),
        Ok(number) if number <= most => Ok(number),
        Ok(_) => Err(range_error()),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Err(range_error()),
        Err(_) => Err(kind_error()),
    }
}

/// The milliseconds since 1970 of a datetime with a time zone, or an error that names the argument.
pub fn milliseconds(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let moment = value.extract::<SystemTime>().ok();
    let since = moment.and_then(|moment| moment.duration_since(UNIX_EPOCH).ok());
    let since = since.ok_or_else(|| {
        PyValueError::new_err(format!(
            "{argument}: must be a datetime with a time zone, after 1970, not {value}"
        ))
    })?;
    Ok((since.as_secs_f64() * 1000.0).round() as u64)
}

/// Raises TypeError for unknown keyword arguments, with the nearest known one.
pub fn refuse_options(call: &str, given: &Bound<'_, PyDict>, known: &[&str]) -> PyResult<()> {
    let arguments = given.py().import("backread._client.arguments")?;
    arguments.call_method1("refuse_options", (call, given, known))?;
    Ok(())
}

/// Field values as JSON, by Python's json module, which rejects NaN, cycles and other types.
pub fn json_fields(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Fields> {
    let Some(fields) = fields else {
        return Ok(Fields::new());
    };
    let py = fields.py();
    let options = [("allow_nan", false)].into_py_dict(py)?;
    let text = py
        .import("json")?
        .call_method("dumps", (fields,), Some(&options))
        .map_err(|error| PyValueError::new_err(error.value(py).to_string()))?
        .extract::<String>()?;
    serde_json::from_str(&text).map_err(|error| PyValueError::new_err(error.to_string()))
}

pub fn parse_json(py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
    Ok(py.import("json")?.call_method1("loads", (text,))?.unbind())
}
