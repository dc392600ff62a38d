//! Awaits of calls that programs make by the thousand at once: each is a task of the workers, aborted
//! when its awaitable is dropped, and tasks that end share a wake-up of the event loop.
//!
//! pyo3-async-runtimes wakes the loop for each task, from a thread that takes the GIL for it.

use std::cell::RefCell;
use std::mem;
use std::sync::{Arc, Mutex, Weak};

use pyo3::exceptions::PyStopIteration;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use super::{
    AbortedWhenDropped, Convert, OnShutdown, ProcessRuntime, ShutdownGuard, lock, running_loop,
};
use crate::py::convert::errors::to_python;
use crate::py::telemetry::CallObserver;
use backread_core::error::{Error, ErrorKind};

thread_local! {
    /// What the event loop of this thread is to do, while calls are in progress.
    static QUEUE: RefCell<Weak<Queue>> = const { RefCell::new(Weak::new()) };
}

/// Starts an operation; returns an awaitable of its value, for the running event loop.
pub fn start<T: Send + 'static>(
    py: Python<'_>,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    convert: impl Convert<T>,
) -> PyResult<Py<PyAny>> {
    let guard = ShutdownGuard::enter(py, OnShutdown::Park)?;
    let queue = Queue::of(running_loop(py)?, &guard);
    queue.remind(observer);
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
pub struct Queue {
    event_loop: Py<PyAny>,
    runtime: Arc<ProcessRuntime>,
    works: Mutex<Vec<Work>>,
}

impl Queue {
    pub fn of(event_loop: Bound<'_, PyAny>, guard: &ShutdownGuard) -> Arc<Self> {
        if let Some(last) = QUEUE.with_borrow(Weak::upgrade)
            && last.event_loop.is(&event_loop)
            // After a fork, the last one belongs to the parent.
            && Arc::ptr_eq(&last.runtime, &guard.0)
        {
            return last;
        }
        let new = Arc::new(Self {
            event_loop: event_loop.unbind(),
            runtime: Arc::clone(&guard.0),
            works: Mutex::default(),
        });
        QUEUE.set(Arc::downgrade(&new));
        new
    }

    /// Has an observer report what it has to say before its call ends.
    pub fn remind(self: &Arc<Self>, observer: &CallObserver) {
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
