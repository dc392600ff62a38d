//! Notifies an event loop of finished tasks: one wake-up for all since the last.
//!
//! Not by pyo3-async-runtimes, which wakes the loop for each task, from a thread that takes the GIL: with
//! it, 1,000 gathered `users.get` took twice the CPU (2,750 instead of 5,700 per second), and 300 gathered
//! lists of one page 1.6 times (1,500 instead of 2,400).

use std::cell::RefCell;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use super::{OnShutdown, Runtimes, ShutdownGuard, existing_runtimes};
use crate::py::fork_safe_once::{name, once};
use crate::py::telemetry::CallObserver;

static GET_RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

thread_local! {
    /// The event loops that ran on this thread.
    static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

struct Known {
    event_loop: Py<PyWeakrefReference>,
    queue: Weak<CompletionQueue>,
    /// The runtimes of the process that created the queue; a forked child has its own.
    runtimes: Weak<Runtimes>,
}

/// The futures of an event loop whose tasks have finished.
struct CompletionQueue {
    ended: Mutex<Ended>,
    waker: Waker,
}

#[derive(Default)]
struct Ended {
    futures: Vec<Py<PyAny>>,
    /// Observers with something to report before their calls end.
    observers: Vec<CallObserver>,
    /// The loop has been woken and has not emptied this yet.
    woken: bool,
}

/// Notifies the event loop when dropped that a task has finished.
pub struct Completion {
    future: Option<Py<PyAny>>,
    queue: Arc<CompletionQueue>,
}

impl Completion {
    /// Has the event loop report what an observer has collected.
    pub fn reminder(&self) -> impl Fn(CallObserver) + Send + 'static {
        let queue = Arc::downgrade(&self.queue);
        move |observer| {
            if let Some(queue) = queue.upgrade() {
                queue.put(|ended| ended.observers.push(observer));
            }
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.queue.put(|ended| ended.futures.push(future));
        }
    }
}

/// Creates what event loops need; see `crate::py::prepare`.
pub fn prepare(py: Python<'_>) {
    py.get_type::<WakeCallback>();
}

/// A future of the running event loop, and its completion.
pub fn completion<'py>(
    py: Python<'py>,
    runtimes: &Arc<Runtimes>,
) -> PyResult<(Bound<'py, PyAny>, Completion)> {
    let get_running_loop = once(py, &GET_RUNNING_LOOP, || {
        let asyncio = py.import("asyncio")?;
        asyncio.getattr("get_running_loop").map(Bound::unbind)
    })?;
    let event_loop = get_running_loop.bind(py).call0().map_err(|cause| {
        let error = PyRuntimeError::new_err(
            "an AsyncClient is awaited in a running asyncio event loop, and this thread has none; \
             trio's is not supported: there, make the call of a Client in a thread",
        );
        error.set_cause(py, Some(cause));
        error
    })?;
    let queue = match known(&event_loop, runtimes) {
        Some(queue) => queue,
        None => new_queue(&event_loop, runtimes)?,
    };
    let future = event_loop.call_method0(name!(py, "create_future"))?;
    let completion = Completion {
        future: Some(future.clone().unbind()),
        queue,
    };
    Ok((future, completion))
}

fn known(event_loop: &Bound<'_, PyAny>, runtimes: &Arc<Runtimes>) -> Option<Arc<CompletionQueue>> {
    KNOWN.with_borrow(|known| {
        known
            .iter()
            .filter(|known| known.runtimes.as_ptr() == Arc::as_ptr(runtimes))
            .find(|known| {
                let known = known.event_loop.bind(event_loop.py()).upgrade();
                known.is_some_and(|known| known.is(event_loop))
            })
            .and_then(|known| known.queue.upgrade())
    })
}

fn new_queue(
    event_loop: &Bound<'_, PyAny>,
    runtimes: &Arc<Runtimes>,
) -> PyResult<Arc<CompletionQueue>> {
    let weak = PyWeakrefReference::new(event_loop)?.unbind();
    let queue = Waker::of(event_loop, &weak)?;
    let new = Known {
        event_loop: weak,
        queue: Arc::downgrade(&queue),
        runtimes: Arc::downgrade(runtimes),
    };
    KNOWN.with(|known| {
        if let Ok(mut known) = known.try_borrow_mut() {
            known.retain(|known| known.queue.strong_count() > 0);
            known.push(new);
        }
    });
    Ok(queue)
}

