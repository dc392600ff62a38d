//! One run of a sync, batch by batch, and the state it starts from.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arguments::NativePrivacy;
use super::arrow::{ArrowTable, stream_of};
use super::convert;
use super::runtime::{OnShutdown, block};
use super::telemetry::CallObserver;
use backread_core::api::{Limit, Natural};
use backread_core::arrow::columns::Rows;
use backread_core::client::Client;
use backread_core::privacy::Privacy;
use backread_core::sync::{
    Audit, Batch, Evidence, HalfRead, Known, Mode, RunEvidence, RunLimits, RunOptions, SyncRun,
};

/// How a run reads, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SyncOptions<'py> {
    mode: String,
    max_staleness: Option<f64>,
    #[pyo3(default)]
    users: Option<Bound<'py, PyAny>>,
}

/// What a run may spend, and what is replaced in its rows, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SyncLimits {
    max_requests: Option<u64>,
    #[pyo3(default)]
    max_seconds: Option<f64>,
    #[pyo3(default)]
    privacy: Option<Py<NativePrivacy>>,
}

impl SyncLimits {
    fn run_limits(&self) -> PyResult<RunLimits> {
        Ok(RunLimits {
            max_requests: self.max_requests,
            max_time: seconds("max_seconds", self.max_seconds)?,
        })
    }

    fn privacy(&self) -> Option<Arc<Privacy>> {
        self.privacy
            .as_ref()
            .map(|privacy| Arc::clone(&privacy.get().0))
    }
}

#[pyclass(frozen, name = "SyncRun", module = "backread._backread")]
pub struct NativeSyncRun {
    run: Arc<SyncRun>,
    observer: CallObserver,
}

impl NativeSyncRun {
    pub fn new(
        client: Client,
        observer: CallObserver,
        known: &Bound<'_, PyAny>,
        options: SyncOptions<'_>,
        limits: &SyncLimits,
    ) -> PyResult<Self> {
        let mode = match options.mode.as_str() {
            "incremental" => Mode::Incremental,
            "full" => Mode::Full,
            "quick" => Mode::Quick,
            other => {
                return Err(PyValueError::new_err(format!(
                    "no such mode: {other:?}; there are incremental, full and quick"
                )));
            }
        };
        let run = RunOptions {
            mode,
            max_staleness: seconds("max_staleness", options.max_staleness)?,
            limits: limits.run_limits()?,
        };
        let mut known = read_known(known)?;
        if let Some(users) = options.users {
            let ids = read_ids(&users, "user_id")?;
            let ids = ids.filter_map(|id| Natural::new("user_id", id).ok());
            known.given = Some(ids.collect());
        }
        Ok(Self {
            run: Arc::new(SyncRun::new(&client, known, run, limits.privacy())),
            observer,
        })
    }

    /// Fetches rows by id, named by the columns `resource`, `user_id` and `id`.
    pub fn fetch_rows(
        client: Client,
        observer: CallObserver,
        candidates: &Bound<'_, PyAny>,
        limits: &SyncLimits,
    ) -> PyResult<Self> {
        let keys = rows_of(candidates, |rows| rows.keys())?;
        let run = SyncRun::fetch(&client, keys, limits.run_limits()?, limits.privacy());
        Ok(Self {
            run: Arc::new(run),
            observer,
        })
    }
}

