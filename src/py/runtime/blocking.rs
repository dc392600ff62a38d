//! Calls that wait for their value, with the GIL released.

use std::cell::Cell;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use tokio::runtime::{Handle, Runtime};

use super::caller_runtime::turn;
use super::{OnShutdown, Runtimes, ShutdownGuard, running_runtimes, stop_thread};
use crate::py::convert::errors::to_python;
use crate::py::telemetry::CallObserver;
use backread_core::client::Client;
use backread_core::error::{Error, ErrorKind};

// How often a waiting call checks for Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

thread_local! {
    /// This thread is running signal or log handlers while one of its calls waits.
    static HANDLES_SIGNALS: Cell<bool> = const { Cell::new(false) };
}

/// Waits for an operation with the GIL released; Ctrl-C ends the wait and drops the operation.
pub fn block<T: Send>(
    py: Python<'_>,
    on_shutdown: OnShutdown,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send,
) -> PyResult<T> {
    let runtimes = running_runtimes(py, on_shutdown)?;
    block_on(
        py,
        &runtimes,
        &runtimes.handle,
        on_shutdown,
        observer,
        operation,
    )
}

fn block_on<T: Send>(
    py: Python<'_>,
    runtimes: &Runtimes,
    workers: &Handle,
    on_shutdown: OnShutdown,
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send,
) -> PyResult<T> {
    let operation = Box::pin(operation);
    wait(py, runtimes, on_shutdown, || {
        runtimes.watch(&Driver::Workers(workers), on_shutdown, observer, operation)
    })
}

/// Like `block`, for a reader of an Arrow stream: a caller that may or may not hold the GIL.
pub fn block_for_columns<T: Send>(
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send,
) -> PyResult<T> {
    Python::attach(|py| {
        let on_shutdown = OnShutdown::SystemExit;
        let _guard = ShutdownGuard::enter(py, on_shutdown)?;
        let runtimes = running_runtimes(py, on_shutdown)?;
        let workers = runtimes.for_columns();
        let outcome = block_on(py, &runtimes, &workers, on_shutdown, observer, operation);
        observer.deliver(py, outcome, |_, value| Ok(value))
    })
}

/// Like `block`, but this thread does all the work, over separate connections; if another thread is
/// already doing so, the workers do it.
pub fn block_on_caller<T: Send, F: Future<Output = Result<T, Error>> + Send>(
    py: Python<'_>,
    observer: &CallObserver,
    client: &Client,
    read: impl FnOnce(Client) -> F + Send,
) -> PyResult<T> {
    let runtimes = running_runtimes(py, OnShutdown::SystemExit)?;
    let client = if HANDLES_SIGNALS.get() {
        // The interrupted call keeps its slot in the pace until this one is done.
        client.at_its_own_pace()
    } else {
        client.clone()
    };
    wait(py, &runtimes, OnShutdown::SystemExit, || {
        let Some(runtime) = runtimes.caller_runtime.take() else {
            return runtimes.watch(
                &Driver::Workers(&runtimes.handle),
                OnShutdown::SystemExit,
                observer,
                Box::pin(read(client)),
            );
        };
        // Boxed before it is moved, because threads may have small stacks: 128 KiB with musl.
        let read = Box::pin(read(client.over_driven_connections()));
        let outcome = runtimes.watch(
            &Driver::This(&runtime),
            OnShutdown::SystemExit,
            observer,
            Box::pin(async {
                turn().await;
                read.await
            }),
        );
        drop(runtime);
        match outcome {
            _ if runtimes.is_inherited() => {}
            Ok(Ok(_)) => runtimes.caller_runtime.gave_back(),
            // A failed or aborted request may still be in flight.
            _ => runtimes.caller_runtime.settle(),
        }
        outcome
    })
}

fn wait<T: Send>(
    py: Python<'_>,
    runtimes: &Runtimes,
    on_shutdown: OnShutdown,
    work: impl FnOnce() -> PyResult<Result<T, Error>> + Send,
) -> PyResult<T> {
    let outcome = py.detach(|| {
        let outcome = work();
        runtimes.stop_at_exit(on_shutdown);
        outcome
    });
    outcome?.map_err(|error| to_python(py, &error))
}

/// What drives the sockets and timers while a thread waits.
enum Driver<'a> {
    Workers(&'a Handle),
    This(&'a Runtime),
}

impl Driver<'_> {
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self {
            Self::Workers(handle) => handle.block_on(future),
            Self::This(runtime) => runtime.block_on(future),
        }
    }
}

impl Runtimes {
    /// Waits for an operation and checks for signals meanwhile; fails with what a handler raised.
    fn watch<T>(
        &self,
        driver: &Driver<'_>,
        on_shutdown: OnShutdown,
        observer: &CallObserver,
        mut operation: Pin<Box<impl Future<Output = T>>>,
    ) -> PyResult<T> {
        loop {
            let outcome = driver.block_on(async {
                tokio::select! {
                    biased;
                    outcome = &mut operation => Some(outcome),
                    () = tokio::time::sleep(SIGNAL_CHECK) => None,
                }
            });
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
            self.stop_at_exit(on_shutdown);
            if self.ended.load(Ordering::SeqCst) {
                return Err(PySystemExit::new_err(()));
            }
            // Outside of the runtime, because a signal or log handler may make a call too.
            let outer = HANDLES_SIGNALS.replace(true);
            let handled = Python::attach(|py| {
                py.check_signals()?;
                observer.tell(py)
            });
            HANDLES_SIGNALS.set(outer);
            if self.is_inherited() {
                // A handler forked, and this is the child: dropping the operation would remove the
                // parent's sockets from the parent's runtime.
                mem::forget(operation);
                return Err(Python::attach(|py| {
                    handled.map_or_else(
                        |error| error,
                        |()| to_python(py, &Error::new(ErrorKind::OtherProcess)),
                    )
                }));
            }
            handled?;
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
