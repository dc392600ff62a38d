//! Awaits through pyo3-async-runtimes, on this process's own runtime.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pyo3::prelude::*;
use pyo3_async_runtimes::TaskLocals;
use pyo3_async_runtimes::generic::{self, ContextExt, future_into_py_with_locals};
use tokio::task::{JoinError, JoinHandle};

use super::awaiting::remind;
use super::{Convert, OnShutdown, ShutdownGuard, existing_runtime, running_loop};
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
    let _guard = ShutdownGuard::enter(py, OnShutdown::Park)?;
    let event_loop = running_loop(py)?;
    remind(event_loop.clone(), observer);
    let observer = observer.clone();
    let value = async move {
        Ok(Delivered {
            outcome: operation.await,
            observer,
            convert,
        })
    };
    let locals = TaskLocals::new(event_loop);
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
        let made = self.observer.deliver_in_context(py, outcome, self.convert);
        made.map(|made| made.into_bound(py))
    }
}

/// The runtime of this process, which a forked child replaces by its own.
struct Workers;

impl generic::Runtime for Workers {
    type JoinError = Lost;
    type JoinHandle = Joined;

    fn spawn<F: Future<Output = ()> + Send + 'static>(task: F) -> Joined {
        Joined(existing_runtime().map(|runtime| runtime.handle.spawn(task)))
    }

    fn spawn_blocking<F: FnOnce() + Send + 'static>(task: F) -> Joined {
        Joined(existing_runtime().map(|runtime| runtime.handle.spawn_blocking(task)))
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

/// A task; `None` if the runtime has ended.
struct Joined(Option<JoinHandle<()>>);

impl Future for Joined {
    type Output = Result<(), Lost>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Some(task) => Pin::new(task)
                .poll(context)
                .map_err(|error| Lost(Some(error))),
            None => Poll::Ready(Err(Lost(None))),
        }
    }
}

/// Why a task gave no value: it panicked, or the runtime has ended.
struct Lost(Option<JoinError>);

impl generic::JoinError for Lost {
    fn is_panic(&self) -> bool {
        self.0.as_ref().is_some_and(JoinError::is_panic)
    }

    fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        match self.0 {
            Some(error) => error.into_panic(),
            None => Box::new("the runtime has ended"),
        }
    }
}
