//! A walk as both APIs read it: by item, by page, or as an Arrow stream.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::arguments::NativePrivacy;
use super::arrow::{Batches, export_schema, stream};
use super::convert::errors::to_python;
use super::convert::{self, items, walked_page};
use super::runtime::{run, run_often};
use super::telemetry::CallObserver;
use backread_core::api::Resource;
use backread_core::arrow::batches::schema;
use backread_core::lock;
use backread_core::walk::{Walk, WalkedPage};

// Pages taken from the walk at once.
const AT_ONCE: usize = 32;
// Items are created without releasing the GIL: other threads wait for this many, or for one page's.
const MOST_ROWS: usize = 2_048;
// Nor from more JSON than this, in bytes.
const MOST_JSON: usize = 8 * 1024 * 1024;

/// Takes the next pages to create items from; empty if there are none.
fn take_pages(ready: &Mutex<VecDeque<WalkedPage>>) -> Vec<WalkedPage> {
    let mut ready = lock(ready);
    let (mut taken, mut rows, mut json) = (Vec::new(), 0, 0);
    while let Some(page) = ready.front()
        && (taken.is_empty()
            || rows + page.rows.len() <= MOST_ROWS && json + page.size() <= MOST_JSON)
    {
        rows += page.rows.len();
        json += page.size();
        taken.extend(ready.pop_front());
    }
    taken
}

#[pyclass(frozen, name = "Walk", module = "backread._backread")]
pub struct NativeWalk {
    walk: Arc<Walk>,
    resource: Resource,
    /// Pages taken from the walk whose items are not created yet.
    ready: Arc<Mutex<VecDeque<WalkedPage>>>,
    /// An error to raise once the items before it have been returned.
    pending: Arc<Mutex<Option<PyErr>>>,
    /// The error that ended an Arrow stream, whose reader gets only its text.
    failed: Arc<Mutex<Option<PyErr>>>,
    observer: CallObserver,
}

impl NativeWalk {
    pub fn new(walk: Walk, resource: Resource, observer: CallObserver) -> Self {
        Self {
            walk: Arc::new(walk),
            resource,
            ready: Arc::default(),
            pending: Arc::default(),
            failed: Arc::default(),
            observer,
        }
    }

    // Call before locking: in a forked child, the thread that holds the lock may not exist.
    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        let checked = self.walk.prefetch.check_process();
        checked.map_err(|error| to_python(py, &error))
    }
}

#[pymethods]
impl NativeWalk {
    #[getter]
    fn report(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        convert::report(py, &self.walk.report.get()).map(Bound::unbind)
    }

    /// The items of the pages that are ready, or None at the end.
    fn next_items(&self, py: Python<'_>, as_dict: bool, blocking: bool) -> PyResult<Py<PyAny>> {
        self.check_process(py)?;
        if let Some(error) = lock(&self.pending).take() {
            return Err(error);
        }
        let (walk, ready) = (Arc::clone(&self.walk), Arc::clone(&self.ready));
        let pending = Arc::clone(&self.pending);
        let next = async move {
            let taken = take_pages(&ready);
            if !taken.is_empty() {
                return Ok(taken);
            }
            let pages = walk.prefetch.next_ready(AT_ONCE).await?;
            lock(&ready).extend(pages);
            Ok(take_pages(&ready))
        };
        run_often(py, blocking, &self.observer, next, move |py, pages| {
            if pages.is_empty() {
                return Ok(py.None());
            }
            let (made, error) = items(py, &pages, as_dict)?;
            match error {
                Some(error) if made.is_empty() => return Err(error),
                error => *lock(&pending) = error,
            }
            Ok(made.into_any().unbind())
        })
    }

    /// The ids of the pages that are ready, in the list's order, None for a row without one; None at
    /// the end.
    fn next_ids(&self, py: Python<'_>, blocking: bool) -> PyResult<Py<PyAny>> {
        self.check_process(py)?;
        let walk = Arc::clone(&self.walk);
        let next = async move { walk.prefetch.next_ready(AT_ONCE).await };
        run(py, blocking, &self.observer, next, move |py, pages| {
            let ids: Vec<Option<i64>> = pages
                .iter()
                .flat_map(|page| page.rows.iter().map(|row| row.id))
                .collect();
            if pages.is_empty() {
                return Ok(py.None());
            }
            Ok(ids.into_pyobject(py)?.unbind())
        })
    }

    /// The id of the user whose messages the next page holds (None for users), and the page; None at
    /// the end.
    fn next_page(&self, py: Python<'_>, as_dict: bool, blocking: bool) -> PyResult<Py<PyAny>> {
        self.check_process(py)?;
        let walk = Arc::clone(&self.walk);
        let next = async move { walk.prefetch.next().await };
        run(py, blocking, &self.observer, next, move |py, page| {
            let Some(page) = page else {
                return Ok(py.None());
            };
            let items = walked_page(py, &page, as_dict)?;
            Ok((page.user_id, items).into_pyobject(py)?.into_any().unbind())
        })
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        if self.check_process(py).is_err() {
            return Ok(());
        }
        self.walk.prefetch.stop();
        lock(&self.ready).clear();
        let told = self.observer.tell(py);
        self.observer.end(py, None);
        told
    }

    /// The error that ended the Arrow stream, if one did.
    fn take_error(&self) -> Option<PyErr> {
        lock(&self.failed).take()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &schema(self.resource))
    }

    /// The rest of the walk, without what `privacy` keeps out; `read_ahead` reads the first part of
    /// it before returning. `on_end` is called before the consumer learns that the stream ended.
    #[pyo3(signature = (read_ahead, privacy=None, on_end=None))]
    fn arrow_stream<'py>(
        &self,
        py: Python<'py>,
        read_ahead: bool,
        privacy: Option<&NativePrivacy>,
        on_end: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let mut batches = Batches::new(
            Arc::clone(&self.walk),
            self.resource,
            Arc::clone(&self.failed),
            self.observer.clone(),
            privacy.map(|privacy| Arc::clone(&privacy.0)),
            on_end,
        );
        if read_ahead {
            batches.read_ahead(py)?;
        }
        stream(py, batches)
    }
}
