//! The mock's face for Python: worlds to change by hand, and servers to start and stop.

use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyOSError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::server::{MockServer, Options, StartError};
use super::service::OPENAPI;
use super::world::{self, Fields, WorldError};

/// Adds the mock's classes, and `OPENAPI` (the text of the OpenAPI document), to the module.
///
/// # Errors
/// Whatever Python raises while they are added.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("OPENAPI", OPENAPI)?;
    module.add_class::<World>()?;
    module.add_class::<NativeMockServer>()
}

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

impl From<StartError> for PyErr {
    fn from(error: StartError) -> Self {
        let text = error.to_string();
        match error {
            StartError::Argument { .. } => PyValueError::new_err(text),
            // With a number, Python picks the subclass and fills errno.
            StartError::Listen { source, .. } | StartError::Thread(source) => {
                match source.raw_os_error() {
                    Some(number) => PyOSError::new_err((number, text)),
                    None => PyOSError::new_err(text),
                }
            }
        }
    }
}

/// An id as it comes from Python.
#[derive(Clone, Copy)]
struct Id(u64);

impl FromPyObject<'_, '_> for Id {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        count("id", &value, u64::MAX).map(Self)
    }
}

/// A whole number from 0 on, or an error that names the argument.
fn count(argument: &str, value: &Bound<'_, PyAny>, most: u64) -> PyResult<u64> {
    let range_error = || {
        let text = format!("{argument}: must be from 0 to {most}, not {value}");
        PyValueError::new_err(text)
    };
    match value.extract::<u64>() {
        Ok(number) if number <= most => Ok(number),
        Ok(_) => Err(range_error()),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Err(range_error()),
        Err(_) => {
            let kind = value.get_type().name()?;
            let text = format!("{argument}: must be a whole number, not {kind}");
            Err(PyValueError::new_err(text))
        }
    }
}

/// Field values as JSON, by way of Python's own writer.
fn json_fields(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Fields> {
    let mut read = Fields::new();
    let Some(fields) = fields else {
        return Ok(read);
    };
    let json = fields.py().import("json")?;
    let options = PyDict::new(fields.py());
    options.set_item("allow_nan", false)?;
    for (name, value) in fields {
        let name: String = name.extract()?;
        let refuse = |problem: String| PyValueError::new_err(format!("{name}: {problem}"));
        let text = json
            .call_method("dumps", (value,), Some(&options))
            .map_err(|error| refuse(error.value(fields.py()).to_string()))?
            .extract::<String>()?;
        let value = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
        read.insert(name, value);
    }
    Ok(read)
}

fn parse_json(py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
    Ok(py.import("json")?.call_method1("loads", (text,))?.unbind())
}

/// A made-up service: users in many languages, and their messages.
///
/// Row i depends on the seed and on messages_per_user only, never on how many rows there are: a
/// larger world keeps the rows of a smaller one to the byte. Size costs neither time nor memory.
/// The first user's id is always 42; ids ascend, and so do the message ids of a user.
///
/// seed: 0 to 2**64 - 1. users: how many, 0 to 2**31. messages_per_user: (least, most), both
/// included, most at most 1,000,000; most lists are short and few are long (the mean lies a fifth
/// of the way).
///
/// A wrong argument raises ValueError and names it.
#[pyclass(frozen, module = "backread.testing")]
#[derive(Debug)]
pub struct World {
    inner: Arc<world::World>,
}

#[pymethods]
impl World {
    #[new]
    #[pyo3(signature = (seed=None, users=None, messages_per_user=None))]
    #[pyo3(text_signature = "(seed=0, users=100, messages_per_user=(0, 40))")]
    fn new(
        seed: Option<&Bound<'_, PyAny>>,
        users: Option<&Bound<'_, PyAny>>,
        messages_per_user: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let seed = seed.map_or(Ok(0), |seed| count("seed", seed, u64::MAX))?;
        let users = users.map_or(Ok(100), |users| count("users", users, world::MAX_USERS))?;
        let (lo, hi) = messages_per_user.map_or(Ok((0, 40)), |range| {
            let (lo, hi): (Bound<'_, PyAny>, Bound<'_, PyAny>) = range.extract().map_err(|_| {
                PyValueError::new_err("messages_per_user: must be a tuple (least, most)")
            })?;
            let read = |value| count("messages_per_user", value, world::MAX_GENERATED);
            Ok::<_, PyErr>((read(&lo)?, read(&hi)?))
        })?;
        Ok(Self {
            inner: Arc::new(world::World::new(seed, users, lo, hi)?),
        })
    }

    /// The seed given at creation.
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.seed()
    }

    /// How many users the world was made with.
    #[getter]
    fn users(&self) -> u64 {
        self.inner.users()
    }

    /// The least and the most messages generated for a user.
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
        let text = py.detach(|| self.inner.message_json(user_id.0, message_id.0));
        parse_json(
            py,
            &text.ok_or(WorldError::NoMessage {
                user_id: user_id.0,
                message_id: message_id.0,
            })?,
        )
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
        format!("World(seed={seed}, users={users}, messages_per_user=({lo}, {hi}))")
    }
}

fn how_many(value: Option<&Bound<'_, PyAny>>, most: u64) -> PyResult<u64> {
    value.map_or(Ok(1), |value| count("count", value, most))
}

/// A running mock service over a world. Changes of the world show in the next answer.
///
/// host: an IP address. port: 0 for a free one. secret and vendor: None for defaults. It answers
/// when the constructor returns, from a thread of its own. OSError names a port that is taken;
/// a wrong argument raises ValueError and names it.
#[pyclass(frozen, module = "backread._backread")]
#[derive(Debug)]
pub struct NativeMockServer {
    inner: MockServer,
}

#[pymethods]
impl NativeMockServer {
    #[new]
    #[pyo3(signature = (world, *, host=String::from("127.0.0.1"), port=None, secret=None, vendor=None))]
    #[pyo3(text_signature = "(world, *, host='127.0.0.1', port=0, secret=None, vendor=None)")]
    fn new(
        py: Python<'_>,
        world: &World,
        host: String,
        port: Option<&Bound<'_, PyAny>>,
        secret: Option<String>,
        vendor: Option<String>,
    ) -> PyResult<Self> {
        let port = port.map_or(Ok(0), |port| count("port", port, u64::from(u16::MAX)))?;
        let options = Options {
            host,
            port: port as u16,
            secret,
            vendor,
        };
        let world = Arc::clone(&world.inner);
        Ok(Self {
            inner: py.detach(|| MockServer::start(world, options))?,
        })
    }

    /// The base URL.
    #[getter]
    fn url(&self) -> String {
        self.inner.url()
    }

    /// The port that it listens on.
    #[getter]
    fn port(&self) -> u16 {
        self.inner.port()
    }

    /// The secret that requests must carry.
    #[getter]
    fn secret(&self) -> &str {
        self.inner.secret()
    }

    /// The vendor word of the media type.
    #[getter]
    fn vendor(&self) -> &str {
        self.inner.vendor()
    }

    /// Requests answered so far, by route: users, user, messages, message, openapi, other.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        for (route, count) in self.inner.counters().by_route() {
            counts.set_item(route.name(), count)?;
        }
        Ok(counts)
    }

    /// Requests answered so far, by status.
    fn statuses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statuses = PyDict::new(py);
        for (status, count) in self.inner.counters().by_status() {
            statuses.set_item(status, count)?;
        }
        Ok(statuses)
    }

    /// Drops every connection and frees the port; once more does nothing.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.inner.stop());
    }

    fn __repr__(&self) -> String {
        format!("NativeMockServer({})", self.inner.url())
    }
}