impl CompletionQueue {
    fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self {
            ended: Mutex::default(),
            waker,
        })
    }

    fn put(self: &Arc<Self>, add: impl FnOnce(&mut Ended)) {
        let mut ended = self.ended();
        add(&mut ended);
        if !mem::replace(&mut ended.woken, true) {
            drop(ended);
            self.waker.wake(self);
        }
    }

    fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes the futures of finished tasks, on the loop's thread.
    fn empty(&self, py: Python<'_>) -> PyResult<()> {
        self.waker.drain();
        let Ended {
            futures, observers, ..
        } = mem::take(&mut *self.ended());
        for future in futures {
            let future = future.bind(py);
            // A cancelled future is already done.
            if !future.call_method0(name!(py, "done"))?.is_truthy()? {
                future.call_method1(name!(py, "set_result"), (py.None(),))?;
            }
        }
        observers
            .iter()
            .try_for_each(|observer| observer.tell_in_context(py))
    }
}

/// Called by the event loop after a wake-up.
#[pyclass(frozen, module = "backread._backread")]
struct WakeCallback(Arc<CompletionQueue>);

#[pymethods]
impl WakeCallback {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        // In an exit handler this fails, and the futures are completed all the same.
        let _guard = ShutdownGuard::enter(py, OnShutdown::Park);
        self.0.empty(py)
    }
}

/// What wakes an event loop.
enum Waker {
    /// A socket that the loop reads, if it can, so that workers wake it without the GIL. Both ends stay
    /// open until the last worker has dropped the queue.
    #[cfg(unix)]
    Socket {
        read: std::os::unix::net::UnixStream,
        write: std::os::unix::net::UnixStream,
    },
    /// `call_soon_threadsafe`, from a thread that waits for the GIL.
    Call(Py<PyWeakrefReference>),
}

impl Waker {
    #[cfg(unix)]
    fn of(
        event_loop: &Bound<'_, PyAny>,
        weak: &Py<PyWeakrefReference>,
    ) -> PyResult<Arc<CompletionQueue>> {
        use std::os::fd::AsRawFd;

        let py = event_loop.py();
        let (read, write) = std::os::unix::net::UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        let descriptor = read.as_raw_fd();
        let queue = CompletionQueue::new(Self::Socket { read, write });
        let callback = WakeCallback(Arc::clone(&queue));
        let add_reader = event_loop.getattr(name!(py, "add_reader"))?;
        // The loop keeps the context for as long as it lives, and logs are written in it: not in that of
        // the first call.
        let context = py.import("contextvars")?.call_method0("Context")?;
        match context.call_method1("run", (add_reader, descriptor, callback)) {
            Ok(_) => Ok(queue),
            Err(error) if error.is_instance_of::<PyNotImplementedError>(py) => {
                Ok(CompletionQueue::new(Self::Call(weak.clone_ref(py))))
            }
            Err(error) => Err(error),
        }
    }

    #[cfg(not(unix))]
    fn of(
        event_loop: &Bound<'_, PyAny>,
        weak: &Py<PyWeakrefReference>,
    ) -> PyResult<Arc<CompletionQueue>> {
        Ok(CompletionQueue::new(Self::Call(
            weak.clone_ref(event_loop.py()),
        )))
    }

    fn wake(&self, queue: &Arc<CompletionQueue>) {
        match self {
            #[cfg(unix)]
            Self::Socket { write, .. } => {
                use std::io::Write;
                // If the socket is full, the loop has yet to read it and will wake.
                let _ = (&*write).write(&[0]);
            }
            Self::Call(_) => {
                if let Some(runtimes) = existing_runtimes() {
                    let queue = Arc::clone(queue);
                    runtimes
                        .handle
                        .spawn_blocking(move || queue.waker.call(&queue));
                }
            }
        }
    }

    fn call(&self, queue: &Arc<CompletionQueue>) {
        // If the loop has been closed, no task is waiting.
        let _ = Python::attach(|py| -> PyResult<()> {
            if let Self::Call(event_loop) = self
                && let Some(event_loop) = event_loop.bind(py).upgrade()
            {
                let callback = (WakeCallback(Arc::clone(queue)),);
                event_loop.call_method1(name!(py, "call_soon_threadsafe"), callback)?;
            }
            Ok(())
        });
    }

    fn drain(&self) {
        #[cfg(unix)]
        if let Self::Socket { read, .. } = self {
            use std::io::Read;
            let _ = (&*read).read(&mut [0; 8]);
        }
    }
}
