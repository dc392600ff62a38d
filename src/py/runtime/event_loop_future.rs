//! Awaits through pyo3-async-runtimes, on this process's own runtime.

use std::pin::Pin;

use pyo3::prelude::*;
use pyo3_async_runtimes::TaskLocals;
use pyo3_async_runtimes::generic::{ContextExt, Runtime, future_into_py_with_locals};
use tokio::task::{JoinError, JoinHandle};

use super::awaiting::Queue;
use super::{Convert, OnShutdown, ShutdownGuard, running_loop};
use crate::py::convert::errors::to_python;
use crate::py::telemetry::CallObserver;
use backread_core::error::Error;

/// Starts an operation; returns an `asyncio.Future` of its value. Cancelling it aborts the operation.
pub fn start<T: Send + 'static>(
    py: Python<'_>,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    convert: impl Convert<T>,
) -> PyResult<Py<PyAny>> {
    let guard = ShutdownGuard::enter(py, OnShutdown::Park)?;
    let event_loop = running_loop(py)?;
    Queue::of(event_loop.clone(), &guard).remind(observer);
    let observer = observer.clone();
    let value = async move {
        Ok(Delivered {
            outcome: operation.await,
            observer,
            convert,
        })
    };
    let locals = TaskLocals::new(event_loop);
    let _entered = guard.0.handle.enter();
    future_into_py_with_locals::<Workers, _, _>(py, locals, value).map(Bound::unbind)
}

/// The outcome of an operation, which becomes a Python object in a thread that may wait for the GIL.
struct Delivered<T, C> {
    outcome: Result<T, Error>,
    observer: CallObserver,
    convert: C,
}

impl<'py, T, C: Convert<T>> IntoPyObject<'py> for Delivered<T, C> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let outcome = self.outcome.map_err(|error| to_python(py, &error));
        let told = self.observer.tell_in_context(py);
        let made = self.observer.deliver(py, told, outcome, self.convert);
        made.map(|made| made.into_bound(py))
    }
}

/// The runtime of this process, in which all of these are called.
struct Workers;

impl Runtime for Workers {
    type JoinError = JoinError;
    type JoinHandle = JoinHandle<()>;

    fn spawn<F: Future<Output = ()> + Send + 'static>(task: F) -> JoinHandle<()> {
        tokio::spawn(task)
    }

    fn spawn_blocking<F: FnOnce() + Send + 'static>(task: F) -> JoinHandle<()> {
        tokio::task::spawn_blocking(task)
    }
}

// Nothing that runs here calls back into an event loop, so tasks need not know theirs.
impl ContextExt for Workers {
    fn scope<F, R>(_: TaskLocals, task: F) -> Pin<Box<dyn Future<Output = R> + Send>>
    where
        F: Future<Output = R> + Send + 'static,
    {
        Box::pin(task)
    }

    fn get_task_locals() -> Option<TaskLocals> {
        None
    }
}
