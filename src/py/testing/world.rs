//! Worlds as a Python class.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::arguments::{Id, count, json_fields, milliseconds, parse_json, refuse_options};
use super::lines;
use backread_mock::world::{self, GENERATOR_VERSION, WorldError};

fn raised(error: WorldError) -> PyErr {
    match error {
        WorldError::Argument { .. } => PyValueError::new_err(error.to_string()),
        WorldError::NoUser { .. } | WorldError::NoMessage { .. } => {
            PyKeyError::new_err(error.to_string())
        }
    }
}

/// The rows of a fake service: users in many languages, and their messages.
///
/// Row i depends only on the seed and messages_per_user, never on the number of rows: a larger world
/// has the rows of a smaller one, byte for byte. Size costs neither time nor memory. The first user's
/// id is always 42; user ids ascend, and so do the message ids of each user.
///
/// Args:
///     seed: 0 to 2**64 - 1.
///     users: The number of users, 0 to 2**31.
///     messages_per_user: A number, or (least, most), at most 1,000,000. Most lists are short and
///         few are long: the mean is at a fifth of the range.
///     until: A datetime with a time zone, from 2010 to 2199. The last user arrives about a day before
///         it, and no row has a later time until messages are added. Changes the times of the rows,
///         which then depend on ``users`` too, and nothing else. By default, users arrive from
///         2019-01-07 on.
///
/// Raises:
///     ValueError: An argument is invalid.
///     TypeError: An argument is unknown.
#[pyclass(frozen, module = "backread.testing")]
#[derive(Debug)]
pub struct World(pub Arc<world::World>);

#[pymethods]
impl World {
    #[new]
    #[pyo3(signature = (seed=None, users=None, messages_per_user=None, until=None, **unknown))]
    #[pyo3(text_signature = "(seed=0, users=100, messages_per_user=(0, 40), until=None)")]
    fn new(
        seed: Option<&Bound<'_, PyAny>>,
        users: Option<&Bound<'_, PyAny>>,
        messages_per_user: Option<&Bound<'_, PyAny>>,
        until: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        if let Some(unknown) = unknown {
            let known = ["seed", "users", "messages_per_user", "until"];
            refuse_options("World", unknown, &known)?;
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
        let world = world::World::new(seed, users, lo, hi).map_err(raised)?;
        Ok(Self(Arc::new(match until {
            Some(until) => world
                .ending(milliseconds("until", until)?)
                .map_err(raised)?,
            None => world,
        })))
    }

    /// The version of the generator; generated rows change only with it.
    #[classattr]
    #[pyo3(name = "generator_version")]
    const GENERATOR_VERSION: u64 = GENERATOR_VERSION;

    /// Reads a world from JSON lines: each a user as the service sends it, with an additional key
    /// `messages` that has the user's messages, in the order of the lists.
    ///
    /// Rows are preserved byte for byte, except for whitespace between tokens. Users and messages need
    /// only an integer id. Rows added later are generated, with ids above all of these.
    ///
    /// Args:
    ///     lines: The path of a file, the content of one as bytes, or an iterable of lines or dicts.
    ///
    /// Raises:
    ///     ValueError: A line is invalid; the error names it and the reason.
    ///     OSError: The file cannot be read.
    #[staticmethod]
    fn from_jsonl(lines: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(Arc::new(lines::read(lines)?)))
    }

    /// Writes the current world as JSON lines, for `from_jsonl`.
    ///
    /// Args:
    ///     path: The file to write, atomically; None to return the text.
    ///
    /// Returns:
    ///     The text, or None if it was written to a file.
    ///
    /// Raises:
    ///     OSError: The file cannot be written.
    #[pyo3(signature = (path=None))]
    fn to_jsonl(&self, py: Python<'_>, path: Option<PathBuf>) -> PyResult<Option<String>> {
        py.detach(|| match path {
            Some(path) => lines::write_file(&self.0, &path).map(|()| None),
            None => lines::text(&self.0).map(Some),
        })
    }

    /// An independent world with the same rows and changes. Costs nothing.
    fn copy(&self) -> Self {
        Self(Arc::new(self.0.fork()))
    }

    fn __copy__(&self) -> Self {
        self.copy()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.copy()
    }

