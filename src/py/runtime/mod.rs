//! Where operations run: waits, awaits, Ctrl-C, fork, exit. The only folder here that names tokio.

mod awaiting;

use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::AbortHandle;

pub use self::awaiting::{Convert, prepare, run, run_often};
use super::convert::errors::{exiting, to_python};
use super::telemetry::CallObserver;
use backread_core::error::{Error, ErrorKind};
use backread_core::lock;
use backread_core::process::{self, PerProcess};

// While a caller waits for columns, both work; one took 1.5 times as long for a table. A single get takes
// some 10 % longer with two.
const WORKERS: usize = 2;
// How often a waiting call checks for Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);
// How long the interpreter's exit waits for work in flight.
const EXIT_WAIT: Duration = Duration::from_millis(500);
const EXIT_LOOK: Duration = Duration::from_millis(2);

static RUNTIME: PerProcess<Arc<ProcessRuntime>> = PerProcess::empty();

/// The runtime of one process. A forked child makes its own: the inherited one has no threads there,
/// and its connections are the parent's.
struct ProcessRuntime {
    handle: Handle,
    running: Mutex<Option<Runtime>>,
    /// The interpreter has begun to exit: daemon threads must leave.
    ended: AtomicBool,
    /// Threads that are still in this module must not return to Python.
    sealed: AtomicBool,
    /// The thread that runs the exit handlers.
    exiting: OnceLock<ThreadId>,
    /// The number of threads inside this module, which may be waiting or calling Python.
    in_flight: AtomicUsize,
}

impl ProcessRuntime {
    fn new() -> io::Result<Arc<Self>> {
        check_threads()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("backread")
            .enable_all()
            .build()?;
        Ok(Arc::new(Self {
            handle: runtime.handle().clone(),
            running: Mutex::new(Some(runtime)),
            ended: AtomicBool::new(false),
            sealed: AtomicBool::new(false),
            exiting: OnceLock::new(),
            in_flight: AtomicUsize::new(0),
        }))
    }

    /// Starts a task, which is aborted when the returned value is dropped.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortedWhenDropped {
        AbortedWhenDropped {
            task: self.handle.spawn(task).abort_handle(),
            process: process::id(),
        }
    }

    /// Parks a daemon thread that must not return to Python. Once the exit no longer waits, none may:
    /// if it requested the GIL, the interpreter would end the thread in the middle of Rust code, which
    /// aborts the process.
    fn stop_at_exit(&self, on_shutdown: OnShutdown) {
        if self.sealed.load(Ordering::SeqCst) {
            stop_thread();
        }
        if on_shutdown == OnShutdown::Park && self.ended.load(Ordering::SeqCst) {
            // The exit does not wait for parked threads.
            self.in_flight.fetch_sub(1, Ordering::SeqCst);
            stop_thread();
        }
    }
}

/// Checks that this process may start as many threads as a runtime needs: tokio's own start of them
/// panics where it may not, or never returns.
fn check_threads() -> io::Result<()> {
    // Each lives until all were started.
    let started = (0..=WORKERS).map(|_| thread::Builder::new().spawn(thread::park));
    let started: Vec<_> = started.collect();
    let ended = started.into_iter().map(|started| {
        let thread = started?;
        thread.thread().unpark();
        let _ = thread.join();
        Ok(())
    });
    ended.fold(Ok(()), io::Result::and).map_err(|error| {
        let text = format!(
            "this process may start no more threads ({error}): raise ulimit -u, the container's pids \
             limit, or TasksMax"
        );
        io::Error::new(error.kind(), text)
    })
}

struct AbortedWhenDropped {
    task: AbortHandle,
    process: u32,
}

impl AbortedWhenDropped {
    /// Whether the task is the parent's, because this process was forked since.
    fn is_inherited(&self) -> bool {
        self.process != process::id()
    }
}

impl Drop for AbortedWhenDropped {
    fn drop(&mut self) {
        if !self.is_inherited() {
            self.task.abort();
        }
    }
}

/// How a daemon thread ends once the interpreter's exit has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnShutdown {
    /// By SystemExit, which is silent in a thread and releases what the thread holds; an exit handler
    /// may be waiting for that.
    SystemExit,
    /// It parks forever: an event loop would log a SystemExit in a task, and unwinding through the code
    /// of a database would end the process.
    Park,
}

