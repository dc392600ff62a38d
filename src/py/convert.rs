//! Values of the core as the dataclasses of `backread.models`, or as dicts.

use std::slice;

use jiff::tz::TimeZone;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDateTime, PyDict, PyModule, PyTuple, PyTzInfo};

use super::errors::to_python;
use crate::core::client::{Read, Sent};
use crate::core::interface::Resource;
use crate::core::json::Fault;
use crate::core::model::{Extra, Message, Record, Sender, Unknown, User, UserAttribute, object_of};
use crate::core::page::{Page, Row};
use crate::core::report::WalkReport;
use crate::core::timestamp::Timestamp;
use crate::core::walk::WalkedPage;

static MODELS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// A class of `backread.models`.
pub fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    MODELS
        .get_or_try_init(py, || py.import("backread.models").map(Bound::unbind))?
        .bind(py)
        .getattr(name)
}

/// One user or message, typed or as sent; `user_id` says whose message it is.
pub fn single(
    py: Python<'_>,
    read: &Read<Row>,
    user_id: Option<i64>,
    as_dict: bool,
) -> PyResult<Py<PyAny>> {
    let items = Items {
        rows: slice::from_ref(&read.value),
        user_id,
        as_dict,
        sent: &read.sent,
    };
    items
        .item(&Models::new(py)?, &read.value)
        .map(Bound::unbind)
}

/// The rows of a page, and what the caller wants them to become.
struct Items<'a> {
    rows: &'a [Row],
    user_id: Option<i64>,
    as_dict: bool,
    sent: &'a Sent,
}

impl Items<'_> {
    fn into_python<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let models = Models::new(py)?;
        let items = self.rows.iter().map(|row| self.item(&models, row));
        PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)
    }

    fn item<'py>(&self, models: &Models<'py>, row: &Row) -> PyResult<Bound<'py, PyAny>> {
        let misfit = |fault: Fault| to_python(models.py, &self.sent.misfit(fault));
        match (self.as_dict, row.resource()) {
            (true, _) => {
                let object = row.object().map_err(misfit)?;
                Ok(pythonize::pythonize(models.py, &object)?)
            }
            (false, Resource::Users) => models.user(&row.user().map_err(misfit)?),
            (false, Resource::Messages) => {
                let message = row.message().map_err(misfit)?;
                models.message(self.user_id.unwrap_or_default(), &message)
            }
        }
    }
}

/// A page that was walked, as a `Page`.
pub fn walked_page(py: Python<'_>, page: &WalkedPage, as_dict: bool) -> PyResult<Py<PyAny>> {
    let items = Items {
        rows: &page.rows,
        user_id: page.user_id,
        as_dict,
        sent: &page.sent,
    };
    let items = items.into_python(py)?;
    class(py, "Page")?
        .call1((page.limit, page.offset, page.total, items))
        .map(Bound::unbind)
}

/// A response as a `Page`, or as the JSON object that was sent.
pub fn page(
    py: Python<'_>,
    read: &Read<Page>,
    user_id: Option<i64>,
    as_dict: bool,
) -> PyResult<Py<PyAny>> {
    let page = &read.value;
    if as_dict {
        let envelope = Extra::read(&page.text.json)
            .map_err(|fault| to_python(py, &read.sent.misfit(fault)))?;
        return Ok(pythonize::pythonize(py, &envelope)?.unbind());
    }
    let items = Items {
        rows: &page.rows,
        user_id,
        as_dict,
        sent: &read.sent,
    };
    let items = items.into_python(py)?;
    class(py, "Page")?
        .call1((page.limit, page.offset, page.total, items))
        .map(Bound::unbind)
}

/// Unknown fields as a dict, its keys in the order in which they were sent.
fn dict<'py>(py: Python<'py>, unknown: &Unknown<'_>) -> PyResult<Bound<'py, PyAny>> {
    if unknown.is_empty() {
        return Ok(PyDict::new(py).into_any());
    }
    // The row was read, and its unknown fields with it.
    let object = object_of(unknown).unwrap_or_default();
    Ok(pythonize::pythonize(py, &object)?)
}

