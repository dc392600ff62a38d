//! The Arrow stream of a page of models: each becomes the JSON object that the service would have sent.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDateTime, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyTzInfoAccess,
};
use serde_json::{Number, Value};

use super::arrow::ArrowTable;
use super::convert::class;
use super::convert::errors::to_python;
use backread_core::api::Resource;
use backread_core::arrow::columns::{MessageColumns, UserColumns, columns_failure};
use backread_core::decode::json::{Fault, object as joined_object};
use backread_core::decode::page::Row;

// Responses are never nested as deeply; a list that contains itself is.
const DEEPEST: u32 = 128;

/// Users, or messages, as a table with the schema of their listing.
#[pyfunction]
pub fn rows_table(items: &Bound<'_, PyTuple>, resource: &str) -> PyResult<ArrowTable> {
    let table = if resource == Resource::Users.key() {
        let mut columns = UserColumns::default();
        each(items, "User", Resource::Users, |_, row| {
            columns.append_row(row, None).map_err(misfit)
        })?;
        columns.finish()
    } else {
        let mut columns = MessageColumns::default();
        each(items, "Message", Resource::Messages, |item, row| {
            let user_id = item.getattr("user_id")?.extract()?;
            columns.append_row(user_id, row, None).map_err(misfit)
        })?;
        columns.finish()
    };
    table
        .map(ArrowTable)
        .map_err(|error| to_python(items.py(), &columns_failure(error)))
}

/// Appends each item as a row; all must be of the class with this name. Models made by hand may hold
/// anything, so errors name the place.
fn each<'py>(
    items: &Bound<'py, PyTuple>,
    name: &str,
    resource: Resource,
    mut append: impl FnMut(&Bound<'py, PyAny>, &Row) -> PyResult<()>,
) -> PyResult<()> {
    let class = class(items.py(), name)?;
    for (index, item) in items.iter().enumerate() {
        let row = if item.is_instance(&class)? {
            row(&item, resource)
        } else {
            let other = item.get_type().name()?;
            Err(PyTypeError::new_err(format!(
                "expected a {name}, got a {other}; all items of a page must be of one class"
            )))
        };
        row.and_then(|row| append(&item, &row))
            .map_err(|error| inside(item.py(), &format!("items[{index}]"), &error))?;
    }
    Ok(())
}

/// The row that the service would have sent for a model.
fn row(item: &Bound<'_, PyAny>, resource: Resource) -> PyResult<Row> {
    let writer = Writer::default();
    let fields = writer.fields(item, 0)?;
    let row = |fields: Vec<_>| {
        let json = joined_object(fields.into_iter());
        Row::alone(Arc::new(json), resource).map_err(misfit)
    };
    let whole = row(fields.clone())?;
    if whole.odd_values <= writer.odd_values.get() {
        return Ok(whole);
    }
    let id = fields.iter().find(|(name, _)| name == "id").cloned();
    for field in fields.into_iter().filter(|(name, _)| name != "id") {
        let name = field.0.clone();
        if row(id.clone().into_iter().chain([field]).collect())?.odd_values > 0 {
            let text = format!("{name}: its value has another type than the field");
            return Err(PyTypeError::new_err(text));
        }
    }
    Ok(whole)
}

fn misfit(fault: Fault) -> PyErr {
    let Fault { path, reason, .. } = fault;
    PyValueError::new_err(format!("{}: {reason}", path.trim_start_matches("$.")))
}

/// The error with the place of its cause.
fn inside(py: Python<'_>, place: &str, error: &PyErr) -> PyErr {
    let text = format!("{place}: {}", error.value(py));
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(text)
    } else {
        PyValueError::new_err(text)
    }
}

type Members = Vec<(Cow<'static, str>, String)>;

/// Writes models as JSON.
#[derive(Default)]
struct Writer {
    /// Documented fields whose value is in `extra`, because it has another type.
    odd_values: Cell<u64>,
}

impl Writer {
    /// The members of a model's object. What comes from the request is not among them.
    fn fields(&self, model: &Bound<'_, PyAny>, depth: u32) -> PyResult<Members> {
        let py = model.py();
        let extra = model.getattr("extra")?.cast_into::<PyDict>()?;
        let of_message = model.is_instance(&class(py, "OtherSender")?)?;
        let mut members = Members::new();
        for name in model.getattr("__slots__")?.try_iter()? {
            let name: String = name?.extract()?;
            let value = model.getattr(name.as_str())?;
            let elsewhere = name == "user_id" || (name == "sender_type" && of_message);
            if value.is_none() && extra.contains(&name)? {
                self.odd_values.set(self.odd_values.get() + 1);
            } else if name != "extra" && !elsewhere {
                let json = self.json(&value, depth + 1);
                let json = json.map_err(|error| inside(py, &name, &error))?;
                members.push((name.into(), json));
            }
        }
        let extra = self.members(&extra, depth);
        members.extend(extra.map_err(|error| inside(py, "extra", &error))?);
        Ok(members)
    }

    fn members(&self, object: &Bound<'_, PyDict>, depth: u32) -> PyResult<Members> {
        let members = object.iter().map(|(key, value)| {
            let key = key.cast::<PyString>()?.extract::<String>()?;
            Ok((Cow::Owned(key), self.json(&value, depth + 1)?))
        });
        members.collect()
    }

    /// A value as JSON, numbers as they are spelled.
    fn json(&self, value: &Bound<'_, PyAny>, depth: u32) -> PyResult<String> {
        if depth >= DEEPEST {
            return Err(PyValueError::new_err("nested too deep"));
        }
        if value.is_none() {
            return Ok("null".to_owned());
        }
        if let Ok(truth) = value.cast::<PyBool>() {
            return Ok(truth.is_true().to_string());
        }
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Value::String(text.extract()?).to_string());
        }
        if let Ok(object) = value.cast::<PyDict>() {
            return Ok(joined_object(self.members(object, depth)?.into_iter()));
        }
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            let items = value.try_iter()?.map(|item| self.json(&item?, depth + 1));
            let items = items.collect::<PyResult<Vec<_>>>()?;
            return Ok(format!("[{}]", items.join(",")));
        }
        if let Ok(instant) = value.cast::<PyDateTime>() {
            if instant.get_tzinfo().is_none() {
                return Err(PyTypeError::new_err(
                    "a naive datetime; give it a time zone",
                ));
            }
            let text: String = instant.call_method0("isoformat")?.extract()?;
            return Ok(Value::String(text).to_string());
        }
        if value.hasattr("extra")? {
            return Ok(joined_object(self.fields(value, depth)?.into_iter()));
        }
        // `Decimal` is for the numbers that Python has no other type for.
        let is_number = value.is_instance_of::<PyInt>()
            || value.is_instance_of::<PyFloat>()
            || value.is_instance(&value.py().import("decimal")?.getattr("Decimal")?)?;
        if !is_number {
            let name = value.get_type().name()?;
            let text = format!("a {name} cannot be written as JSON");
            return Err(PyTypeError::new_err(text));
        }
        let text = value.str()?.to_cow()?.into_owned();
        match serde_json::from_str::<Number>(&text) {
            Ok(_) => Ok(text),
            Err(_) => Err(PyValueError::new_err(format!(
                "{text} cannot be written as JSON"
            ))),
        }
    }
}
