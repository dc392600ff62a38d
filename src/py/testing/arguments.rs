//! Arguments from Python, with errors that name them.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

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
    let refuse = |must: &str| PyValueError::new_err(format!("{argument}: must be {must}"));
    let datetime = value.py().import("datetime")?.getattr("datetime")?;
    if !value.is_instance(&datetime)? || value.call_method0("utcoffset")?.is_none() {
        return Err(refuse("a datetime with a time zone"));
    }
    let seconds: f64 = value.call_method0("timestamp")?.extract()?;
    if seconds < 0.0 {
        return Err(refuse("after 1970"));
    }
    Ok((seconds * 1000.0).round() as u64)
}

/// Milliseconds since 1970 as a datetime in UTC.
pub fn from_milliseconds(py: Python<'_>, moment: u64) -> PyResult<Bound<'_, PyAny>> {
    let module = py.import("datetime")?;
    let utc = module.getattr("UTC")?;
    let datetime = module.getattr("datetime")?;
    datetime.call_method1("fromtimestamp", (moment as f64 / 1000.0, utc))
}

/// Raises TypeError for unknown keyword arguments, with the nearest known one.
pub fn refuse_options(call: &str, given: &Bound<'_, PyDict>, known: &[&str]) -> PyResult<()> {
    let arguments = given.py().import("backread._client.arguments")?;
    arguments.call_method1("refuse_options", (call, given, known))?;
    Ok(())
}

/// Field values as JSON.
pub fn json_fields(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Fields> {
    let mut read = Fields::new();
    let Some(fields) = fields else {
        return Ok(read);
    };
    for (name, value) in fields {
        let name: String = name.extract()?;
        let refuse = |problem: String| PyValueError::new_err(format!("{name}: {problem}"));
        let text =
            json_text(&value).map_err(|error| refuse(error.value(value.py()).to_string()))?;
        let value = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
        read.insert(name, value);
    }
    Ok(read)
}

/// A value as JSON text, by Python's json module, which rejects NaN, cycles and other types.
pub fn json_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let options = PyDict::new(value.py());
    options.set_item("allow_nan", false)?;
    let json = value.py().import("json")?;
    json.call_method("dumps", (value,), Some(&options))?
        .extract()
}

pub fn parse_json(py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
    Ok(py.import("json")?.call_method1("loads", (text,))?.unbind())
}