/// The report as a `WalkReport`.
pub fn report<'py>(py: Python<'py>, report: &WalkReport) -> PyResult<Bound<'py, PyAny>> {
    let lists = PyDict::new(py);
    for (certificate, count) in &report.lists_by_certificate {
        lists.set_item(certificate, count)?;
    }
    let evidence = &report.evidence;
    let arguments = [
        report.requests.into_pyobject(py)?.into_any(),
        report.pages.into_pyobject(py)?.into_any(),
        report.rows.into_pyobject(py)?.into_any(),
        report.distinct.into_pyobject(py)?.into_any(),
        report.repeats.into_pyobject(py)?.into_any(),
        report.total_first.into_pyobject(py)?,
        report.total_last.into_pyobject(py)?,
        report.sweeps.into_pyobject(py)?.into_any(),
        report.repaired_text.into_pyobject(py)?.into_any(),
        report.certificate.name().into_pyobject(py)?.into_any(),
        instant(py, report.started_at)?,
        instant(py, report.ended_at)?,
        report.reason.as_deref().into_pyobject(py)?,
        lists.into_any(),
        PyTuple::new(py, &report.uncertified_users)?.into_any(),
        evidence.links.into_pyobject(py)?.into_any(),
        evidence.missing_links.into_pyobject(py)?.into_any(),
        evidence.inversions.into_pyobject(py)?.into_any(),
        evidence.rows_gone.into_pyobject(py)?.into_any(),
        evidence.rows_moved.into_pyobject(py)?.into_any(),
        evidence.rows_short.into_pyobject(py)?,
        evidence.proving_requests.into_pyobject(py)?.into_any(),
    ];
    class(py, "WalkReport")?.call1(PyTuple::new(py, arguments)?)
}

fn instant<'py>(py: Python<'py>, timestamp: Option<Timestamp>) -> PyResult<Bound<'py, PyAny>> {
    let Some(timestamp) = timestamp else {
        return Ok(py.None().into_bound(py));
    };
    let utc = PyTzInfo::utc(py)?;
    let civil = jiff::Timestamp::from_microsecond(timestamp.microseconds())
        .map(|instant| TimeZone::UTC.to_datetime(instant))
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    let (date, time) = (civil.date(), civil.time());
    let field = i8::unsigned_abs;
    let microsecond = u32::try_from(time.subsec_nanosecond() / 1_000).unwrap_or_default();
    let made = PyDateTime::new(
        py,
        date.year().into(),
        field(date.month()),
        field(date.day()),
        field(time.hour()),
        field(time.minute()),
        field(time.second()),
        microsecond,
        Some(&utc),
    )?;
    Ok(made.into_any())
}

/// The classes that rows become, looked up once for many rows.
struct Models<'py> {
    py: Python<'py>,
    user: Bound<'py, PyAny>,
    attribute: Bound<'py, PyAny>,
    message: Bound<'py, PyAny>,
    user_sender: Bound<'py, PyAny>,
    operator_sender: Bound<'py, PyAny>,
    other_sender: Bound<'py, PyAny>,
}

impl<'py> Models<'py> {
    fn new(py: Python<'py>) -> PyResult<Self> {
        Ok(Self {
            py,
            user: class(py, "User")?,
            attribute: class(py, "UserAttribute")?,
            message: class(py, "Message")?,
            user_sender: class(py, "UserSender")?,
            operator_sender: class(py, "OperatorSender")?,
            other_sender: class(py, "OtherSender")?,
        })
    }

    // Each call gives the fields by position, in the order in which backread.models declares them.
    fn user(&self, user: &User<'_>) -> PyResult<Bound<'py, PyAny>> {
        let attributes = match &user.user_attributes {
            None => None,
            Some(attributes) => {
                let made = attributes
                    .iter()
                    .map(|attribute| self.attribute(attribute))
                    .collect::<PyResult<Vec<_>>>()?;
                Some(PyTuple::new(self.py, made)?)
            }
        };
        self.user.call1((
            user.id,
            &user.name,
            &user.email,
            &user.reference,
            instant(self.py, user.created_at)?,
            instant(self.py, user.updated_at)?,
            instant(self.py, user.online_at)?,
            &user.last_url,
            attributes,
            dict(self.py, &user.extra)?,
        ))
    }

    fn attribute(&self, attribute: &UserAttribute<'_>) -> PyResult<Bound<'py, PyAny>> {
        let extra = dict(self.py, &attribute.extra)?;
        self.attribute
            .call1((&attribute.name, &attribute.value, extra))
    }

    fn message(&self, user_id: i64, message: &Message<'_>) -> PyResult<Bound<'py, PyAny>> {
        let sender = match &message.sender {
            None => None,
            Some(sender) => Some(self.sender(message.sender_type.as_deref(), sender)?),
        };
        self.message.call1((
            message.id,
            &message.body,
            message.read_by_user,
            message.read_by_operator,
            instant(self.py, message.created_at)?,
            &message.file_url,
            message.auto_invitation,
            &message.sender_type,
            sender,
            user_id,
            dict(self.py, &message.extra)?,
        ))
    }

    fn sender(
        &self,
        sender_type: Option<&str>,
        sender: &Sender<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match sender {
            Sender::User(user) => self.user_sender.call1((
                user.id,
                &user.name,
                &user.email,
                dict(self.py, &user.extra)?,
            )),
            Sender::Operator(operator) => self.operator_sender.call1((
                operator.id,
                &operator.forename,
                &operator.surname,
                &operator.email,
                &operator.picture_thumb_url,
                dict(self.py, &operator.extra)?,
            )),
            Sender::Other(other) => {
                self.other_sender
                    .call1((sender_type, other.id, dict(self.py, &other.extra)?))
            }
        }
    }
}
