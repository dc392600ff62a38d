//! Worlds, to make and to change by hand.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::{Id, count, json_fields, parse_json, refuse_options};
use super::lines;
use crate::mock::world::{self, GENERATOR_VERSION, WorldError};

impl From<WorldError> for PyErr {
    fn from(error: WorldError) -> Self {
        match error {
            WorldError::Argument { .. } => PyValueError::new_err(error.to_string()),
            WorldError::NoUser { .. } | WorldError::NoMessage { .. } => {
                PyKeyError::new_err(error.to_string())
            }
        }
    }
}

/// A made-up service: users in many languages, and their messages.
///
/// Row i depends on the seed and on messages_per_user only, never on how many rows there are: a
/// larger world keeps the rows of a smaller one to the byte. Size costs neither time nor memory.
/// The first user's id is always 42; ids ascend, and so do the message ids of a user.
///
/// seed: 0 to 2**64 - 1. users: how many, 0 to 2**31. messages_per_user: a number, or (least, most),
/// both included, at most 1,000,000; most lists are short and few are long (the mean lies a fifth of
/// the way).
///
/// A wrong argument raises ValueError and names it; TypeError for one that there is not.
#[pyclass(frozen, module = "backread.testing")]
#[derive(Debug)]
pub struct World {
    pub(super) inner: Arc<world::World>,
}

#[pymethods]
impl World {
    #[new]
    #[pyo3(signature = (seed=None, users=None, messages_per_user=None, **unknown))]
    #[pyo3(text_signature = "(seed=0, users=100, messages_per_user=(0, 40))")]
    fn new(
        seed: Option<&Bound<'_, PyAny>>,
        users: Option<&Bound<'_, PyAny>>,
        messages_per_user: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        if let Some(unknown) = unknown {
            refuse_options("World", unknown, &["seed", "users", "messages_per_user"])?;
        }
        let seed = seed.map_or(Ok(0), |seed| count("seed", seed, u64::MAX))?;
        let users = users.map_or(Ok(100), |users| count("users", users, world::MAX_USERS))?;
        let (lo, hi) = messages_per_user.map_or(Ok((0, 40)), |range| {
            let read = |value: &_| count("messages_per_user", value, world::MAX_GENERATED);
            if range.hasattr("__index__")? {
                let each = read(range)?;
                return Ok::<_, PyErr>((each, each));
            }
            let (lo, hi): (Bound<'_, PyAny>, Bound<'_, PyAny>) = range.extract().map_err(|_| {
                PyValueError::new_err(
                    "messages_per_user: must be a number, or a tuple (least, most)",
                )
            })?;
            Ok((read(&lo)?, read(&hi)?))
        })?;
        Ok(Self {
            inner: Arc::new(world::World::new(seed, users, lo, hi)?),
        })
    }

    /// The version of everything that generated rows are made from; while it stays, they stay.
    #[classattr]
    #[pyo3(name = "generator_version")]
    const GENERATOR_VERSION: u64 = GENERATOR_VERSION;

