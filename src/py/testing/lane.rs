//! Lanes as a Python class. Dialects, rates and rules are passed as text in the mock's grammar.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use pythonize::pythonize;

use super::arguments::Id;
use super::world::World;
use crate::py::testing::clock::Clock;
use backread_mock::admin::read_drift;
use backread_mock::audit::AuditError;
use backread_mock::dialect::Dialect;
use backread_mock::faults::fault::Fault;
use backread_mock::faults::rate::Rate;
use backread_mock::faults::rule::{Rule, read_rules};
use backread_mock::lane::Lane;

/// One lane of a mock server, selected by its bearer token.
#[pyclass(frozen, module = "backread._backread")]
#[derive(Debug)]
pub struct NativeLane(pub Arc<Lane>);

#[pymethods]
impl NativeLane {
    /// Its name in the inspector.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The secret that its requests carry.
    #[getter]
    fn secret(&self) -> &str {
        &self.0.secret
    }

    /// The seed of all its random numbers.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    /// The rows that it serves.
    #[getter]
    fn world(&self) -> World {
        World(Arc::clone(&self.0.world))
    }

    /// The clock for its delays and its clients.
    #[getter]
    fn clock(&self) -> Clock {
        Clock(self.0.clock.clone())
    }

    /// The dialect as text.
    #[getter]
    fn dialect(&self) -> String {
        self.0.dialect().to_string()
    }

    /// Switches to another dialect. Raises ValueError for an invalid text.
    fn set_dialect(&self, text: &str) -> PyResult<()> {
        self.0.set_dialect(read(text)?);
        Ok(())
    }

    /// The rate limit as text, or None.
    #[getter]
    fn rate(&self) -> Option<String> {
        self.0.rate().map(|rate| rate.to_string())
    }

    /// Limits the rate; None for no limit. Raises ValueError for an invalid text.
    #[pyo3(signature = (text))]
    fn set_rate(&self, text: Option<&str>) -> PyResult<()> {
        self.0.set_rate(text.map(read).transpose()?);
        Ok(())
    }

    /// The fault rules in their order, each with how often it fired.
    fn rules(&self) -> Vec<(String, u64)> {
        let active = self.0.rules.list().into_iter();
        active
            .map(|(_, rule, fired)| (rule.to_string(), fired))
            .collect()
    }

    /// Adds rules after the existing ones. Raises ValueError for an invalid one, and then adds none.
    fn add_rules(&self, text: &str) -> PyResult<()> {
        self.0.rules.add(rules(text)?);
        Ok(())
    }

    /// Replaces all rules. Raises ValueError for an invalid one, and then changes nothing.
    fn set_rules(&self, text: &str) -> PyResult<()> {
        let rules = rules(text)?;
        self.0.rules.clear();
        self.0.rules.add(rules);
        Ok(())
    }

    /// The rules that never fired, except those with a probability, and the pending changes.
    fn unfired(&self) -> Vec<String> {
        let rules = self.0.rules.list().into_iter();
        rules
            .filter(|(_, rule, fired)| *fired == 0 && rule.p.is_none())
            .map(|(_, rule, _)| rule.to_string())
            .chain(self.0.drifts.list())
            .collect()
    }

    /// Adds a change of the world between two pages, as JSON. Raises ValueError for a wrong one.
    fn drift(&self, change: &str) -> PyResult<()> {
        let drift = read_drift(change).map_err(PyValueError::new_err)?;
        self.0.drifts.add(drift);
        Ok(())
    }

    /// The number of pending changes between pages.
    #[getter]
    fn drifts_waiting(&self) -> usize {
        self.0.drifts.waiting()
    }

    /// Compares a reader's ids with the rows that existed.
    ///
    /// Returns a dict with `missing`, `repeated`, `unexpected` and `expected`. Raises KeyError for the
    /// messages of a user who never existed, RuntimeError if the journal has dropped requests.
    #[pyo3(signature = (ids, user=None))]
    fn audit<'py>(
        &self,
        py: Python<'py>,
        ids: Vec<u64>,
        user: Option<Id>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let user = user.map(|user| user.0);
        let audit = py.detach(|| self.0.audit(user, &ids));
        let audit = audit.map_err(|error| match error {
            AuditError::NoUser { .. } => PyKeyError::new_err(error.to_string()),
            AuditError::Forgotten { .. } => PyRuntimeError::new_err(error.to_string()),
        })?;
        Ok(pythonize(py, &audit)?)
    }

    /// The number of the journal's last entry; 0 before the first.
    #[getter]
    fn last_number(&self) -> u64 {
        self.0.journal.last_number()
    }

    /// The first `most` entries of the journal numbered above `after`, as dicts, and whether some
    /// after that number were already dropped.
    #[pyo3(signature = (after=0, most=None))]
    fn journal<'py>(
        &self,
        py: Python<'py>,
        after: u64,
        most: Option<usize>,
    ) -> PyResult<(Bound<'py, PyAny>, bool)> {
        let (entries, forgotten) = self.0.journal.since(after, most.unwrap_or(usize::MAX));
        Ok((pythonize(py, &entries)?, forgotten))
    }

    /// The last thousand requests numbered above `after` that no client should have sent, as dicts,
    /// even if the journal has dropped them.
    fn unexpected<'py>(&self, py: Python<'py>, after: u64) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.0.journal.unexpected(after))?)
    }

    /// The number of requests by route.
    fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.journal.routes()
    }

    /// The number of requests by response status.
    fn statuses(&self) -> BTreeMap<u16, u64> {
        self.0.journal.statuses()
    }

    /// Clears the journal, the counts and the attempts; audits start from now.
    fn forget(&self) {
        self.0.forget();
    }

    fn __repr__(&self) -> String {
        format!("NativeLane({})", self.0.name)
    }
}

/// Parses a dialect: its shortest text, every switch, and whether all responses conform to the
/// documented API. Raises ValueError for an invalid text.
#[pyfunction]
pub fn read_dialect<'py>(
    py: Python<'py>,
    text: &str,
) -> PyResult<(String, Bound<'py, PyDict>, bool)> {
    let dialect: Dialect = read(text)?;
    let switches = dialect.switches().into_py_dict(py)?;
    Ok((dialect.to_string(), switches, dialect.conforms()))
}

/// Parses a rate: the full text, requests per second, burst, what responses say, and the status.
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

/// Parses a fault, and returns its shortest form. Raises ValueError for an invalid one.
#[pyfunction]
pub fn read_fault(text: &str) -> PyResult<String> {
    let fault: Fault = read(text)?;
    Ok(fault.to_string())
}

fn rules(text: &str) -> PyResult<Vec<Rule>> {
    read_rules(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn read<T: FromStr<Err: Display>>(text: &str) -> PyResult<T> {
    text.parse()
        .map_err(|error: T::Err| PyValueError::new_err(error.to_string()))
}
