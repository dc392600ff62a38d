//! Models in memory as columns: the Arrow stream of a page.

use std::borrow::Cow;
use std::cell::RefCell;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{
    PyBool, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyTzInfo,
};
use serde_json::{Number, Value};

use super::arrow::ArrowTable;
use super::convert::class;
use super::convert::errors::to_python;
use backread_core::arrow::columns::{MessageColumns, UserColumns, columns_failure};
use backread_core::decode::json::cursor::Span;
use backread_core::decode::json::object as joined_object;
use backread_core::decode::rows::{Extra, Message, Sender, User, UserAttribute};
use backread_core::schema::{SenderType, schema};
use backread_core::timestamp::Timestamp;

// Responses are never nested as deeply; a list that contains itself is.
const DEEPEST: u32 = 128;

/// Users as a table with the schema of their listing.
#[pyfunction]
pub fn users_table(items: &Bound<'_, PyTuple>) -> PyResult<ArrowTable> {
    let models = Models::new(items.py())?;
    let mut columns = UserColumns::default();
    models.each(items, "User", |item| {
        let user = User::read(&models, item, |_| true)?;
        columns.append(&models.text.take(), &user);
        Ok(())
    })?;
    let failed = |error| to_python(items.py(), &columns_failure(error));
    Ok(ArrowTable::new(columns.finish().map_err(failed)?))
}

/// Messages as a table with the schema of their listing.
#[pyfunction]
pub fn messages_table(items: &Bound<'_, PyTuple>) -> PyResult<ArrowTable> {
    let models = Models::new(items.py())?;
    let mut columns = MessageColumns::default();
    models.each(items, "Message", |item| {
        let user_id = models.field(item, "user_id")?;
        let message = Message::read(&models, item, |_| true)?;
        columns.append(user_id, &models.text.take(), &message);
        Ok(())
    })?;
    let failed = |error| to_python(items.py(), &columns_failure(error));
    Ok(ArrowTable::new(columns.finish().map_err(failed)?))
}

/// The error with the place of its cause, because models made by hand may hold anything.
fn inside(py: Python<'_>, place: &str, error: &PyErr) -> PyErr {
    let text = format!("{place}: {}", error.value(py));
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(text)
    } else {
        PyValueError::new_err(text)
    }
}

/// What reading models needs.
struct Models<'py> {
    user_sender: Bound<'py, PyAny>,
    operator_sender: Bound<'py, PyAny>,
    epoch: Bound<'py, PyDateTime>,
    microsecond: Bound<'py, PyDelta>,
    /// The texts of the item that is read.
    text: RefCell<String>,
}

impl<'py> Models<'py> {
    fn new(py: Python<'py>) -> PyResult<Self> {
        let utc = PyTzInfo::utc(py)?;
        Ok(Self {
            user_sender: class(py, "UserSender")?,
            operator_sender: class(py, "OperatorSender")?,
            epoch: PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, Some(&utc))?,
            microsecond: PyDelta::new(py, 0, 0, 1, true)?,
            text: RefCell::default(),
        })
    }

    /// Appends each item, which must be of the class with this name.
    fn each(
        &self,
        items: &Bound<'py, PyTuple>,
        name: &str,
        mut append: impl FnMut(&Bound<'py, PyAny>) -> PyResult<()>,
    ) -> PyResult<()> {
        let class = class(items.py(), name)?;
        for (index, item) in items.iter().enumerate() {
            let appended = if item.is_instance(&class)? {
                append(&item)
            } else {
                let other = item.get_type().name()?;
                Err(PyTypeError::new_err(format!(
                    "expected a {name}, got a {other}; all items of a page must be of one class"
                )))
            };
            appended.map_err(|error| inside(item.py(), &format!("items[{index}]"), &error))?;
        }
        Ok(())
    }

    fn field<T: Held<'py>>(&self, record: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
        let held = T::held(self, &record.getattr(name)?);
        held.map_err(|error| inside(record.py(), name, &error))
    }
}

/// A row read from a model.
trait FromModel: Sized {
    /// Reads the attributes that the record `has`.
    fn read<'py>(
        models: &Models<'py>,
        record: &Bound<'py, PyAny>,
        has: impl Fn(&str) -> bool,
    ) -> PyResult<Self>;
}