    /// A world of rows that are given: JSON lines, each a user as the service sends it, with one
    /// more key messages that holds the list of the user's messages, in the order of the lists.
    ///
    /// lines: the path of a file, the bytes of one, or an iterable of lines or of dicts. Rows are kept byte for
    /// byte (space between tokens aside), unknown fields too; users and messages need nothing but
    /// an integer id. Rows that are added later are generated, with ids above all of these.
    /// ValueError names the line and the reason.
    #[staticmethod]
    fn from_jsonl(lines: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            inner: Arc::new(lines::read(lines)?),
        })
    }

    /// The world as it is now as JSON lines, to be read by from_jsonl: written to the file at path
    /// (whole or not at all; gives None), or as text if there is none.
    #[pyo3(signature = (path=None))]
    fn to_jsonl(&self, py: Python<'_>, path: Option<PathBuf>) -> PyResult<Option<String>> {
        py.detach(|| match path {
            Some(path) => lines::write_file(&self.inner, &path).map(|()| None),
            None => lines::text(&self.inner).map(Some),
        })
    }

    /// A world with the same rows and changes, to be changed on its own. Costs nothing.
    fn copy(&self) -> Self {
        Self {
            inner: Arc::new(self.inner.fork()),
        }
    }

    /// The world as it is now, to be brought back by restore. Costs nothing.
    fn snapshot(&self) -> WorldSnapshot {
        WorldSnapshot {
            inner: self.inner.snapshot(),
        }
    }

    /// Makes the world as it was; rows added since then are gone, and their ids come again.
    /// ValueError if the snapshot is of a world that is neither this one nor a copy of it.
    fn restore(&self, snapshot: &WorldSnapshot) -> PyResult<()> {
        Ok(self.inner.restore(&snapshot.inner)?)
    }

    /// The seed given at creation; 0 for given rows.
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.seed()
    }

    /// How many users the world was made with, or was given.
    #[getter]
    fn users(&self) -> u64 {
        self.inner.users()
    }

    /// The least and the most messages that a user was made with.
    #[getter]
    fn messages_per_user(&self) -> (u64, u64) {
        self.inner.messages_per_user()
    }

    /// How many users there are now.
    #[getter]
    fn total_users(&self) -> u64 {
        self.inner.total_users()
    }

    /// How many messages there are now; the first time, this counts every user.
    #[getter]
    fn total_messages(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.inner.total_messages())
    }

    /// The ids of all users, in the order of the list.
    fn user_ids(&self, py: Python<'_>) -> Vec<u64> {
        py.detach(|| self.inner.view().user_ids())
    }

    /// The ids of a user's messages, in the order of the list. KeyError if there is no such user.
    fn message_ids(&self, py: Python<'_>, user_id: Id) -> PyResult<Vec<u64>> {
        let ids = py.detach(|| self.inner.view().message_ids(user_id.0));
        Ok(ids.ok_or(WorldError::NoUser { user_id: user_id.0 })?)
    }

    /// The user, just as the service sends it. KeyError if there is none.
    fn user(&self, py: Python<'_>, user_id: Id) -> PyResult<Py<PyAny>> {
        let text = py.detach(|| self.inner.user_json(user_id.0));
        parse_json(py, &text.ok_or(WorldError::NoUser { user_id: user_id.0 })?)
    }

    /// The message, just as the service sends it. KeyError if there is none.
    fn message(&self, py: Python<'_>, user_id: Id, message_id: Id) -> PyResult<Py<PyAny>> {
        let (user_id, message_id) = (user_id.0, message_id.0);
        let text = py.detach(|| self.inner.message_json(user_id, message_id));
        let missing = || match self.inner.view().total_messages(user_id) {
            None => WorldError::NoUser { user_id },
            Some(_) => WorldError::NoMessage {
                user_id,
                message_id,
            },
        };
        parse_json(py, &text.ok_or_else(missing)?)
    }

    /// Adds users at the end of the list and gives their ids. They are the next rows of the
    /// generator and bring their own messages.
    #[pyo3(signature = (count=None), text_signature = "($self, count=1)")]
    fn add_users(&self, py: Python<'_>, count: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<u64>> {
        let count = how_many(count, world::MAX_USERS)?;
        Ok(py.detach(|| self.inner.add_users(count))?)
    }

    /// Adds messages at the end of a user's list and gives their ids. The user's updated_at and
    /// online_at follow. KeyError if there is no such user.
    #[pyo3(signature = (user_id, count=None), text_signature = "($self, user_id, count=1)")]
    fn add_messages(
        &self,
        py: Python<'_>,
        user_id: Id,
        count: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<u64>> {
        let count = how_many(count, world::MAX_LIST)?;
        Ok(py.detach(|| self.inner.add_messages(user_id.0, count))?)
    }

    /// Removes a user with all messages; the id never comes back. KeyError if there is none.
    fn remove_user(&self, py: Python<'_>, user_id: Id) -> PyResult<()> {
        Ok(py.detach(|| self.inner.remove_user(user_id.0))?)
    }

    /// Removes a message; the id never comes back. KeyError if there is none.
    fn remove_message(&self, py: Python<'_>, user_id: Id, message_id: Id) -> PyResult<()> {
        Ok(py.detach(|| self.inner.remove_message(user_id.0, message_id.0))?)
    }

    /// Sets fields of a user to any JSON values; fields that the interface does not name are sent
    /// too. Nothing else moves. KeyError if there is no such user; ValueError for the field id and
    /// for values that are not JSON.
    #[pyo3(signature = (user_id, **fields), text_signature = "($self, user_id, **fields)")]
    fn edit_user(
        &self,
        py: Python<'_>,
        user_id: Id,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let fields = json_fields(fields)?;
        Ok(py.detach(|| self.inner.edit_user(user_id.0, fields))?)
    }

    /// Sets fields of a message to any JSON values, as edit_user does.
    #[pyo3(signature = (user_id, message_id, **fields))]
    #[pyo3(text_signature = "($self, user_id, message_id, **fields)")]
    fn edit_message(
        &self,
        py: Python<'_>,
        user_id: Id,
        message_id: Id,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let fields = json_fields(fields)?;
        Ok(py.detach(|| self.inner.edit_message(user_id.0, message_id.0, fields))?)
    }

    /// Sixteen hexadecimal digits over the generator's version, the arguments and all changes:
    /// worlds with equal fingerprints serve equal rows.
    fn fingerprint(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.fingerprint())
    }

    fn __repr__(&self) -> String {
        let (lo, hi) = self.inner.messages_per_user();
        let (seed, users) = (self.inner.seed(), self.inner.users());
        if self.inner.is_given() {
            return format!("<World from JSON lines, users={users}>");
        }
        format!("World(seed={seed}, users={users}, messages_per_user=({lo}, {hi}))")
    }
}

/// A world at one instant, made by World.snapshot.
#[pyclass(frozen, module = "backread.testing")]
#[derive(Debug)]
pub struct WorldSnapshot {
    inner: world::Snapshot,
}

fn how_many(value: Option<&Bound<'_, PyAny>>, most: u64) -> PyResult<u64> {
    value.map_or(Ok(1), |value| count("count", value, most))
}
