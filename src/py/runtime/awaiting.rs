//! Awaits: of most calls through pyo3-async-runtimes, on this process's own runtime, and of those that
//! programs make by the thousand at once by tasks of its workers.
//!
//! pyo3-async-runtimes wakes the event loop for each task, from a thread that takes the GIL for it; our
//! tasks that end share a wake-up.

use std::cell::RefCell;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyIterator;
use pyo3_async_runtimes::TaskLocals;
use pyo3_async_runtimes::generic::{ContextExt, Runtime, future_into_py_with_locals};
use tokio::task::{JoinError, JoinHandle};

use super::{AbortedWhenDropped, OnShutdown, ProcessRuntime, ShutdownGuard, block};
use crate::py::convert::errors::to_python;
use crate::py::forks::once;
use crate::py::telemetry::CallObserver;
use backread_core::error::{Error, ErrorKind};
use backread_core::lock;

static GET_RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

thread_local! {
    /// What the event loop of this thread is to do, while calls are in progress.
    static QUEUE: RefCell<Weak<Queue>> = const { RefCell::new(Weak::new()) };
}

/// Converts a value of the core to a Python object, under the GIL.
pub trait Convert<T>: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static {}

impl<T, C> Convert<T> for C where C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static {}

/// Runs an operation of the core: waits for its value if `blocking`, otherwise returns an
/// `asyncio.Future` of it. Cancelling that aborts the operation.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    blocking: bool,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    convert: impl Convert<T>,
) -> PyResult<Py<PyAny>> {
    if blocking {
        return block(py, OnShutdown::SystemExit, observer, operation, convert);
    }
    let (guard, queue) = enter(py, observer)?;
    let observer = observer.clone();
    let value = async move {
        Ok(Delivered {
            outcome: operation.await,
            observer,
            convert,
        })
    };
    let locals = TaskLocals::new(queue.event_loop.bind(py).clone());
    let _entered = guard.0.handle.enter();
    future_into_py_with_locals::<Workers, _, _>(py, locals, value).map(Bound::unbind)
}

/// Like `run`, for calls that programs make by the thousand at once: their awaits share wake-ups of
/// the event loop.
pub fn run_often<T: Send + 'static>(
    py: Python<'_>,
    blocking: bool,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    convert: impl Convert<T>,
) -> PyResult<Py<PyAny>> {
    if blocking {
        return block(py, OnShutdown::SystemExit, observer, operation, convert);
    }
    let (guard, queue) = enter(py, observer)?;
    let future = queue.event_loop.call_method0(py, "create_future")?;
    let steps = future.bind(py).try_iter()?.unbind();
    let outcome = Arc::new(Mutex::new(None));
    let (observer, place) = (observer.clone(), Arc::clone(&outcome));
    let ending = Ending(Some((future, queue)));
    let task = guard.0.spawn(async move {
        let _ending = ending;
        let outcome = operation.await;
        let deliver: Outcome = Box::new(move |py| {
            let outcome = outcome.map_err(|error| to_python(py, &error));
            observer.deliver(py, observer.tell(py), outcome, convert)
        });
        *lock(&place) = Some(deliver);
    });
    let call = Call {
        steps,
        outcome,
        task,
    };
    Ok(Py::new(py, call)?.into_any())
}

/// Enters the runtime for an await, with the queue of the event loop that runs in this thread.
fn enter(py: Python<'_>, observer: &CallObserver) -> PyResult<(ShutdownGuard, Arc<Queue>)> {
    let guard = ShutdownGuard::enter(py, OnShutdown::Park)?;
    let get_running_loop = once(py, &GET_RUNNING_LOOP, || {
        let asyncio = py.import("asyncio")?;
        asyncio.getattr("get_running_loop").map(Bound::unbind)
    })?;
    let event_loop = get_running_loop.call0(py).map_err(|cause| {
        let error = PyRuntimeError::new_err(
            "an AsyncClient is awaited in a running asyncio event loop, and this thread has none; \
             trio's is not supported: there, make the call of a Client in a thread",
        );
        error.set_cause(py, Some(cause));
        error
    })?;
    let queue = Queue::of(event_loop, &guard);
    queue.remind(observer);
    Ok((guard, queue))
}

