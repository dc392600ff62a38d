//! Where futures run: block, await, Ctrl-C, fork, exit. The only folder here that names tokio.

mod awaiting;
mod blocking;
mod caller_runtime;
mod event_loop;

use std::future::Future;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;
use tokio::runtime::{Builder, Handle, Runtime};

pub use self::blocking::block_anywhere;
use self::blocking::{block, block_on_caller};
use self::caller_runtime::CallerRuntime;
use super::convert::errors::to_python;
use super::telemetry::CallObserver;
use crate::core::client::Client;
use crate::core::error::{Error, ErrorKind};
use crate::core::process::PerProcess;

const WORKERS: usize = 2;
// How long the interpreter's exit waits for work in flight to let go.
const EXIT_WAIT: Duration = Duration::from_millis(500);
const EXIT_LOOK: Duration = Duration::from_millis(2);

/// The runtimes of one process: a forked child makes its own, for an inherited one has no threads
/// there, and its connections are the parent's.
struct Runtimes {
    process: u32,
    handle: Handle,
    runtime: Mutex<Option<Runtime>>,
    caller_runtime: CallerRuntime,
    /// The interpreter's exit has begun: daemon threads leave.
    ended: AtomicBool,
    /// Whoever is still in code of ours must not come back to Python.
    sealed: AtomicBool,
    /// The thread that runs the exit handlers.
    exiting: OnceLock<ThreadId>,
    /// Threads that are in code of ours, which may wait or call Python.
    in_flight: AtomicUsize,
}

impl Runtimes {
    /// They are those of the process that this one was forked from.
    fn is_inherited(&self) -> bool {
        self.process != process::id()
    }
}

static RUNTIME: PerProcess<Arc<Runtimes>> = PerProcess::empty();

fn runtimes() -> PyResult<Arc<Runtimes>> {
    let make = || {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("backread")
            .enable_all()
            .build()?;
        Ok::<_, std::io::Error>(Arc::new(Runtimes {
            process: process::id(),
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            caller_runtime: CallerRuntime::new()?,
            ended: AtomicBool::new(false),
            sealed: AtomicBool::new(false),
            exiting: OnceLock::new(),
            in_flight: AtomicUsize::new(0),
        }))
    };
    Ok(RUNTIME.with(make, Arc::clone)?)
}

/// The runtimes, if this process has made them.
fn existing_runtimes() -> Option<Arc<Runtimes>> {
    RUNTIME.with(|| Err(()), Arc::clone).ok()
}

/// How a daemon thread ends once the interpreter's exit has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnShutdown {
    /// By SystemExit, of which nobody hears; what it holds is let go, for an exit handler may wait for
    /// that.
    SystemExit,
    /// It stops for good: an event loop would tell of a SystemExit in a task.
    Park,
}

impl OnShutdown {
    fn of(blocking: bool) -> Self {
        match blocking {
            true => Self::SystemExit,
            false => Self::Park,
        }
    }
}

/// The runtimes; once the interpreter's exit has ended them, an exit handler is told so, and a
/// daemon thread leaves.
fn running_runtimes(py: Python<'_>, on_shutdown: OnShutdown) -> PyResult<Arc<Runtimes>> {
    let runtimes = runtimes()?;
    if !runtimes.ended.load(Ordering::SeqCst) {
        return Ok(runtimes);
    }
    if runtimes.exiting.get() == Some(&thread::current().id()) {
        return Err(to_python(py, &Error::new(ErrorKind::Exiting)));
    }
    match on_shutdown {
        OnShutdown::SystemExit => Err(PySystemExit::new_err(())),
        OnShutdown::Park => py.detach(stop_thread),
    }
}

/// A thread in code of ours, until dropped: the interpreter's exit waits for it, for it would end a
/// daemon thread that asks for the GIL later, and in the middle of Rust code that aborts the process.
struct ShutdownGuard(Arc<Runtimes>);

impl ShutdownGuard {
    /// As `running_runtimes`.
    fn enter(py: Python<'_>, on_shutdown: OnShutdown) -> PyResult<Self> {
        let runtimes = running_runtimes(py, on_shutdown)?;
        runtimes.in_flight.fetch_add(1, Ordering::SeqCst);
        let guard = Self(runtimes);
        if guard.0.ended.load(Ordering::SeqCst) {
            // The exit has begun in between, and waits for no one who stops here.
            drop(guard);
            running_runtimes(py, on_shutdown)?;
            return Err(PySystemExit::new_err(()));
        }
        Ok(guard)
    }
}

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

