//! Rows of responses as Python objects.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyList, PyTuple};

use super::class;
use super::errors::to_python;
use super::records::Records;
use super::value::{as_sent, value};
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
    let made = Maker::new(py, as_dict, &read.sent)?.item(&read.value, &user_id);
    made.map(Bound::unbind)
}

/// A page of a walk, as a `Page`.
pub fn walked_page(py: Python<'_>, page: &WalkedPage, as_dict: bool) -> PyResult<Py<PyAny>> {
    let rows = page.rows.iter().filter(|row| is_returned(row, as_dict));
    let counts = (page.limit, page.offset, page.total);
    Maker::new(py, as_dict, &page.sent)?.page(rows, page.user_id, counts)
}

/// A response as a `Page`, or as the JSON object that was sent.
pub fn page(
    py: Python<'_>,
    read: &Read<Page>,
    user_id: Option<i64>,
    as_dict: bool,
) -> PyResult<Py<PyAny>> {
    let page = &read.value;
    let mut maker = Maker::new(py, as_dict, &read.sent)?;
    if as_dict {
        return maker.dict(&page.text.json).map(Bound::unbind);
    }
    let counts = (page.limit, page.offset, page.total);
    maker.page(page.rows.iter(), user_id, counts)
}

/// The items of pages, up to the first page with a row that cannot be converted, and its error.
pub fn items<'py>(
    py: Python<'py>,
    pages: &[WalkedPage],
    as_dict: bool,
) -> PyResult<(Bound<'py, PyList>, Option<PyErr>)> {
    let mut made = Vec::new();
    let mut failed = None;
    if let Some(first) = pages.first() {
        let mut maker = Maker::new(py, as_dict, &first.sent)?;
        let _pause = CollectorPause::new(py);
        for page in pages {
            let before = made.len();
            maker.sent = &page.sent;
            let readable = page.rows.iter().filter(|row| is_returned(row, as_dict));
            if let Err(error) = maker.add(readable, page.user_id, &mut made) {
                made.truncate(before);
                failed = Some(error);
                break;
            }
        }
    }
    Ok((PyList::new(py, made)?, failed))
}

/// Whether a walk returns the row; its report counts and names the others.
fn is_returned(row: &Row, as_dict: bool) -> bool {
    row.unreadable
        .is_none_or(|why| as_dict && why.can_be_given_as_sent())
}

/// Converts rows.
struct Maker<'a, 'py> {
    py: Python<'py>,
    as_dict: bool,
    records: Records<'a, 'py>,
    /// The request of the rows, for errors.
    sent: &'a Sent,
}

impl<'a, 'py> Maker<'a, 'py> {
    fn new(py: Python<'py>, as_dict: bool, sent: &'a Sent) -> PyResult<Self> {
        Ok(Self {
            py,
            as_dict,
            records: Records::new(py)?,
            sent,
        })
    }

    fn page(
        &mut self,
        rows: impl Iterator<Item = &'a Row>,
        user_id: Option<i64>,
        (limit, offset, total): (Option<i64>, Option<i64>, Option<i64>),
    ) -> PyResult<Py<PyAny>> {
        let py = self.py;
        let mut made = Vec::new();
        self.add(rows, user_id, &mut made)?;
        let resource = match user_id {
            None => Resource::Users,
            Some(_) => Resource::Messages,
        };
        let fields = [("limit", limit), ("offset", offset), ("total", total)].into_py_dict(py)?;
        fields.set_item("items", PyTuple::new(py, made)?)?;
        fields.set_item("resource", resource.key())?;
        let page = class(py, "Page")?.call((), Some(&fields))?;
        Ok(page.unbind())
    }

    fn add(
        &mut self,
        rows: impl Iterator<Item = &'a Row>,
        user_id: Option<i64>,
        made: &mut Vec<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let user_id = user_id.into_bound_py_any(self.py)?;
        for row in rows {
            made.push(self.item(row, &user_id)?);
        }
        Ok(())
    }

    fn item(&mut self, row: &'a Row, user_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match (self.as_dict, row.resource()) {
            (true, _) if row.unreadable == Some(Unreadable::NoObject) => {
                as_sent(self.py, &mut self.records.strings, row.json())
            }
            (true, _) => self.dict(row.json()),
            (false, Resource::Users) => {
                let (text, user) = row.user().map_err(|fault| self.misfit(fault))?;
                self.records.user(text, user)
            }
            (false, Resource::Messages) => {
                let (text, message) = row.message().map_err(|fault| self.misfit(fault))?;
                self.records.message(user_id, text, message)
            }
        }
    }

    /// The text of a JSON object as a dict.
    fn dict(&mut self, json: &str) -> PyResult<Bound<'py, PyAny>> {
        let read = value(self.py, &mut self.records.strings, json)?;
        read.ok_or_else(|| self.misfit(Fault::new("$", "nested too deep", json).of(Misfit::Field)))
    }

    fn misfit(&self, fault: Fault) -> PyErr {
        to_python(self.py, &self.sent.misfit(fault))
    }
}
