//! Rows of responses as Python objects.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyList, PyTuple};

use super::class;
use super::errors::to_python;
use super::records::Records;
use super::string_cache::StringCache;
use super::value::{as_sent, object};
use crate::py::c_api::CollectorPause;
use backread_core::api::Resource;
use backread_core::client::{Read, Sent};
use backread_core::decode::json::Fault;
use backread_core::decode::page::{Page, Row, Unreadable};
use backread_core::error::Misfit;
use backread_core::walk::WalkedPage;

/// One user or message, as a model or as sent; `user_id` is the user of a message.
pub fn single(
    py: Python<'_>,
    read: &Read<Row>,
    user_id: Option<i64>,
    as_dict: bool,
) -> PyResult<Py<PyAny>> {
    let user_id = user_id.into_bound_py_any(py)?;
    let made = Maker::new(py, as_dict)?.item(&read.value, &user_id);
    made.map(Bound::unbind)
        .map_err(|failure| failure.raised(py, &read.sent))
}

/// A page of a walk, as a `Page`.
pub fn walked_page(py: Python<'_>, page: &WalkedPage, as_dict: bool) -> PyResult<Py<PyAny>> {
    let returned = page.rows.iter().filter(|row| is_returned(row, as_dict));
    let rows = Rows {
        rows: returned.collect(),
        user_id: page.user_id,
        sent: &page.sent,
    };
    rows.page(py, (page.limit, page.offset, page.total), as_dict)
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
        let json = &page.text.json;
        let made = dict(py, &mut StringCache::new(py), json);
        return made
            .map(Bound::unbind)
            .map_err(|failure| failure.raised(py, &read.sent));
    }
    let rows = Rows {
        rows: page.rows.iter().collect(),
        user_id,
        sent: &read.sent,
    };
    rows.page(py, (page.limit, page.offset, page.total), as_dict)
}

/// The items of pages, up to the first page with a row that cannot be converted, and its error.
pub fn items<'py>(
    py: Python<'py>,
    pages: &[WalkedPage],
    as_dict: bool,
) -> PyResult<(Bound<'py, PyList>, Option<PyErr>)> {
    let mut maker = Maker::new(py, as_dict)?;
    let pause = CollectorPause::new(py);
    let mut made = Vec::new();
    let mut failed = None;
    for page in pages {
        let before = made.len();
        let readable = page.rows.iter().filter(|row| is_returned(row, as_dict));
        if let Err(failure) = maker.add(readable, page.user_id, &mut made) {
            made.truncate(before);
            failed = Some((failure, &page.sent));
            break;
        }
    }
    drop(pause);
    let failed = failed.map(|(failure, sent)| failure.raised(py, sent));
    Ok((PyList::new(py, made)?, failed))
}

/// Whether a walk returns the row; its report counts and names the others.
fn is_returned(row: &Row, as_dict: bool) -> bool {
    row.unreadable
        .is_none_or(|why| as_dict && why.can_be_given_as_sent())
}

/// The rows of one response, and their user.
struct Rows<'a> {
    rows: Vec<&'a Row>,
    user_id: Option<i64>,
    sent: &'a Sent,
}

impl Rows<'_> {
    fn page(
        &self,
        py: Python<'_>,
        (limit, offset, total): (Option<i64>, Option<i64>, Option<i64>),
        as_dict: bool,
    ) -> PyResult<Py<PyAny>> {
        let mut made = Vec::new();
        Maker::new(py, as_dict)?
            .add(self.rows.iter().copied(), self.user_id, &mut made)
            .map_err(|failure| failure.raised(py, self.sent))?;
        let resource = match self.user_id {
            None => Resource::Users,
            Some(_) => Resource::Messages,
        };
        let fields = [("limit", limit), ("offset", offset), ("total", total)].into_py_dict(py)?;
        fields.set_item("items", PyTuple::new(py, made)?)?;
        fields.set_item("resource", resource.key())?;
        let page = class(py, "Page")?.call((), Some(&fields))?;
        Ok(page.unbind())
    }
}

/// Converts rows.
struct Maker<'a, 'py> {
    py: Python<'py>,
    as_dict: bool,
    records: Records<'a, 'py>,
}

impl<'a, 'py> Maker<'a, 'py> {
    fn new(py: Python<'py>, as_dict: bool) -> PyResult<Self> {
        Ok(Self {
            py,
            as_dict,
            records: Records::new(py)?,
        })
    }

    fn add(
        &mut self,
        rows: impl Iterator<Item = &'a Row>,
        user_id: Option<i64>,
        made: &mut Vec<Bound<'py, PyAny>>,
    ) -> Result<(), Failure> {
        let user_id = user_id.into_bound_py_any(self.py)?;
        for row in rows {
            made.push(self.item(row, &user_id)?);
        }
        Ok(())
    }

    fn item(
        &mut self,
        row: &'a Row,
        user_id: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        Ok(match (self.as_dict, row.resource()) {
            (true, _) if row.unreadable == Some(Unreadable::NoObject) => {
                as_sent(self.py, &mut self.records.strings, row.json())?
            }
            (true, _) => dict(self.py, &mut self.records.strings, row.json())?,
            (false, Resource::Users) => {
                let (text, user) = row.user()?;
                self.records.user(text, user)?
            }
            (false, Resource::Messages) => {
                let (text, message) = row.message()?;
                self.records.message(user_id, text, message)?
            }
        })
    }
}

/// The text of a JSON object as a dict.
fn dict<'py>(
    py: Python<'py>,
    strings: &mut StringCache<'py>,
    json: &str,
) -> Result<Bound<'py, PyAny>, Failure> {
    object(py, strings, json)?.ok_or_else(|| {
        Fault::new("$", "nested too deep", json)
            .of(Misfit::Field)
            .into()
    })
}

/// Why a row could not be converted.
enum Failure {
    Misfit(Fault),
    Python(PyErr),
}

impl Failure {
    /// The exception for a row of this response.
    fn raised(self, py: Python<'_>, sent: &Sent) -> PyErr {
        match self {
            Self::Misfit(fault) => to_python(py, &sent.misfit(fault)),
            Self::Python(error) => error,
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Misfit(fault)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}
