//! One lane, as Python holds it: texts go in and out in the mock's one grammar.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::arguments::{Id, json_fields};
use super::world::World;
use crate::mock::audit::{Audit, AuditError, List};
use crate::mock::dialect::Dialect;
use crate::mock::drift::{Change, Drift, Which};
use crate::mock::faults::rate::Rate;
use crate::mock::faults::rule::{Rule, read_rules as read_all};
use crate::mock::journal::Entry;
use crate::mock::lane::Lane;
use crate::py::testing::clock::Clock;

/// One lane of a mock server: what a bearer token leads to.
#[pyclass(frozen, module = "backread._backread")]
#[derive(Debug)]
pub struct NativeLane {
    pub(super) inner: Arc<Lane>,
}

#[pymethods]
impl NativeLane {
    /// What it goes by in the inspector.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The secret that its requests carry.
    #[getter]
    fn secret(&self) -> &str {
        self.inner.secret()
    }

    /// What all chance in it is drawn from.
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.seed()
    }

    /// The rows that it answers with.
    #[getter]
    fn world(&self) -> World {
        World {
            inner: Arc::clone(self.inner.world()),
        }
    }

    /// The clock that its delays and its clients go by.
    #[getter]
    fn clock(&self) -> Clock {
        Clock(self.inner.clock.clone())
    }

    /// The dialect as text.
    #[getter]
    fn dialect(&self) -> String {
        self.inner.dialect().to_string()
    }

    /// Speaks another dialect from the next request on. ValueError for a text that is none.
    fn set_dialect(&self, text: &str) -> PyResult<()> {
        self.inner.set_dialect(read(text)?);
        Ok(())
    }

    /// The rate limit as text, or None.
    #[getter]
    fn rate(&self) -> Option<String> {
        self.inner.rate().map(|rate| rate.to_string())
    }

    /// Limits the rate from now on; None for no limit. ValueError for a text that is none.
    #[pyo3(signature = (text))]
    fn set_rate(&self, text: Option<&str>) -> PyResult<()> {
        self.inner.set_rate(text.map(read).transpose()?);
        Ok(())
    }

    /// The rules that mutation answers, in their order, each with how often it did.
    fn rules(&self) -> Vec<(String, u64)> {
        let standing = self.inner.rules.list();
        standing
            .iter()
            .map(|standing| (standing.rule.to_string(), standing.fired))
            .collect()
    }

    /// Adds the rules that a text holds, behind those there are. ValueError for one that is wrong,
    /// and then none is added.
    fn add_rules(&self, text: &str) -> PyResult<()> {
        for rule in rules(text)? {
            self.inner.rules.add(rule);
        }
        Ok(())
    }

    /// Sets the rules that a text holds in place of those there are; ValueError as add_rules.
    fn set_rules(&self, text: &str) -> PyResult<()> {
        let rules = rules(text)?;
        self.inner.rules.clear();
        for rule in rules {
            self.inner.rules.add(rule);
        }
        Ok(())
    }

    /// Takes all rules away.
    fn clear_rules(&self) {
        self.inner.rules.clear();
    }

    /// What was set and never happened: rules that bent no answer, but for those of chance, and
    /// changes whose page has not come.
    fn unfired(&self) -> Vec<String> {
        let rules = self.inner.rules.list().into_iter();
        rules
            .filter(|standing| standing.fired == 0 && standing.rule.p.is_none())
            .map(|standing| standing.rule.to_string())
            .chain(self.inner.drifts.list())
            .collect()
    }

    /// Removes rows right after a number of pages; which: ("first", n), ("last", n) or ("ids", ids).
    fn delete_after(
        &self,
        route: &str,
        user: Option<Id>,
        after: u64,
        which: (String, Bound<'_, PyAny>),
    ) -> PyResult<()> {
        self.drift(route, user, after, Change::Delete(rows(&which)?))
    }

    /// Adds rows at the end of the list right after a number of pages.
    fn add_after(&self, route: &str, user: Option<Id>, after: u64, count: u64) -> PyResult<()> {
        self.drift(route, user, after, Change::Add(count))
    }

    /// Sets fields of rows right after a number of pages.
    fn edit_after(
        &self,
        route: &str,
        user: Option<Id>,
        after: u64,
        which: (String, Bound<'_, PyAny>),
        fields: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let fields = json_fields(Some(fields))?;
        self.drift(route, user, after, Change::Edit(rows(&which)?, fields))
    }

    /// How many changes wait for their page.
    #[getter]
    fn drifts_waiting(&self) -> usize {
        self.inner.drifts.waiting()
    }

    /// Compares the ids that a reader holds with what was there: a dict with missing (id, request,
    /// why), repeated (id, times, requests), unexpected (ids) and expected (a count). KeyError
    /// for the messages of a user who was never there; RuntimeError where the journal has forgotten
    /// requests.
    #[pyo3(signature = (ids, user=None))]
    fn audit<'py>(
        &self,
        py: Python<'py>,
        ids: Vec<u64>,
        user: Option<Id>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let list = user.map_or(List::Users, |user| List::Messages { user_id: user.0 });
        let Audit {
            missing,
            repeated,
            unexpected,
            expected,
        } = py
            .detach(|| self.inner.audit(list, &ids))
            .map_err(|error| {
                let text = error.to_string();
                match error {
                    AuditError::NoUser { .. } => PyKeyError::new_err(text),
                    AuditError::Forgotten { .. } => PyRuntimeError::new_err(text),
                }
            })?;
        let found = PyDict::new(py);
        let missing: Vec<_> = missing
            .into_iter()
            .map(|lost| (lost.id, lost.request, lost.why))
            .collect();
        let repeated: Vec<_> = repeated
            .into_iter()
            .map(|row| (row.id, row.times, row.requests))
            .collect();
        found.set_item("missing", missing)?;
        found.set_item("repeated", repeated)?;
        found.set_item("unexpected", unexpected)?;
        found.set_item("expected", expected)?;
        Ok(found)
    }

    /// The number of the journal's last entry; 0 before the first.
    #[getter]
    fn last_number(&self) -> u64 {
        self.inner.journal.last_number()
    }

    /// The first `most` entries of the journal numbered above `after`, as dicts, and whether
    /// entries after that number made room already.
    #[pyo3(signature = (after=0, most=None))]
    fn journal<'py>(
        &self,
        py: Python<'py>,
        after: u64,
        most: Option<usize>,
    ) -> PyResult<(Bound<'py, PyList>, bool)> {
        let (entries, forgotten) = self.inner.journal.since(after, most.unwrap_or(usize::MAX));
        let list = PyList::empty(py);
        for entry in &entries {
            list.append(describe(py, entry)?)?;
        }
        Ok((list, forgotten))
    }

    /// The requests numbered above `after` that no client should have sent, as dicts: the first
    /// thousand, also where the journal has forgotten them.
    fn unexpected<'py>(&self, py: Python<'py>, after: u64) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for entry in &self.inner.journal.unexpected(after) {
            list.append(describe(py, entry)?)?;
        }
        Ok(list)
    }

    /// Requests answered, by route.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        for (route, count) in self.inner.counters.by_route() {
            counts.set_item(route.name(), count)?;
        }
        Ok(counts)
    }

    /// Requests answered, by status.
    fn statuses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statuses = PyDict::new(py);
        for (status, count) in self.inner.counters.by_status() {
            statuses.set_item(status, count)?;
        }
        Ok(statuses)
    }

    /// Forgets what was asked: journal, counts and attempts begin anew, and so do audits.
    fn forget(&self) {
        self.inner.forget();
    }

    fn __repr__(&self) -> String {
        format!("NativeLane({})", self.inner.name())
    }
}