macro_rules! readings {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => { $(
        impl FromModel for $name {
            fn read<'py>(
                models: &Models<'py>,
                record: &Bound<'py, PyAny>,
                has: impl Fn(&str) -> bool,
            ) -> PyResult<Self> {
                let mut row = Self::default();
                $(if has(stringify!($field)) {
                    row.$field = models.field(record, stringify!($field))?;
                })*
                row.extra = models.field(record, "extra")?;
                Ok(row)
            }
        }
    )* };
}
schema!(readings);

/// A value that a field holds.
trait Held<'py>: Sized {
    fn held(models: &Models<'py>, value: &Bound<'py, PyAny>) -> PyResult<Self>;
}

macro_rules! extracted {
    ($($type:ty)*) => { $(
        impl<'py> Held<'py> for $type {
            fn held(_: &Models<'py>, value: &Bound<'py, PyAny>) -> PyResult<Self> {
                value.extract()
            }
        }
    )* };
}
extracted! { i64 Option<i64> Option<bool> }

impl<'py> Held<'py> for Option<Span> {
    fn held(models: &Models<'py>, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let text: Option<PyBackedStr> = value.extract()?;
        Ok(text.map(|text| Span::append(&mut models.text.borrow_mut(), &text)))
    }
}

impl<'py> Held<'py> for Option<Timestamp> {
    fn held(models: &Models<'py>, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(None);
        }
        let since = value.sub(&models.epoch)?;
        let microseconds = since.floor_div(&models.microsecond)?.extract()?;
        let timestamp = Timestamp::from_microseconds(microseconds);
        match timestamp {
            Some(_) => Ok(timestamp),
            None => Err(PyValueError::new_err(format!("{value} is out of range"))),
        }
    }
}

impl<'py> Held<'py> for Option<Vec<UserAttribute>> {
    fn held(models: &Models<'py>, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let items: Option<Vec<Bound<'py, PyAny>>> = value.extract()?;
        let read = |item| UserAttribute::read(models, &item, |_| true);
        items
            .map(|items| items.into_iter().map(read).collect())
            .transpose()
    }
}

impl<'py> Held<'py> for Option<Sender> {
    fn held(models: &Models<'py>, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(None);
        }
        let sender_type = if value.is_instance(&models.user_sender)? {
            SenderType::User
        } else if value.is_instance(&models.operator_sender)? {
            SenderType::Operator
        } else {
            SenderType::Other
        };
        let has = |name: &str| sender_type.names().any(|known| known == name);
        Sender::read(models, value, has).map(Some)
    }
}

impl<'py> Held<'py> for Extra {
    fn held(models: &Models<'py>, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let members = members(value.cast::<PyDict>()?, 0)?;
        let mut texts = models.text.borrow_mut();
        let mut append = |text: &str| Span::append(&mut texts, text);
        Ok(members
            .iter()
            .map(|(key, json)| (append(key), append(json)))
            .collect())
    }
}

/// A value of `extra` as JSON, its numbers as they are spelled.
fn json(value: &Bound<'_, PyAny>, depth: u32) -> PyResult<String> {
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
        let members = members(object, depth)?.into_iter();
        return Ok(joined_object(members));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| json(&item?, depth + 1));
        return Ok(format!(
            "[{}]",
            items.collect::<PyResult<Vec<_>>>()?.join(",")
        ));
    }
    // `Decimal` is for the numbers that Python has no other type for.
    let is_number = value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
        || value.is_instance(&value.py().import("decimal")?.getattr("Decimal")?)?;
    if !is_number {
        return Err(PyTypeError::new_err(format!(
            "a {} cannot be written as JSON",
            value.get_type().name()?
        )));
    }
    let text = value.str()?.to_cow()?.into_owned();
    match serde_json::from_str::<Number>(&text) {
        Ok(_) => Ok(text),
        Err(_) => Err(PyValueError::new_err(format!(
            "{text} cannot be written as JSON"
        ))),
    }
}

fn members(object: &Bound<'_, PyDict>, depth: u32) -> PyResult<Vec<(Cow<'static, str>, String)>> {
    let members = object.iter().map(|(key, value)| {
        let key = key.cast::<PyString>()?.extract::<String>()?;
        Ok((Cow::Owned(key), json(&value, depth + 1)?))
    });
    members.collect()
}
