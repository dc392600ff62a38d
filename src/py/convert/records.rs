//! Rows as the dataclasses of `backread.models`.

use std::borrow::Cow;
use std::collections::VecDeque;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyString, PyTuple, PyType};

use super::value::{StringCache, members};
use super::{class, instant};
use crate::py::c_api::{PlainClass, set_attribute};
use crate::py::forks::once;
use backread_core::decode::rows::{Extra, Message, Sender, User, Value};
use backread_core::schema::{Field, Object, SenderType};

// Recent senders; a list has its user and a few operators.
const SENDERS: usize = 16;

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

/// The classes that rows become.
struct Classes {
    user: Class,
    attribute: Class,
    message: Class,
    user_sender: Class,
    operator_sender: Class,
    other_sender: Class,
}

impl Classes {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let whole = |name, object: Object, context| Class::new(py, name, object, |_| true, context);
        let sender = |name, sender_type: SenderType, context| {
            let has = move |field: &Field| sender_type.has(field);
            Class::new(py, name, Object::Sender, has, context)
        };
        Ok(Self {
            user: whole("User", Object::User, None)?,
            attribute: whole("UserAttribute", Object::UserAttribute, None)?,
            message: whole("Message", Object::Message, Some("user_id"))?,
            user_sender: sender("UserSender", SenderType::User, None)?,
            operator_sender: sender("OperatorSender", SenderType::Operator, None)?,
            other_sender: sender("OtherSender", SenderType::Other, Some("sender_type"))?,
        })
    }

    fn of(&self, sender_type: SenderType) -> &Class {
        match sender_type {
            SenderType::User => &self.user_sender,
            SenderType::Operator => &self.operator_sender,
            SenderType::Other => &self.other_sender,
        }
    }
}

/// A dataclass and the names of its fields.
struct Class {
    class: PlainClass,
    /// By index in the table; `None` for fields that the class has not.
    fields: Vec<Option<Py<PyString>>>,
    extra: Py<PyString>,
    /// A field that is not in the object's JSON.
    context: Option<Py<PyString>>,
}

impl Class {
    fn new(
        py: Python<'_>,
        name: &str,
        object: Object,
        has: impl Fn(&Field) -> bool,
        context: Option<&'static str>,
    ) -> PyResult<Self> {
        let class = class(py, name)?.cast_into::<PyType>()?;
        let in_class = object.fields().iter().filter(|field| has(field));
        let mut expected: Vec<&str> = in_class.map(|field| field.name).collect();
        expected.extend(context.into_iter().chain(["extra"]));
        expected.sort_unstable();
        let mut declared: Vec<String> = class.getattr("__match_args__")?.extract()?;
        declared.sort_unstable();
        if declared != expected {
            return Err(PyTypeError::new_err(format!(
                "{class:?} does not fit the native module: its fields are {declared:?}, not {expected:?}"
            )));
        }
        let interned = |name| PyString::intern(py, name).unbind();
        let in_table = object.fields().iter();
        Ok(Self {
            class: PlainClass::new(&class)?,
            fields: in_table
                .map(|field| has(field).then(|| interned(field.name)))
                .collect(),
            extra: interned("extra"),
            context: context.map(interned),
        })
    }
}

/// Makes the objects of many rows, which share what is equal in them and cannot change.
pub struct Records<'a, 'py> {
    py: Python<'py>,
    classes: &'static Classes,
    pub strings: StringCache<'py>,
    none: Bound<'py, PyAny>,
    /// Of the last text, in which equal senders have equal positions.
    senders: VecDeque<(SenderType, Sender, Bound<'py, PyAny>)>,
    text: &'a str,
}

/// Makes what records need; see `crate::py::prepare`.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    once(py, &CLASSES, || Classes::new(py)).map(|_| ())
}

impl<'a, 'py> Records<'a, 'py> {
    pub fn new(py: Python<'py>) -> PyResult<Self> {
        Ok(Self {
            py,
            classes: once(py, &CLASSES, || Classes::new(py))?,
            strings: StringCache::new(py),
            none: py.None().into_bound(py),
            senders: VecDeque::new(),
            text: "",
        })
    }

