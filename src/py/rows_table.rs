//! The dataclasses of `backread.models` back as columns: rows that are in memory.

use std::borrow::Cow;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyTzInfo,
};
use serde_json::{Number, Value};

use super::arrow::ArrowTable;
use super::convert::class;
use super::convert::errors::to_python;
use crate::core::arrow::columns::{MessageColumns, UserColumns, columns_failure};
use crate::core::decode::json::Whole;
use crate::core::decode::model::{
    Extra, Message, OperatorSender, OtherSender, Sender, Unknown, User, UserAttribute, UserSender,
};
use crate::core::timestamp::Timestamp;

// No answer of a service is nested as deep; a list that holds itself has no end.
const DEEPEST: u32 = 128;

/// Users as a table of the schema that their listing has.
#[pyfunction]
pub fn users_table(items: &Bound<'_, PyTuple>) -> PyResult<ArrowTable> {
    let failed = |error| to_python(items.py(), &columns_failure(error));
    let models = Models::new(items.py())?;
    let mut columns = UserColumns::default();
    for (index, item) in items.iter().enumerate() {
        let held = models.held_by_user(&item);
        let held = held.map_err(|error| of_item(index, &item, &error))?;
        let user = models.user(&item, &held);
        columns.append(&user.map_err(|error| of_item(index, &item, &error))?);
    }
    Ok(ArrowTable::new(columns.finish().map_err(failed)?))
}

/// Messages as a table of the schema that their listing has.
#[pyfunction]
pub fn messages_table(items: &Bound<'_, PyTuple>) -> PyResult<ArrowTable> {
    let failed = |error| to_python(items.py(), &columns_failure(error));
    let models = Models::new(items.py())?;
    let mut columns = MessageColumns::default();
    for (index, item) in items.iter().enumerate() {
        let held = models.held_by_message(&item);
        let held = held.map_err(|error| of_item(index, &item, &error))?;
        let message = models.message(&item, &held);
        let (user_id, message) = message.map_err(|error| of_item(index, &item, &error))?;
        columns.append(user_id, &message).map_err(failed)?;
    }
    Ok(ArrowTable::new(columns.finish().map_err(failed)?))
}

/// The error, with the place that it is about; models made by hand may hold anything.
fn inside(py: Python<'_>, place: &str, error: &PyErr) -> PyErr {
    let text = format!("{place}: {}", error.value(py));
    match error.is_instance_of::<PyTypeError>(py) {
        true => PyTypeError::new_err(text),
        false => PyValueError::new_err(text),
    }
}

fn of_item(index: usize, item: &Bound<'_, PyAny>, error: &PyErr) -> PyErr {
    inside(item.py(), &format!("items[{index}]"), error)
}

type Text = Option<Cow<'static, str>>;

fn text(record: &Bound<'_, PyAny>, name: &str) -> PyResult<Text> {
    Ok(optional::<String>(record, name)?.map(Cow::Owned))
}

fn optional<'py, T: FromPyObjectOwned<'py>>(
    record: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<T>> {
    let value = record.getattr(name)?;
    let read = value.extract().map_err(Into::into);
    read.map_err(|error: PyErr| inside(record.py(), name, &error))
}

fn whole(record: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    optional(record, name)?.ok_or_else(|| PyTypeError::new_err(format!("{name}: is None")))
}

/// Something with `extra`, whose members it holds as JSON for a model to borrow.
struct Held<'py> {
    record: Bound<'py, PyAny>,
    extra: Vec<(String, String)>,
}

impl<'py> Held<'py> {
    fn new(record: Bound<'py, PyAny>) -> PyResult<Self> {
        let read = || -> PyResult<Vec<(String, String)>> {
            let members = record.getattr("extra")?;
            let members = object(members.cast::<PyDict>()?, 0)?;
            let members = members.into_iter();
            Ok(members
                .map(|(key, value)| (key, value.to_string()))
                .collect())
        };
        let extra = read().map_err(|error| inside(record.py(), "extra", &error))?;
        Ok(Self { record, extra })
    }

    fn extra(&self) -> Unknown<'_> {
        let members = self.extra.iter();
        members
            .map(|(key, json)| (Cow::Borrowed(key.as_str()), Cow::Borrowed(json.as_str())))
            .collect()
    }
}

/// A row, and its attributes or its sender, which are `None` where the row has none.
struct HeldRow<'py> {
    row: Held<'py>,
    inner: Option<Vec<Held<'py>>>,
}

struct Models<'py> {
    user: Bound<'py, PyAny>,
    message: Bound<'py, PyAny>,
    user_sender: Bound<'py, PyAny>,
    operator_sender: Bound<'py, PyAny>,
    epoch: Bound<'py, PyDateTime>,
    microsecond: Bound<'py, PyDelta>,
}

