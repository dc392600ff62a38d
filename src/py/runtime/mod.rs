//! Where futures run: block, await, Ctrl-C, fork, exit. The only folder here that names tokio.

mod awaiting;
mod blocking;
mod caller_runtime;
mod event_loop;
mod event_loop_future;

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;
use tokio::runtime::{Builder, Handle, Runtime};

pub use self::blocking::block_for_columns;
use self::blocking::{block, block_on_caller};
use self::caller_runtime::CallerRuntime;
use super::convert::errors::exiting;
use super::telemetry::CallObserver;
use backread_core::client::Client;
use backread_core::error::Error;
use backread_core::process::{self, PerProcess};

// Threads that share all tasks wake each other for each response. While the caller makes objects, two
// took 1.07 times as long as one, and 1.3 times the CPU time for lists of one message (benches/speed.py).
const WORKERS: usize = 1;
// Who reads columns does nothing meanwhile, and one thread took 1.4 times as long.
const WORKERS_FOR_COLUMNS: usize = 2;
// How long the interpreter's exit waits for work in flight.
const EXIT_WAIT: Duration = Duration::from_millis(500);
const EXIT_LOOK: Duration = Duration::from_millis(2);

/// The runtimes of one process. A forked child creates new ones, because inherited ones have no threads
/// there, and their connections are the parent's.
struct Runtimes {
    process: u32,
    handle: Handle,
    running: Mutex<Running>,
    caller_runtime: CallerRuntime,
    /// The interpreter has begun to exit: daemon threads must leave.
    ended: AtomicBool,
    /// Threads that are still in this module must not return to Python.
    sealed: AtomicBool,
    /// The thread that runs the exit handlers.
    exiting: OnceLock<ThreadId>,
    /// The number of threads inside this module, which may be waiting or calling Python.
    in_flight: AtomicUsize,
}

/// The runtimes that have threads.
struct Running {
    usual: Option<Runtime>,
    /// Made by the first call that reads columns.
    columns: Option<Runtime>,
}

impl Runtimes {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where columns are read and built. That is the usual runtime if the process may start no more
    /// threads, or if its exit has begun.
    fn for_columns(&self) -> Handle {
        let mut running = self.running();
        if running.usual.is_some() && running.columns.is_none() {
            running.columns = start(WORKERS_FOR_COLUMNS).ok();
        }
        let columns = running.columns.as_ref();
        columns.map_or(&self.handle, Runtime::handle).clone()
    }

    /// Whether they belong to the process that this one was forked from.
    fn is_inherited(&self) -> bool {
        self.process != process::id()
    }
}

static RUNTIME: PerProcess<Arc<Runtimes>> = PerProcess::empty();

fn runtimes() -> PyResult<Arc<Runtimes>> {
    let make = || {
        let usual = start(WORKERS)?;
        Ok::<_, std::io::Error>(Arc::new(Runtimes {
            process: process::id(),
            handle: usual.handle().clone(),
            running: Mutex::new(Running {
                usual: Some(usual),
                columns: None,
            }),
            caller_runtime: CallerRuntime::new()?,
            ended: AtomicBool::new(false),
            sealed: AtomicBool::new(false),
            exiting: OnceLock::new(),
            in_flight: AtomicUsize::new(0),
        }))
    };
    Ok(RUNTIME.with(make, Arc::clone)?)
}

fn start(workers: usize) -> std::io::Result<Runtime> {
    check_threads(workers)?;
    Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("backread")
        .enable_all()
        .build()
}

/// Checks that this process may start as many threads as a runtime needs: tokio's own start of them
/// panics where it may not, or never returns.
fn check_threads(workers: usize) -> std::io::Result<()> {
    let all = RwLock::new(());
    let failed = thread::scope(|scope| {
        // Each lives until all were started.
        let starting = all.write();
        let wait = || drop(all.read());
        let threads: Vec<_> = (0..=workers)
            .map(|_| thread::Builder::new().spawn_scoped(scope, wait))
            .collect();
        drop(starting);
        threads.into_iter().find_map(Result::err)
    });
    match failed {
        None => Ok(()),
        Some(error) => Err(std::io::Error::new(
            error.kind(),
            format!(
                "this process may start no more threads ({error}): raise ulimit -u, the container's \
                 pids limit, or TasksMax"
            ),
        )),
    }
}