    /// `text` is what the user was read from.
    pub fn user(&mut self, text: &'a str, user: &User) -> PyResult<Bound<'py, PyAny>> {
        self.read_from(text);
        let class = &self.classes.user;
        self.object(class, &user.values(text), &user.extra, None, None)
    }

    /// A message of the list of `user_id`; `text` is what it was read from.
    pub fn message(
        &mut self,
        user_id: &Bound<'py, PyAny>,
        text: &'a str,
        message: &Message,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.read_from(text);
        let class = &self.classes.message;
        let sender_type = message.sender_type.map(|span| span.text(text));
        let (values, extra) = (message.values(text), &message.extra);
        self.object(class, &values, extra, Some(user_id), sender_type.as_deref())
    }

    fn read_from(&mut self, text: &'a str) {
        if !std::ptr::eq(self.text, text) {
            self.text = text;
            self.senders.clear();
        }
    }

    /// `sender_type` is that of the message whose values these are.
    fn object(
        &mut self,
        class: &Class,
        values: &[Value<'_>],
        extra: &Extra,
        context: Option<&Bound<'py, PyAny>>,
        sender_type: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let object = class.class.object(py)?;
        for (name, value) in class.fields.iter().zip(values) {
            if let Some(name) = name {
                let value = self.value(value, sender_type)?;
                set_attribute(&object, name.bind(py), &value)?;
            }
        }
        if let (Some(name), Some(value)) = (&class.context, context) {
            set_attribute(&object, name.bind(py), value)?;
        }
        let extra = members(py, &mut self.strings, self.text, extra)?;
        set_attribute(&object, class.extra.bind(py), &extra)?;
        Ok(object)
    }

    fn value(
        &mut self,
        value: &Value<'_>,
        sender_type: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match value {
            Value::Integer(Some(number)) => number.into_bound_py_any(self.py),
            Value::Text(Some(text)) => Ok(PyString::new(self.py, text).into_any()),
            Value::Label(Some(text)) => Ok(self.strings.get(text).into_any()),
            Value::Boolean(Some(truth)) => Ok(PyBool::new(self.py, *truth).to_owned().into_any()),
            Value::Timestamp(timestamp) => instant(self.py, *timestamp),
            Value::Attributes(Some(attributes)) => {
                let class = &self.classes.attribute;
                let made = attributes.iter().map(|attribute| {
                    self.object(
                        class,
                        &attribute.values(self.text),
                        &attribute.extra,
                        None,
                        None,
                    )
                });
                let made = made.collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(self.py, made)?.into_any())
            }
            Value::Sender(Some(sender)) => self.sender(sender_type, sender),
            Value::Integer(None)
            | Value::Text(None)
            | Value::Label(None)
            | Value::Boolean(None)
            | Value::Attributes(None)
            | Value::Sender(None) => Ok(self.none.clone()),
        }
    }

    fn sender(
        &mut self,
        sender_type: Option<&str>,
        sender: &Sender,
    ) -> PyResult<Bound<'py, PyAny>> {
        let type_name = self.value(&Value::Label(sender_type.map(Cow::Borrowed)), None)?;
        let sender_type = SenderType::of(sender_type, sender.id);
        // One with fields beyond the interface is its message's own: a caller may change them.
        let shared = sender.extra.is_empty() && sender_type != SenderType::Other;
        let mut recent = self.senders.iter();
        let same = |(other_type, other, _): &&(SenderType, Sender, _)| {
            *other_type == sender_type && other == sender
        };
        if let Some((_, _, made)) = recent.find(same).filter(|_| shared) {
            return Ok(made.clone());
        }
        let class = self.classes.of(sender_type);
        let made = self.object(
            class,
            &sender.values(self.text),
            &sender.extra,
            Some(&type_name),
            None,
        )?;
        if shared {
            if self.senders.len() == SENDERS {
                self.senders.pop_front();
            }
            let entry = (sender_type, sender.clone(), made.clone());
            self.senders.push_back(entry);
        }
        Ok(made)
    }
}