impl<'py> Models<'py> {
    fn new(py: Python<'py>) -> PyResult<Self> {
        let utc = PyTzInfo::utc(py)?;
        Ok(Self {
            user: class(py, "User")?,
            message: class(py, "Message")?,
            user_sender: class(py, "UserSender")?,
            operator_sender: class(py, "OperatorSender")?,
            epoch: PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, Some(&utc))?,
            microsecond: PyDelta::new(py, 0, 0, 1, true)?,
        })
    }

    fn held_by_user(&self, user: &Bound<'py, PyAny>) -> PyResult<HeldRow<'py>> {
        check(user, &self.user)?;
        let attributes: Option<Vec<Bound<'py, PyAny>>> = optional(user, "user_attributes")?;
        let attributes = attributes.map(|items| items.into_iter().map(Held::new).collect());
        Ok(HeldRow {
            row: Held::new(user.clone())?,
            inner: attributes.transpose()?,
        })
    }

    fn user<'a>(&self, user: &Bound<'py, PyAny>, held: &'a HeldRow<'py>) -> PyResult<User<'a>> {
        let attributes = held.inner.as_ref();
        let attributes = attributes.map(|items| items.iter().map(attribute).collect());
        Ok(User {
            id: whole(user, "id")?,
            name: text(user, "name")?,
            email: text(user, "email")?,
            reference: text(user, "reference")?,
            created_at: self.instant(user, "created_at")?,
            updated_at: self.instant(user, "updated_at")?,
            online_at: self.instant(user, "online_at")?,
            last_url: text(user, "last_url")?,
            user_attributes: attributes.transpose()?,
            extra: held.row.extra(),
        })
    }

    fn held_by_message(&self, message: &Bound<'py, PyAny>) -> PyResult<HeldRow<'py>> {
        check(message, &self.message)?;
        let sender: Option<Bound<'py, PyAny>> = optional(message, "sender")?;
        let sender = sender.map(|sender| Held::new(sender).map(|sender| vec![sender]));
        Ok(HeldRow {
            row: Held::new(message.clone())?,
            inner: sender.transpose()?,
        })
    }

    fn message<'a>(
        &self,
        message: &Bound<'py, PyAny>,
        held: &'a HeldRow<'py>,
    ) -> PyResult<(i64, Message<'a>)> {
        let sender = held.inner.iter().flatten().next();
        let read = Message {
            id: whole(message, "id")?,
            body: text(message, "body")?,
            read_by_user: optional(message, "read_by_user")?,
            read_by_operator: optional(message, "read_by_operator")?,
            created_at: self.instant(message, "created_at")?,
            file_url: text(message, "file_url")?,
            auto_invitation: optional(message, "auto_invitation")?,
            sender_type: text(message, "sender_type")?,
            sender: sender.map(|sender| self.sender(sender)).transpose()?,
            extra: held.row.extra(),
        };
        Ok((whole(message, "user_id")?, read))
    }

    fn sender<'a>(&self, held: &'a Held<'py>) -> PyResult<Sender<'a>> {
        let sender = &held.record;
        if sender.is_instance(&self.user_sender)? {
            return Ok(Sender::User(UserSender {
                id: whole(sender, "id")?,
                name: text(sender, "name")?,
                email: text(sender, "email")?,
                extra: held.extra(),
            }));
        }
        if sender.is_instance(&self.operator_sender)? {
            return Ok(Sender::Operator(OperatorSender {
                id: whole(sender, "id")?,
                forename: text(sender, "forename")?,
                surname: text(sender, "surname")?,
                email: text(sender, "email")?,
                picture_thumb_url: text(sender, "picture_thumb_url")?,
                extra: held.extra(),
            }));
        }
        Ok(Sender::Other(OtherSender {
            id: optional(sender, "id")?.map(Whole),
            extra: held.extra(),
        }))
    }

    // Not by way of jiff's instants, which end before the year 9999 does.
    fn instant(&self, record: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Timestamp>> {
        let Some(moment): Option<Bound<'py, PyAny>> = optional(record, name)? else {
            return Ok(None);
        };
        let microseconds = moment
            .sub(&self.epoch)
            .and_then(|since| since.floor_div(&self.microsecond)?.extract())
            .map_err(|error| inside(record.py(), name, &error))?;
        Ok(Timestamp::from_microseconds(microseconds))
    }
}

fn check(item: &Bound<'_, PyAny>, class: &Bound<'_, PyAny>) -> PyResult<()> {
    match item.is_instance(class)? {
        true => Ok(()),
        false => Err(PyTypeError::new_err(format!(
            "{} where a {} is wanted: rows of one kind have columns, and no others",
            item.get_type().name()?,
            class.getattr("__name__")?,
        ))),
    }
}

fn attribute<'a>(held: &'a Held<'_>) -> PyResult<UserAttribute<'a>> {
    Ok(UserAttribute {
        name: text(&held.record, "name")?,
        value: text(&held.record, "value")?,
        extra: held.extra(),
    })
}

/// A value of `extra` as JSON, its numbers exact.
fn json(value: &Bound<'_, PyAny>, depth: u32) -> PyResult<Value> {
    if depth >= DEEPEST {
        return Err(PyValueError::new_err("nested too deep"));
    }
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return number(value.str()?.to_cow()?.as_ref());
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        return match float.value() {
            // What a service sent as 1e400 is infinite here.
            f64::INFINITY => number("1e999"),
            f64::NEG_INFINITY => number("-1e999"),
            _ => number(value.repr()?.to_cow()?.as_ref()),
        };
    }
    if let Ok(members) = value.cast::<PyDict>() {
        return object(members, depth).map(Value::Object);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| json(&item?, depth + 1));
        return items.collect::<PyResult<_>>().map(Value::Array);
    }
    // A whole number of more digits than Python's int takes.
    if value.is_instance(&value.py().import("decimal")?.getattr("Decimal")?)? {
        return number(value.str()?.to_cow()?.as_ref());
    }
    Err(PyTypeError::new_err(format!(
        "a {} is no JSON",
        value.get_type().name()?
    )))
}

fn object(members: &Bound<'_, PyDict>, depth: u32) -> PyResult<Extra> {
    let members = members.iter().map(|(key, value)| {
        let key = key.cast::<PyString>()?.extract()?;
        Ok((key, json(&value, depth + 1)?))
    });
    members.collect()
}

fn number(text: &str) -> PyResult<Value> {
    let number: Number = serde_json::from_str(text)
        .map_err(|_| PyValueError::new_err(format!("{text} is no JSON")))?;
    Ok(Value::Number(number))
}