    /// A world that was not changed is its arguments; any other is its rows.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, world) = (slf.py(), slf.get());
        let class = slf.get_type();
        if !world.0.is_from_jsonl() && !world.0.is_changed() {
            let (seed, users) = (world.0.seed(), world.0.users());
            let lengths = world.0.messages_per_user();
            let arguments = (seed, users, lengths, world.until()).into_pyobject(py)?;
            return Ok((class.into_any(), arguments));
        }
        let text = py.detach(|| lines::text(&world.0))?;
        let arguments = (PyBytes::new(py, text.as_bytes()),).into_pyobject(py)?;
        Ok((class.getattr("from_jsonl")?, arguments))
    }

    /// The current state of the world, for `restore`. Costs nothing.
    fn snapshot(&self) -> WorldSnapshot {
        WorldSnapshot(self.0.view())
    }

    /// Restores the state of a snapshot. Rows added since then are gone; their ids are used again.
    ///
    /// Raises:
    ///     ValueError: The snapshot is neither of this world nor of a copy of it.
    fn restore(&self, snapshot: &WorldSnapshot) -> PyResult<()> {
        self.0.restore(&snapshot.0).map_err(raised)
    }

    /// The seed; 0 for a world from JSON lines.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed()
    }

    /// The initial number of users.
    #[getter]
    fn users(&self) -> u64 {
        self.0.users()
    }

    /// The smallest and the largest initial number of messages per user.
    #[getter]
    fn messages_per_user(&self) -> (u64, u64) {
        self.0.messages_per_user()
    }

    /// The time that no generated row is later than; None unless it was given.
    #[getter]
    fn until(&self) -> Option<SystemTime> {
        let end = self.0.end();
        end.map(|end| UNIX_EPOCH + Duration::from_millis(end))
    }

    /// The current number of users.
    #[getter]
    fn total_users(&self) -> u64 {
        self.0.total_users()
    }

    /// The current number of messages; visits every user.
    #[getter]
    fn total_messages(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.0.total_messages())
    }

    /// The ids of all users, in the order of the list.
    fn user_ids(&self, py: Python<'_>) -> Vec<u64> {
        py.detach(|| self.0.view().users().ids())
    }

    /// The ids of a user's messages, in the order of the list.
    ///
    /// Raises:
    ///     KeyError: There is no such user.
    fn message_ids(&self, py: Python<'_>, user_id: Id) -> PyResult<Vec<u64>> {
        let ids = py.detach(|| Ok(self.0.view().list(Some(user_id.0))?.ids()));
        ids.map_err(raised)
    }

    /// The user as the service sends it.
    ///
    /// Raises:
    ///     KeyError: There is no such user.
    fn user(&self, py: Python<'_>, user_id: Id) -> PyResult<Py<PyAny>> {
        self.read(py, None, user_id)
    }

    /// The message as the service sends it.
    ///
    /// Raises:
    ///     KeyError: There is no such user or message.
    fn message(&self, py: Python<'_>, user_id: Id, message_id: Id) -> PyResult<Py<PyAny>> {
        self.read(py, Some(user_id), message_id)
    }

    /// Adds users at the end of the list. They are the generator's next rows and have messages.
    ///
    /// Returns:
    ///     Their ids.
    #[pyo3(signature = (count=None), text_signature = "($self, count=1)")]
    fn add_users(&self, py: Python<'_>, count: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<u64>> {
        self.add(py, None, count, world::MAX_USERS)
    }

    /// Adds messages at the end of a user's list; the user's updated_at and online_at follow.
    ///
    /// Returns:
    ///     Their ids.
    ///
    /// Raises:
    ///     KeyError: There is no such user.
    #[pyo3(signature = (user_id, count=None), text_signature = "($self, user_id, count=1)")]
    fn add_messages(
        &self,
        py: Python<'_>,
        user_id: Id,
        count: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<u64>> {
        self.add(py, Some(user_id), count, world::MAX_LIST)
    }

    /// Removes a user with all messages; the id is not used again.
    ///
    /// Raises:
    ///     KeyError: There is no such user.
    fn remove_user(&self, py: Python<'_>, user_id: Id) -> PyResult<()> {
        py.detach(|| self.0.remove(None, user_id.0)).map_err(raised)
    }

    /// Removes a message; the id is not used again.
    ///
    /// Raises:
    ///     KeyError: There is no such user or message.
    fn remove_message(&self, py: Python<'_>, user_id: Id, message_id: Id) -> PyResult<()> {
        py.detach(|| self.0.remove(Some(user_id.0), message_id.0))
            .map_err(raised)
    }

    /// Sets fields of a user to any JSON values. Undocumented fields are sent too; nothing else
    /// changes.
    ///
    /// Raises:
    ///     KeyError: There is no such user.
    ///     ValueError: The field is `id`, or a value is not JSON.
    #[pyo3(signature = (user_id, **fields), text_signature = "($self, user_id, **fields)")]
    fn edit_user(
        &self,
        py: Python<'_>,
        user_id: Id,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let fields = json_fields(fields)?;
        py.detach(|| self.0.edit(None, user_id.0, fields))
            .map_err(raised)
    }

    /// Sets fields of a message to any JSON values, like `edit_user`.
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
        py.detach(|| self.0.edit(Some(user_id.0), message_id.0, fields))
            .map_err(raised)
    }

    /// Sixteen hexadecimal digits that hash the generator's version, the arguments and all changes:
    /// worlds with equal fingerprints serve equal rows.
    fn fingerprint(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.fingerprint())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (lo, hi) = self.0.messages_per_user();
        let (seed, users) = (self.0.seed(), self.0.users());
        if self.0.is_from_jsonl() {
            return Ok(format!("<World from JSON lines, users={users}>"));
        }
        let start = format!("World(seed={seed}, users={users}, messages_per_user=({lo}, {hi})");
        match self.until() {
            Some(until) => Ok(format!(
                "{start}, until={})",
                until.into_pyobject(py)?.repr()?
            )),
            None => Ok(start + ")"),
        }
    }
}

impl World {
    fn read(&self, py: Python<'_>, user: Option<Id>, id: Id) -> PyResult<Py<PyAny>> {
        let user = user.map(|user| user.0);
        let row = py.detach(|| self.0.view().read(user, id.0));
        parse_json(py, &String::from_utf8_lossy(&row.map_err(raised)?))
    }

    fn add(
        &self,
        py: Python<'_>,
        user: Option<Id>,
        rows: Option<&Bound<'_, PyAny>>,
        most: u64,
    ) -> PyResult<Vec<u64>> {
        let rows = rows.map_or(Ok(1), |rows| count("count", rows, most))?;
        let user = user.map(|user| user.0);
        py.detach(|| self.0.add(user, rows)).map_err(raised)
    }
}

/// The state of a world at one instant, made by `World.snapshot`.
#[pyclass(frozen, module = "backread.testing")]
#[derive(Debug)]
pub struct WorldSnapshot(world::View);