/// Marks a thread as inside this module until dropped, so that the interpreter's exit waits for it.
/// CPython ends a daemon thread that requests the GIL after that, and in the middle of Rust code this
/// aborts the process.
struct ShutdownGuard(Arc<ProcessRuntime>);

impl ShutdownGuard {
    /// Once the interpreter's exit has ended the runtime, an exit handler gets an error, and a daemon
    /// thread ends.
    fn enter(py: Python<'_>, on_shutdown: OnShutdown) -> PyResult<Self> {
        let runtime = RUNTIME.with(ProcessRuntime::new, Arc::clone)?;
        // Counted before it looks: the exit waits for this thread, or this thread sees the exit.
        runtime.in_flight.fetch_add(1, Ordering::SeqCst);
        let guard = Self(runtime);
        if !guard.0.ended.load(Ordering::SeqCst) {
            return Ok(guard);
        }
        if guard.0.exiting.get() == Some(&thread::current().id()) {
            return Err(exiting(py));
        }
        drop(guard);
        match on_shutdown {
            OnShutdown::SystemExit => Err(PySystemExit::new_err(())),
            OnShutdown::Park => py.detach(stop_thread),
        }
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

/// Waits for an operation and converts its value. It checks for signals meanwhile: what a handler raises
/// ends the wait and aborts the operation. The workers do the work, so it goes on while a handler makes
/// calls.
pub fn block<T: Send + 'static, R>(
    py: Python<'_>,
    on_shutdown: OnShutdown,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
    convert: impl FnOnce(Python<'_>, T) -> PyResult<R>,
) -> PyResult<R> {
    let outcome = wait(py, on_shutdown, observer, operation);
    observer.deliver(py, observer.tell(py), outcome, convert)
}

fn wait<T: Send + 'static>(
    py: Python<'_>,
    on_shutdown: OnShutdown,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> PyResult<T> {
    let guard = ShutdownGuard::enter(py, on_shutdown)?;
    let (sender, receiver) = mpsc::sync_channel(1);
    let task = guard.0.spawn(async move {
        let _ = sender.send(operation.await);
    });
    let wait = || loop {
        let received = receiver.recv_timeout(SIGNAL_CHECK);
        guard.0.stop_at_exit(on_shutdown);
        let failed = match received {
            Ok(outcome) => return Ok(outcome),
            Err(RecvTimeoutError::Disconnected) => {
                return Ok(Err(Error::new(ErrorKind::Aborted)));
            }
            Err(RecvTimeoutError::Timeout) if guard.0.ended.load(Ordering::SeqCst) => {
                Err(PySystemExit::new_err(()))
            }
            Err(RecvTimeoutError::Timeout) => Python::attach(|py| {
                py.check_signals()?;
                observer.tell(py)
            }),
        };
        if task.is_inherited() {
            // A handler forked, and this is the child: a worker of the parent may have been sending.
            mem::forget(receiver);
            return failed.and(Ok(Err(Error::new(ErrorKind::OtherProcess))));
        }
        failed?;
    };
    py.detach(wait)?.map_err(|error| to_python(py, &error))
}

/// Ends this process's runtime before the interpreter is finalized: a worker that requested the GIL
/// later would be stopped in the middle of its work.
pub fn end_at_exit(py: Python<'_>) -> PyResult<()> {
    let end = PyCFunction::new_closure(py, None, None, |arguments, _| {
        arguments.py().detach(end);
    })?;
    py.import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

fn end() {
    let Ok(runtime) = RUNTIME.with(|| Err(()), Arc::clone) else {
        // This process has made none.
        return;
    };
    let _ = runtime.exiting.set(thread::current().id());
    runtime.ended.store(true, Ordering::SeqCst);
    // Only daemon threads can be left: each leaves soon, or parks at its next check for signals.
    let began = Instant::now();
    while runtime.in_flight.load(Ordering::SeqCst) > 0 && began.elapsed() < EXIT_WAIT {
        thread::sleep(EXIT_LOOK);
    }
    runtime.sealed.store(true, Ordering::SeqCst);
    let running = lock(&runtime.running).take();
    if let Some(running) = running {
        running.shutdown_timeout(EXIT_WAIT);
    }
}
