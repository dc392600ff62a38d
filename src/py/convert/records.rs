//! Rows as the dataclasses of `backread.models`.

use std::collections::VecDeque;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyString, PyTuple, PyType};

use super::c_interface::{Slotted, hidden_dict};
use super::class;
use super::instant::instant;
use super::names::Names;
use super::value::members;
use crate::core::decode::model::{Message, Sender, Unknown, User, UserAttribute};
use crate::py::fork_safe_once::once;

// Senders met lately; a list has its user and a few operators.
const SENDERS: usize = 16;

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

/// The classes that rows become, in the order in which `backread.models` declares their fields.
struct Classes {
    user: Slotted<10>,
    attribute: Slotted<3>,
    message: Slotted<11>,
    user_sender: Slotted<4>,
    operator_sender: Slotted<6>,
    other_sender: Slotted<3>,
}

impl Classes {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let class = |name| Ok::<_, PyErr>(class(py, name)?.cast_into::<PyType>()?);
        Ok(Self {
            user: Slotted::new(
                &class("User")?,
                [
                    "id",
                    "name",
                    "email",
                    "reference",
                    "created_at",
                    "updated_at",
                    "online_at",
                    "last_url",
                    "user_attributes",
                    "extra",
                ],
                &["user_attributes", "extra"],
            )?,
            attribute: Slotted::new(
                &class("UserAttribute")?,
                ["name", "value", "extra"],
                &["extra"],
            )?,
            message: Slotted::new(
                &class("Message")?,
                [
                    "id",
                    "body",
                    "read_by_user",
                    "read_by_operator",
                    "created_at",
                    "file_url",
                    "auto_invitation",
                    "sender_type",
                    "sender",
                    "user_id",
                    "extra",
                ],
                &["sender", "extra"],
            )?,
            user_sender: Slotted::new(
                &class("UserSender")?,
                ["id", "name", "email", "extra"],
                &["extra"],
            )?,
            operator_sender: Slotted::new(
                &class("OperatorSender")?,
                [
                    "id",
                    "forename",
                    "surname",
                    "email",
                    "picture_thumb_url",
                    "extra",
                ],
                &["extra"],
            )?,
            other_sender: Slotted::new(
                &class("OtherSender")?,
                ["sender_type", "id", "extra"],
                &["extra"],
            )?,
        })
    }
}

/// Makes the objects of many rows, which share what is equal in them and cannot change.
pub struct Records<'a, 'py> {
    py: Python<'py>,
    classes: &'static Classes,
    names: Names<'py>,
    none: Bound<'py, PyAny>,
    senders: VecDeque<(Sender<'a>, Bound<'py, PyAny>)>,
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
            names: Names::new(py),
            none: py.None().into_bound(py),
            senders: VecDeque::new(),
        })
    }

    pub fn user(&mut self, user: &User<'_>) -> PyResult<Bound<'py, PyAny>> {
        let attributes = match &user.user_attributes {
            None => self.none.clone(),
            Some(attributes) => {
                let made = attributes
                    .iter()
                    .map(|attribute| self.attribute(attribute))
                    .collect::<PyResult<Vec<_>>>()?;
                PyTuple::new(self.py, made)?.into_any()
            }
        };
        let values = [
            user.id.into_bound_py_any(self.py)?,
            self.text(user.name.as_deref()),
            self.text(user.email.as_deref()),
            self.text(user.reference.as_deref()),
            instant(self.py, user.created_at)?,
            instant(self.py, user.updated_at)?,
            instant(self.py, user.online_at)?,
            self.text(user.last_url.as_deref()),
            attributes,
            self.extra(&user.extra)?,
        ];
        self.classes.user.make(self.py, values)
    }

    fn attribute(&mut self, attribute: &UserAttribute<'_>) -> PyResult<Bound<'py, PyAny>> {
        let values = [
            self.name(attribute.name.as_deref()),
            self.text(attribute.value.as_deref()),
            self.extra(&attribute.extra)?,
        ];
        self.classes.attribute.make(self.py, values)
    }

    /// A message of the list of `user_id`.
    pub fn message(
        &mut self,
        user_id: &Bound<'py, PyAny>,
        message: Message<'a>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let sender_type = self.name(message.sender_type.as_deref());
        let sender = match message.sender {
            None => self.none.clone(),
            Some(sender) => self.sender(&sender_type, sender)?,
        };
        let values = [
            message.id.into_bound_py_any(self.py)?,
            self.text(message.body.as_deref()),
            self.truth(message.read_by_user),
            self.truth(message.read_by_operator),
            instant(self.py, message.created_at)?,
            self.text(message.file_url.as_deref()),
            self.truth(message.auto_invitation),
            sender_type,
            sender,
            user_id.clone(),
            self.extra(&message.extra)?,
        ];
        self.classes.message.make(self.py, values)
    }

    fn sender(
        &mut self,
        sender_type: &Bound<'py, PyAny>,
        sender: Sender<'a>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // One that holds more than the interface names is each message's own.
        let shared = match &sender {
            Sender::User(user) => user.extra.is_empty(),
            Sender::Operator(operator) => operator.extra.is_empty(),
            Sender::Other(_) => false,
        };
        if !shared {
            return self.new_sender(sender_type, &sender);
        }
        if let Some((_, made)) = self.senders.iter().find(|(met, _)| *met == sender) {
            return Ok(made.clone());
        }
        let made = self.new_sender(sender_type, &sender)?;
        if self.senders.len() == SENDERS {
            self.senders.pop_front();
        }
        self.senders.push_back((sender, made.clone()));
        Ok(made)
    }

    fn new_sender(
        &mut self,
        sender_type: &Bound<'py, PyAny>,
        sender: &Sender<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match sender {
            Sender::User(user) => {
                let values = [
                    user.id.into_bound_py_any(self.py)?,
                    self.text(user.name.as_deref()),
                    self.text(user.email.as_deref()),
                    self.extra(&user.extra)?,
                ];
                self.classes.user_sender.make(self.py, values)
            }
            Sender::Operator(operator) => {
                let values = [
                    operator.id.into_bound_py_any(self.py)?,
                    self.text(operator.forename.as_deref()),
                    self.text(operator.surname.as_deref()),
                    self.text(operator.email.as_deref()),
                    self.text(operator.picture_thumb_url.as_deref()),
                    self.extra(&operator.extra)?,
                ];
                self.classes.operator_sender.make(self.py, values)
            }
            Sender::Other(other) => {
                let values = [
                    sender_type.clone(),
                    other.id.map(|id| id.0).into_bound_py_any(self.py)?,
                    self.extra(&other.extra)?,
                ];
                self.classes.other_sender.make(self.py, values)
            }
        }
    }

    fn text(&self, text: Option<&str>) -> Bound<'py, PyAny> {
        match text {
            None => self.none.clone(),
            Some(text) => PyString::new(self.py, text).into_any(),
        }
    }

    /// A text that other rows are likely to hold too.
    fn name(&mut self, text: Option<&str>) -> Bound<'py, PyAny> {
        match text {
            None => self.none.clone(),
            Some(text) => self.names.get(text).into_any(),
        }
    }

    fn truth(&self, truth: Option<bool>) -> Bound<'py, PyAny> {
        match truth {
            None => self.none.clone(),
            Some(truth) => PyBool::new(self.py, truth).to_owned().into_any(),
        }
    }

    fn extra(&mut self, extra: &Unknown<'_>) -> PyResult<Bound<'py, PyAny>> {
        match extra.is_empty() {
            true => Ok(hidden_dict(self.py)),
            false => members(self.py, &mut self.names, extra),
        }
    }
}