impl NativeLane {
    pub(super) const fn of(inner: Arc<Lane>) -> Self {
        Self { inner }
    }

    fn drift(&self, route: &str, user: Option<Id>, after: u64, change: Change) -> PyResult<()> {
        let drift = Drift::new(route, user.map(|user| user.0), after, change);
        self.inner.drifts.add(drift.map_err(PyValueError::new_err)?);
        Ok(())
    }
}

/// What a dialect's text means: the text in its shortest form, every switch, and whether all
/// answers conform to the interface. ValueError for a text that is none.
#[pyfunction]
pub fn read_dialect<'py>(
    py: Python<'py>,
    text: &str,
) -> PyResult<(String, Bound<'py, PyDict>, bool)> {
    let dialect: Dialect = read(text)?;
    let switches = PyDict::new(py);
    for (name, value) in dialect.switches() {
        switches.set_item(name, value)?;
    }
    Ok((dialect.to_string(), switches, dialect.conforms()))
}

/// What a rate's text means: the text in full, requests a second, burst, what it says, and the status.
#[pyfunction]
pub fn read_rate(text: &str) -> PyResult<(String, f64, u64, String, u16)> {
    let rate: Rate = read(text)?;
    Ok((
        rate.to_string(),
        rate.per_second,
        rate.burst,
        rate.says.to_string(),
        rate.status,
    ))
}

/// The rules that a text holds, each in its shortest form. ValueError for one that is wrong.
#[pyfunction]
pub fn read_rules(text: &str) -> PyResult<Vec<String>> {
    Ok(rules(text)?.iter().map(ToString::to_string).collect())
}

pub(super) fn rules(text: &str) -> PyResult<Vec<Rule>> {
    read_all(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

pub(super) fn read<T: std::str::FromStr<Err = String>>(text: &str) -> PyResult<T> {
    text.parse().map_err(PyValueError::new_err)
}

fn rows((kind, value): &(String, Bound<'_, PyAny>)) -> PyResult<Which> {
    match kind.as_str() {
        "first" => Ok(Which::First(value.extract()?)),
        "last" => Ok(Which::Last(value.extract()?)),
        _ => Ok(Which::Ids(value.extract()?)),
    }
}

fn describe<'py>(py: Python<'py>, entry: &Entry) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("number", entry.number)?;
    let at = entry.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    fields.set_item("at", at.as_secs_f64())?;
    fields.set_item("method", entry.method.as_str())?;
    fields.set_item("path", &entry.path)?;
    fields.set_item("route", entry.target.route().name())?;
    fields.set_item("user", entry.target.user())?;
    fields.set_item("message", entry.target.message())?;
    fields.set_item("offset", entry.page.map(|page| page.offset))?;
    fields.set_item("limit", entry.page.map(|page| page.limit))?;
    fields.set_item("attempt", entry.attempt)?;
    fields.set_item("status", entry.status)?;
    fields.set_item("rows", entry.served.as_ref().map(|served| served.rows))?;
    let faults: Vec<&str> = entry.faults.iter().map(AsRef::as_ref).collect();
    fields.set_item("faults", faults)?;
    fields.set_item("unexpected", entry.unexpected)?;
    Ok(fields)
}
