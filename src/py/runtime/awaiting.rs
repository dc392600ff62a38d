//! Awaited calls: each is a task of the workers, aborted when its awaitable is dropped.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::PyTraverseError;
use pyo3::exceptions::PyStopIteration;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use tokio::task::AbortHandle;

use super::event_loop::{Completion, completion};
use super::{Convert, OnShutdown, ShutdownGuard, running_runtimes};
use crate::py::convert::errors::to_python;
use crate::py::telemetry::CallObserver;
use backread_core::error::{Error, ErrorKind};
use backread_core::process;

/// Creates what awaited calls need; see `crate::py::prepare`.
pub fn prepare(py: Python<'_>) {
    py.get_type::<Call>();
}

/// Converts an operation's value to a Python object, or raises its error.
type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Starts an operation; returns an awaitable of its value, for the running event loop.
pub fn start<T: Send + 'static>(
    py: Python<'_>,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    convert: impl Convert<T>,
) -> PyResult<Py<PyAny>> {
    let runtimes = running_runtimes(py, OnShutdown::Park)?;
    let (future, completion) = completion(py, &runtimes)?;
    observer.remind_with(completion.reminder());
    let watched = observer.clone();
    let deliver = move |py: Python<'_>, outcome: Result<T, Error>| {
        let outcome = outcome.map_err(|error| to_python(py, &error));
        watched.deliver(py, outcome, convert)
    };
    let outcome = Arc::new(Mutex::new(None));
    let task = runtimes
        .handle
        .spawn(run(operation, deliver, Arc::clone(&outcome), completion));
    let call = Call {
        steps: future.try_iter()?.unbind(),
        outcome,
        task: task.abort_handle(),
        process: process::id(),
    };
    Ok(Py::new(py, call)?.into_any())
}

async fn run<T: Send + 'static>(
    operation: impl Future<Output = Result<T, Error>>,
    deliver: impl FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    place: Arc<Mutex<Option<Outcome>>>,
    // Notifies the event loop when dropped, even if the task panics.
    _ending: Completion,
) {
    let outcome = operation.await;
    let outcome: Outcome = Box::new(move |py| deliver(py, outcome));
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
}

/// A call in progress. Cancelling the task that awaits it drops it, which aborts its request.
#[pyclass(frozen, module = "backread._backread")]
struct Call {
    /// The iterator of the future that the event loop waits for; its value is None.
    steps: Py<PyIterator>,
    outcome: Arc<Mutex<Option<Outcome>>>,
    task: AbortHandle,
    process: u32,
}

#[pymethods]
impl Call {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.process != process::id() {
            return Err(to_python(py, &Error::new(ErrorKind::OtherProcess)));
        }
        let _guard = ShutdownGuard::enter(py, OnShutdown::Park)?;
        let mut steps = self.steps.bind(py).clone();
        if let Some(step) = steps.next() {
            return step.map(Bound::unbind);
        }
        let outcome = self
            .outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match outcome {
            Some(outcome) => Err(PyStopIteration::new_err((outcome(py)?,))),
            None => Err(to_python(py, &Error::new(ErrorKind::Aborted))),
        }
    }

    // A task that is no longer awaited is a cycle: future, task, coroutine, this call, future.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.steps)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // After a fork, the task belongs to the parent.
        if !self.task.is_finished() && self.process == process::id() {
            self.task.abort();
        }
    }
}
