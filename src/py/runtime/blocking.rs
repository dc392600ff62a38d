//! Calls that wait for their value, with the GIL released.

use std::mem;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;

use super::{OnShutdown, ShutdownGuard};
use crate::py::convert::errors::to_python;
use crate::py::telemetry::CallObserver;
use backread_core::error::{Error, ErrorKind};

// How often a waiting call checks for Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// Waits for an operation and checks for signals meanwhile: what a handler raises ends the wait and
/// aborts the operation. The workers do the work, so it goes on while a handler makes calls.
pub fn block<T: Send + 'static>(
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

/// Like `block`, for a reader of an Arrow stream: a caller that may or may not hold the GIL.
pub fn block_for_columns<T: Send + 'static>(
    observer: &CallObserver,
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> PyResult<T> {
    Python::attach(|py| {
        let outcome = block(py, OnShutdown::SystemExit, observer, operation);
        observer.deliver(py, observer.tell(py), outcome, |_, value| Ok(value))
    })
}