fn stop_thread() -> ! {
    loop {
        thread::park();
    }
}

/// Makes what calls need; see `crate::py::prepare`.
pub fn prepare(py: Python<'_>) {
    awaiting::prepare(py);
    event_loop::prepare(py);
}

/// What a call gives: a value of the core, made into a Python object under the GIL.
pub trait Convert<T>: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static {}

impl<T, C> Convert<T> for C where C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static {}

/// Runs an operation of the core: waits for its value if `blocking`, else gives an awaitable of it.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    blocking: bool,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    convert: impl Convert<T>,
) -> PyResult<Py<PyAny>> {
    run_with(
        py,
        blocking,
        OnShutdown::of(blocking),
        observer,
        operation,
        convert,
    )
}

/// As `run`, for those who hold a database meanwhile: at the exit a daemon thread stops here, for the
/// code of the database would end the process on its way out.
pub fn run_beside_database<T: Send + 'static>(
    py: Python<'_>,
    blocking: bool,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    convert: impl Convert<T>,
) -> PyResult<Py<PyAny>> {
    run_with(py, blocking, OnShutdown::Park, observer, operation, convert)
}

fn run_with<T: Send + 'static>(
    py: Python<'_>,
    blocking: bool,
    on_shutdown: OnShutdown,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    convert: impl Convert<T>,
) -> PyResult<Py<PyAny>> {
    let _guard = ShutdownGuard::enter(py, on_shutdown)?;
    if blocking {
        let outcome = block(py, on_shutdown, observer, operation);
        return observer.deliver(py, outcome, convert);
    }
    awaiting::start(py, observer, operation, convert)
}

/// As `run`, for a whole operation of few requests, one after another: where it blocks, the calling
/// thread does all of its work, unless another thread is at that already.
pub fn run_single<T, F>(
    py: Python<'_>,
    blocking: bool,
    observer: &CallObserver,
    client: &Client,
    read: impl FnOnce(Client) -> F + Send,
    convert: impl Convert<T>,
) -> PyResult<Py<PyAny>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let _guard = ShutdownGuard::enter(py, OnShutdown::of(blocking))?;
    let ends = observer.clone();
    let convert = move |py: Python<'_>, value| {
        let made = convert(py, value)?;
        ends.end(py, None);
        Ok(made)
    };
    let client = observer.client(client);
    if blocking {
        let outcome = block_on_caller(py, observer, &client, read);
        return observer.deliver(py, outcome, convert);
    }
    awaiting::start(py, observer, read(client), convert)
}

/// Closes what connections nobody holds any more: those that calling threads drive are seen to by no
/// other thread.
pub fn settle() {
    if let Some(runtimes) = existing_runtimes()
        && !runtimes.ended.load(Ordering::SeqCst)
    {
        runtimes.caller_runtime.settle();
    }
}

/// Settles when dropped.
pub struct SettledWhenDropped;

impl Drop for SettledWhenDropped {
    fn drop(&mut self) {
        settle();
    }
}

/// Ends this process's runtimes before the interpreter is taken down: a worker that asked for the
/// GIL later would be stopped in the middle of its work.
pub fn end_at_exit(py: Python<'_>) -> PyResult<()> {
    let end = PyCFunction::new_closure(py, None, None, |arguments, _| {
        arguments.py().detach(end);
    })?;
    py.import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

fn end() {
    let Some(runtimes) = existing_runtimes() else {
        return;
    };
    let _ = runtimes.exiting.set(thread::current().id());
    runtimes.ended.store(true, Ordering::SeqCst);
    // Only daemon threads can still be there: each leaves soon, or stops at its next look for signals.
    let began = Instant::now();
    while runtimes.in_flight.load(Ordering::SeqCst) > 0 && began.elapsed() < EXIT_WAIT {
        thread::sleep(EXIT_LOOK);
    }
    runtimes.sealed.store(true, Ordering::SeqCst);
    let mut runtime = runtimes
        .runtime
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = runtime.take() {
        runtime.shutdown_timeout(EXIT_WAIT);
    }
}