/// Creates what awaits need; see `crate::py::prepare`.
pub fn prepare(py: Python<'_>) {
    py.get_type::<Call>();
    py.get_type::<Wake>();
}

/// Converts an operation's value to a Python object, or raises its error.
type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// A call in progress. Cancelling the task that awaits it drops it.
#[pyclass(frozen, module = "backread._backread")]
struct Call {
    /// The iterator of the future that the event loop waits for; its value is None.
    steps: Py<PyIterator>,
    outcome: Arc<Mutex<Option<Outcome>>>,
    task: AbortedWhenDropped,
}

#[pymethods]
impl Call {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.task.is_inherited() {
            return Err(to_python(py, &Error::new(ErrorKind::OtherProcess)));
        }
        let _guard = ShutdownGuard::enter(py, OnShutdown::Park)?;
        if let Some(step) = self.steps.bind(py).clone().next() {
            return step.map(Bound::unbind);
        }
        let outcome = lock(&self.outcome).take();
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

/// Completes the future of a task when dropped, even if the task panics.
struct Ending(Option<(Py<PyAny>, Arc<Queue>)>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some((future, queue)) = self.0.take() {
            queue.put(move |py| {
                // Fails for a cancelled future.
                let _ = future.call_method1(py, "set_result", (py.None(),));
                Ok(())
            });
        }
    }
}

type Work = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

/// What an event loop is to do in its thread.
struct Queue {
    event_loop: Py<PyAny>,
    runtime: Arc<ProcessRuntime>,
    works: Mutex<Vec<Work>>,
}

impl Queue {
    fn of(event_loop: Py<PyAny>, guard: &ShutdownGuard) -> Arc<Self> {
        if let Some(last) = QUEUE.with_borrow(Weak::upgrade)
            && last.event_loop.is(&event_loop)
            // After a fork, the last one belongs to the parent.
            && Arc::ptr_eq(&last.runtime, &guard.0)
        {
            return last;
        }
        let new = Arc::new(Self {
            event_loop,
            runtime: Arc::clone(&guard.0),
            works: Mutex::default(),
        });
        QUEUE.set(Arc::downgrade(&new));
        new
    }

    /// Has an observer report what it has to say before its call ends.
    fn remind(self: &Arc<Self>, observer: &CallObserver) {
        let queue = Arc::clone(self);
        observer.remind_with(move |observer| queue.put(move |py| observer.tell_in_context(py)));
    }

    fn put(self: &Arc<Self>, work: impl FnOnce(Python<'_>) -> PyResult<()> + Send + 'static) {
        let mut works = lock(&self.works);
        works.push(Box::new(work));
        // Otherwise the loop has been woken already.
        if works.len() == 1 {
            let queue = Arc::clone(self);
            let wake = move || Python::try_attach(|py| queue.wake(py));
            self.runtime.handle.spawn_blocking(wake);
        }
    }

    fn wake(self: Arc<Self>, py: Python<'_>) {
        let wake = (Wake(Arc::clone(&self)),);
        let event_loop = self.event_loop.bind(py);
        if event_loop
            .call_method1("call_soon_threadsafe", wake)
            .is_err()
        {
            // A closed loop has no calls left to complete.
            self.take();
        }
    }

    fn take(&self) -> Vec<Work> {
        mem::take(&mut *lock(&self.works))
    }
}

/// Called by the event loop.
#[pyclass(frozen, module = "backread._backread")]
struct Wake(Arc<Queue>);

#[pymethods]
impl Wake {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        // In an exit handler this fails, and the futures are completed all the same.
        let _guard = ShutdownGuard::enter(py, OnShutdown::Park);
        let done = self.0.take().into_iter().map(|work| work(py));
        done.fold(Ok(()), PyResult::and)
    }
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