/// The runtimes, if this process has created them.
fn existing_runtimes() -> Option<Arc<Runtimes>> {
    RUNTIME.with(|| Err(()), Arc::clone).ok()
}

/// How a daemon thread ends once the interpreter's exit has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnShutdown {
    /// By SystemExit, which is silent in a thread and releases what the thread holds; an exit handler
    /// may be waiting for that.
    SystemExit,
    /// It parks forever, because an event loop would log a SystemExit in a task.
    Park,
}

impl OnShutdown {
    fn of(blocking: bool) -> Self {
        if blocking {
            Self::SystemExit
        } else {
            Self::Park
        }
    }
}

/// The runtimes. Once the interpreter's exit has ended them, an exit handler gets an error, and a
/// daemon thread ends.
fn running_runtimes(py: Python<'_>, on_shutdown: OnShutdown) -> PyResult<Arc<Runtimes>> {
    let runtimes = runtimes()?;
    if !runtimes.ended.load(Ordering::SeqCst) {
        return Ok(runtimes);
    }
    if runtimes.exiting.get() == Some(&thread::current().id()) {
        return Err(exiting(py));
    }
    match on_shutdown {
        OnShutdown::SystemExit => Err(PySystemExit::new_err(())),
        OnShutdown::Park => py.detach(stop_thread),
    }
}

/// Marks a thread as inside this module until dropped, so that the interpreter's exit waits for it.
/// CPython ends a daemon thread that requests the GIL after that, and in the middle of Rust code this
/// aborts the process.
struct ShutdownGuard(Arc<Runtimes>);

impl ShutdownGuard {
    /// Fails like `running_runtimes`.
    fn enter(py: Python<'_>, on_shutdown: OnShutdown) -> PyResult<Self> {
        let runtimes = running_runtimes(py, on_shutdown)?;
        runtimes.in_flight.fetch_add(1, Ordering::SeqCst);
        let guard = Self(runtimes);
        if guard.0.ended.load(Ordering::SeqCst) {
            // The exit began in between, and must not wait for a thread that parks here.
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

/// Creates what calls need; see `crate::py::prepare`.
pub fn prepare(py: Python<'_>) {
    awaiting::prepare(py);
    event_loop::prepare(py);
}

/// Converts a value of the core to a Python object, under the GIL.
pub trait Convert<T>: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static {}

impl<T, C> Convert<T> for C where C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static {}

/// Runs an operation of the core: waits for its value if `blocking`, otherwise returns an awaitable.
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

/// Like `run`, for a call that is made seldom: its await goes through pyo3-async-runtimes.
pub fn run_seldom<T: Send + 'static>(
    py: Python<'_>,
    blocking: bool,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    convert: impl Convert<T>,
) -> PyResult<Py<PyAny>> {
    if blocking {
        return run(py, blocking, observer, operation, convert);
    }
    let _guard = ShutdownGuard::enter(py, OnShutdown::Park)?;
    event_loop_future::start(py, observer, operation, convert)
}

/// Like `run`, for a caller that has a database open: at exit, a daemon thread parks here, because
/// unwinding through the database's code would end the process.
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

/// Like `run`, for an operation of few, sequential requests: if it blocks, the calling thread does all
/// the work, unless another thread is already using the caller runtime.
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

/// Closes unused connections of the caller runtime, which no other thread would do.
pub fn settle() {
    if let Some(runtimes) = existing_runtimes()
        && !runtimes.ended.load(Ordering::SeqCst)
    {
        runtimes.caller_runtime.settle();
    }
}

/// Calls `settle` when dropped.
pub struct SettledWhenDropped;

impl Drop for SettledWhenDropped {
    fn drop(&mut self) {
        settle();
    }
}

/// Ends this process's runtimes before the interpreter is finalized: a worker that requested the GIL
/// later would be stopped in the middle of its work.
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
    // Only daemon threads can be left: each leaves soon, or parks at its next check for signals.
    let began = Instant::now();
    while runtimes.in_flight.load(Ordering::SeqCst) > 0 && began.elapsed() < EXIT_WAIT {
        thread::sleep(EXIT_LOOK);
    }
    runtimes.sealed.store(true, Ordering::SeqCst);
    let (usual, columns) = {
        let mut running = runtimes.running();
        (running.usual.take(), running.columns.take())
    };
    for runtime in [usual, columns].into_iter().flatten() {
        runtime.shutdown_timeout(EXIT_WAIT);
    }
}