fn seconds(name: &str, given: Option<f64>) -> PyResult<Option<Duration>> {
    given
        .map(Duration::try_from_secs_f64)
        .transpose()
        .map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

/// The ids of a column, without nulls.
fn read_ids(table: &Bound<'_, PyAny>, column: &str) -> PyResult<impl Iterator<Item = i64>> {
    Ok(rows_of(table, |rows| rows.ids(column))?
        .into_iter()
        .flatten())
}

/// What `read` takes from each batch of a table.
fn rows_of<T>(
    table: &Bound<'_, PyAny>,
    read: impl Fn(Rows<'_>) -> Result<Vec<T>, ArrowError>,
) -> PyResult<Vec<T>> {
    let mut rows = Vec::new();
    for batch in batches(table)? {
        rows.extend(read(Rows(&batch)).map_err(misfit)?);
    }
    Ok(rows)
}

/// All batches of an Arrow stream; empty for None.
fn batches(table: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    if table.is_none() {
        return Ok(Vec::new());
    }
    let batches = stream_of(table)?;
    // The producer of the stream may need the GIL in another thread.
    table
        .py()
        .detach(|| batches.collect::<Result<_, _>>())
        .map_err(misfit)
}

fn misfit(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the mirror's tables cannot be read: {error}"))
}

/// The content of the mirror's tables, from the attributes of an object; each may be None.
fn read_known(given: &Bound<'_, PyAny>) -> PyResult<Known> {
    let mut known = Known::default();
    let lists = rows_of(&given.getattr("lists")?, |rows| rows.lists())?;
    lists.into_iter().for_each(|list| known.take(list));
    let users_state: Option<String> = given.getattr("users_state")?.extract()?;
    known.users_half_read = users_state.as_deref().and_then(HalfRead::stored);
    let audit: Option<String> = given.getattr("audit")?.extract()?;
    known.audit = audit.as_deref().and_then(Audit::stored);
    let forgotten = given.getattr("forgotten")?;
    known.forgotten.extend(read_ids(&forgotten, "user_id")?);
    let held = rows_of(&given.getattr("held")?, |rows| {
        Ok(rows
            .ids("user_id")?
            .into_iter()
            .zip(rows.ids("id")?)
            .collect())
    })?;
    for (user_id, id) in held {
        if let Some(id) = id {
            known.hold(user_id, id);
        }
    }
    let users = given.getattr("users")?;
    if !users.is_none() {
        known.users = Some(rows_of(&users, |rows| rows.users())?);
    }
    // A profile that another version wrote may not fit, and is then not used.
    let largest_page = given.getattr("profile")?.get_item("largest_page").ok();
    known.largest_page = largest_page
        .and_then(|rows| rows.extract().ok())
        .and_then(Limit::of);
    Ok(known)
}

/// What the runs of a mirror, the oldest first, have shown of the hints. A run is (users, moved,
/// announced, by operators, missed, whether it counts, whether it begins anew).
#[pyfunction]
pub fn hints_evidence(runs: Vec<(u64, u64, u64, u64, u64, bool, bool)>) -> HintsEvidence {
    let evidence = Evidence::of(runs.into_iter().map(
        |(users, moved, announced, by_operators, missed, counts, begins_anew)| RunEvidence {
            users,
            moved,
            announced,
            by_operators,
            missed,
            counts,
            begins_anew,
        },
    ));
    HintsEvidence {
        is_trusted: evidence.is_trusted(),
        announced: evidence.announced,
        by_operators: evidence.by_operators,
        has_too_many_misses: evidence.has_too_many_misses(),
        needed: evidence.needed(),
        needed_by_operators: evidence.needed_by_operators(),
        runs: evidence.runs,
    }
}

/// Whether hints are trusted, and what they lack.
#[pyclass(frozen, get_all, module = "backread._backread")]
pub struct HintsEvidence {
    is_trusted: bool,
    announced: u64,
    by_operators: u64,
    has_too_many_misses: bool,
    needed: f64,
    needed_by_operators: f64,
    runs: usize,
}

#[pymethods]
impl NativeSyncRun {
    #[getter]
    fn requests(&self) -> u64 {
        self.run.client.sent()
    }

    #[getter]
    fn repaired_text(&self) -> u64 {
        self.run.client.repaired_text()
    }

    #[getter]
    fn users_total(&self) -> Option<i64> {
        self.run.progress().users_total
    }

    #[getter]
    fn ended_early(&self) -> bool {
        self.run.budget.was_spent()
    }

    #[getter]
    fn stopped_by(&self, py: Python<'_>) -> Option<PyErr> {
        self.run
            .budget
            .stopped_by()
            .map(|error| convert::errors::to_python(py, &error))
    }

    #[getter]
    fn service_date(&self) -> Option<SystemTime> {
        self.run.client.service_date()
    }

    fn progress(&self) -> SyncPace {
        let progress = self.run.progress();
        SyncPace {
            requests: progress.requests,
            users_total: progress.users_total,
            lists_total: progress.lists_total,
            lists_done: progress.lists_done,
            outage_seconds: progress.outage_seconds,
        }
    }

    /// The next batch, or None at the end.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<SyncBatch>> {
        let run_under_way = Arc::clone(&self.run);
        let next = async move { run_under_way.next().await };
        // The caller has a database open.
        block(py, OnShutdown::Park, &self.observer, next, |py, batch| {
            batch.map(|batch| SyncBatch::new(py, batch)).transpose()
        })
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.run.stop();
        let told = self.observer.tell(py);
        self.observer.end(py, None);
        told
    }
}

/// How far a run has come.
#[pyclass(frozen, get_all, module = "backread._backread")]
pub struct SyncPace {
    requests: u64,
    users_total: Option<i64>,
    lists_total: Option<u64>,
    lists_done: u64,
    outage_seconds: f64,
}

/// The content of one transaction; a table without rows is None.
#[pyclass(frozen, get_all, module = "backread._backread")]
pub struct SyncBatch {
    users: Option<ArrowTable>,
    messages: Option<ArrowTable>,
    lists: Option<ArrowTable>,
    rejects: Option<ArrowTable>,
    gone: Option<ArrowTable>,
    users_state: Option<String>,
    users_report: Option<Py<PyAny>>,
    /// The sample of a quick run as JSON, and the numbers of lists drawn and skipped.
    audit: Option<(String, u64, u64)>,
}

impl SyncBatch {
    fn new(py: Python<'_>, batch: Batch) -> PyResult<Self> {
        let report = batch.users_report.as_deref();
        let report = report.map(|report| convert::report(py, report).map(Bound::unbind));
        Ok(Self {
            users: batch.users.map(ArrowTable),
            messages: batch.messages.map(ArrowTable),
            lists: batch.lists.map(ArrowTable),
            rejects: batch.rejects.map(ArrowTable),
            gone: batch.gone.map(ArrowTable),
            users_state: batch.users_state,
            users_report: report.transpose()?,
            audit: batch
                .audit
                .and_then(|audit| Some((audit.to_json()?, audit.drawn, audit.skipped))),
        })
    }
}
