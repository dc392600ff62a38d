//! Where futures run: block, await, Ctrl-C, fork, exit. The only file here that names tokio.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyCFunction;
use pyo3_async_runtimes::TaskLocals;
use pyo3_async_runtimes::generic::{self, ContextExt};
use tokio::runtime::{Builder, Handle, Runtime};

use super::errors::to_python;
use crate::core::error::{Error, ErrorKind};
use crate::core::process::PerProcess;

const WORKERS: usize = 2;
// How often a waiting call looks for Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);
// How long the interpreter's exit waits for work in flight to let go.
const EXIT_WAIT: Duration = Duration::from_millis(500);
const EXIT_LOOK: Duration = Duration::from_millis(2);

/// One runtime a process: a forked child makes its own, for the inherited one has no threads there.
struct Held {
    handle: Handle,
    runtime: Mutex<Option<Runtime>>,
    /// The interpreter's exit has begun.
    ended: AtomicBool,
    /// The thread that runs the exit handlers.
    exiting: OnceLock<ThreadId>,
    /// Threads that wait in a blocking call.
    waiting: AtomicUsize,
}

static RUNTIME: LazyLock<PerProcess<Arc<Held>>> = LazyLock::new(PerProcess::default);

fn held() -> PyResult<Arc<Held>> {
    let make = || {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("backread")
            .enable_all()
            .build()?;
        Ok::<_, std::io::Error>(Arc::new(Held {
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            ended: AtomicBool::new(false),
            exiting: OnceLock::new(),
            waiting: AtomicUsize::new(0),
        }))
    };
    Ok(RUNTIME.with(make, Arc::clone)?)
}

/// The runtime; once the interpreter's exit has ended it, an exit handler is told so, and a daemon
/// thread stops here for good, for nobody is left who could be told.
fn alive(py: Python<'_>) -> PyResult<Arc<Held>> {
    let held = held()?;
    if !held.ended.load(Ordering::SeqCst) {
        return Ok(held);
    }
    if held.exiting.get() == Some(&thread::current().id()) {
        return Err(to_python(py, &Error::new(ErrorKind::Exiting)));
    }
    py.detach(stop_thread)
}

fn stop_thread() -> ! {
    loop {
        thread::park();
    }
}

/// What a call gives: a value of the core, made into a Python object under the GIL.
pub trait Convert<T>: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static {}

impl<T, C> Convert<T> for C where C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static {}

/// Runs an operation of the core: waits for its value if `blocking`, else gives an awaitable of it.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    blocking: bool,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    convert: impl Convert<T>,
) -> PyResult<Py<PyAny>> {
    if blocking {
        let value = block(py, operation)?;
        return convert(py, value);
    }
    alive(py)?;
    let future = async move {
        let outcome = operation.await;
        Python::attach(|py| match outcome {
            Ok(value) => convert(py, value),
            Err(error) => Err(to_python(py, &error)),
        })
    };
    generic::future_into_py::<OwnRuntime, _, Py<PyAny>>(py, future).map(Bound::unbind)
}

/// Waits for an operation with the GIL released; Ctrl-C ends the wait and drops the operation.
pub fn block<T: Send>(
    py: Python<'_>,
    operation: impl Future<Output = Result<T, Error>> + Send,
) -> PyResult<T> {
    let held = alive(py)?;
    held.waiting.fetch_add(1, Ordering::SeqCst);
    let outcome = py.detach(|| {
        let outcome = held.handle.block_on(async {
            let mut operation = pin!(operation);
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut operation => return Ok::<_, PyErr>(outcome),
                    () = tokio::time::sleep(SIGNAL_CHECK) => {
                        held.leave_if_ended();
                        Python::attach(|py| py.check_signals())?;
                    }
                }
            }
        });
        held.leave_if_ended();
        outcome
    });
    held.waiting.fetch_sub(1, Ordering::SeqCst);
    outcome?.map_err(|error: Error| to_python(py, &error))
}

impl Held {
    /// Stops a daemon thread for good once the exit has begun: were it to ask for the GIL then, the
    /// interpreter would end the thread in the middle of Rust code, which aborts the process.
    fn leave_if_ended(&self) {
        if self.ended.load(Ordering::SeqCst) {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            stop_thread();
        }
    }
}

/// As `block`, for a caller that may or may not hold the GIL, such as a reader of an Arrow stream.
pub fn block_anywhere<T: Send>(
    operation: impl Future<Output = Result<T, Error>> + Send,
) -> PyResult<T> {
    Python::attach(|py| block(py, operation))
}

/// The runtime of this process, as the asyncio bridge wants it.
struct OwnRuntime;

impl generic::Runtime for OwnRuntime {
    type JoinError = tokio::task::JoinError;
    type JoinHandle = tokio::task::JoinHandle<()>;

    fn spawn<F>(future: F) -> Self::JoinHandle
    where
        F: Future<Output = ()> + Send + 'static,
    {
        match held() {
            Ok(held) => held.handle.spawn(future),
            // Without threads nothing can run; the awaitable is then never done, and tokio says why.
            Err(_) => tokio::spawn(future),
        }
    }

    fn spawn_blocking<F>(work: F) -> Self::JoinHandle
    where
        F: FnOnce() + Send + 'static,
    {
        match held() {
            Ok(held) => held.handle.spawn_blocking(work),
            Err(_) => tokio::task::spawn_blocking(work),
        }
    }
}

// No Python coroutine is awaited from Rust, so there are no task locals to carry.
impl ContextExt for OwnRuntime {
    fn scope<F, R>(_: TaskLocals, future: F) -> Pin<Box<dyn Future<Output = R> + Send>>
    where
        F: Future<Output = R> + Send + 'static,
    {
        Box::pin(future)
    }

    fn get_task_locals() -> Option<TaskLocals> {
        None
    }
}

/// Ends this process's runtime before the interpreter is taken down: a worker that asked for the
/// GIL later would be stopped in the middle of its work.
pub fn end_at_exit(py: Python<'_>) -> PyResult<()> {
    let end = PyCFunction::new_closure(py, None, None, |arguments, _| {
        arguments.py().detach(end);
    })?;
    py.import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

fn end() {
    let none_yet = || Err(());
    let Ok(held) = RUNTIME.with(none_yet, Arc::clone) else {
        return;
    };
    let _ = held.exiting.set(thread::current().id());
    held.ended.store(true, Ordering::SeqCst);
    // Only daemon threads can still be waiting; each stops at its next look for signals.
    let began = Instant::now();
    while held.waiting.load(Ordering::SeqCst) > 0 && began.elapsed() < EXIT_WAIT {
        thread::sleep(EXIT_LOOK);
    }
    let mut runtime = held.runtime.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = runtime.take() {
        runtime.shutdown_timeout(EXIT_WAIT);
    }
}
