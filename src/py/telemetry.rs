//! Logs and traces: `backread._client.telemetry` makes them from an operation's attempts, on the thread
//! that waits for the operation. Requests neither wait for them nor need the GIL.

use std::cell::Cell;
use std::sync::{Arc, Weak};
use std::time::UNIX_EPOCH;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyTuple};

use super::convert::errors::class_name;
use super::forks::once;
use super::runtime::Convert;
use backread_core::client::Client;
use backread_core::observer::{Observed, Observer, OutageNote};
use backread_core::process;

static OBSERVING: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

thread_local! {
    /// This thread is in a log handler. Reads by the handler are not logged, which would never end.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Observes an operation; empty if the program uses neither logs nor traces.
#[derive(Clone, Default)]
pub struct CallObserver(Option<Arc<Operation>>);

struct Operation {
    observer: Arc<Observer>,
    /// A `backread._client.telemetry.Operation`.
    python: Py<PyAny>,
    process: u32,
}

/// An operation, and the `traceparent` and `tracestate` of its requests.
type Begun = (Py<PyAny>, Option<String>, Option<String>);

impl CallObserver {
    /// With `traced`, requests tell the service which trace they belong to.
    pub fn begin(py: Python<'_>, name: &str, client: &Client, traced: bool) -> PyResult<Self> {
        let observing = match TELLING.get() {
            true => None,
            false => observing(py)?,
        };
        let Some(observing) = observing else {
            return Ok(Self::default());
        };
        let begin = || -> PyResult<Option<Begun>> {
            let arguments = (name, &client.origin().base_url, traced);
            let begun = observing.call_method1("begin", arguments)?;
            begun.extract()
        };
        let begun = match telling(begin) {
            // Tracing errors must not fail a read.
            Err(error) if error.is_instance_of::<PyException>(py) => {
                error.write_unraisable(py, None);
                None
            }
            begun => begun?,
        };
        Ok(Self(begun.map(|(python, traceparent, tracestate)| {
            let trace = [("traceparent", traceparent), ("tracestate", tracestate)].into_iter();
            let trace = trace.filter_map(|(name, value)| Some((name, value?)));
            Arc::new(Operation {
                observer: Arc::new(Observer::of_trace(trace.collect())),
                python,
                process: process::id(),
            })
        })))
    }

    /// The client for the operation to use, so that its attempts are observed.
    pub fn client(&self, client: &Client) -> Client {
        match &self.0 {
            Some(operation) => {
                client.with(|call| call.observer = Some(Arc::clone(&operation.observer)))
            }
            None => client.clone(),
        }
    }

    /// Reports the attempts since the last call; fails only with what stops a program, such as Ctrl-C.
    pub fn tell(&self, py: Python<'_>) -> PyResult<()> {
        self.report(py, "tell")
    }

    /// The same in the context in which the operation began, for threads and callbacks of others.
    pub fn tell_in_context(&self, py: Python<'_>) -> PyResult<()> {
        self.report(py, "tell_in_context")
    }

    fn report(&self, py: Python<'_>, method: &str) -> PyResult<()> {
        // In a forked child the attempts are the parent's, and a lock may be held forever.
        let Some(operation) = self.0.as_ref().filter(|it| it.process == process::id()) else {
            return Ok(());
        };
        let (attempts, left_out) = operation.observer.take();
        if attempts.is_empty() {
            return Ok(());
        }
        let told = telling(|| {
            let attempts = attempts.iter().map(|attempt| shown(py, attempt));
            let attempts = attempts.collect::<PyResult<Vec<_>>>()?;
            operation
                .python
                .call_method1(py, method, (attempts, left_out))
        });
        match told {
            // Logging errors must not fail a read.
            Err(error) if error.is_instance_of::<PyException>(py) => {
                error.write_unraisable(py, Some(operation.python.bind(py)));
                Ok(())
            }
            told => told.map(drop),
        }
    }

    /// Reports the end of the operation; later calls are ignored.
    pub fn end(&self, py: Python<'_>, error: Option<&PyErr>) {
        if let Some(operation) = &self.0 {
            let (python, error) = (&operation.python, error.map(|error| error.value(py)));
            if let Err(error) = telling(|| python.call_method1(py, "end", (error,))) {
                error.write_unraisable(py, Some(python.bind(py)));
            }
        }
    }

    /// Converts an operation's outcome, unless what `tell` gave stops the program.
    pub fn deliver<T, R>(
        &self,
        py: Python<'_>,
        told: PyResult<()>,
        outcome: PyResult<T>,
        convert: impl FnOnce(Python<'_>, T) -> PyResult<R>,
    ) -> PyResult<R> {
        outcome
            .and_then(|value| told.and_then(|()| convert(py, value)))
            .inspect_err(|error| self.end(py, Some(error)))
    }

    /// Reports the end of the operation once its value is converted.
    pub fn ending<T>(&self, convert: impl Convert<T>) -> impl Convert<T> {
        let observer = self.clone();
        move |py: Python<'_>, value| {
            let made = convert(py, value)?;
            observer.end(py, None);
            Ok(made)
        }
    }

    /// Has `remind` called when a retry or an outage should be reported before the operation ends.
    pub fn remind_with(&self, remind: impl Fn(Self) + Send + 'static) {
        if let Some(operation) = &self.0 {
            let held: Weak<Operation> = Arc::downgrade(operation);
            operation.observer.wake_with(move || {
                if let Some(operation) = held.upgrade() {
                    remind(Self(Some(operation)));
                }
            });
        }
    }
}

fn telling<T>(work: impl FnOnce() -> T) -> T {
    let outer = TELLING.replace(true);
    let done = work();
    TELLING.set(outer);
    done
}

/// `backread._client.telemetry`, if the program has imported logging or OpenTelemetry.
fn observing(py: Python<'_>) -> PyResult<Option<&Bound<'_, PyModule>>> {
    if let Some(observing) = OBSERVING.get(py) {
        return Ok(Some(observing.bind(py)));
    }
    let modules = py.import("sys")?.getattr("modules")?;
    if !modules.contains("logging")? && !modules.contains("opentelemetry.trace")? {
        return Ok(None);
    }
    let import = || py.import("backread._client.telemetry").map(Bound::unbind);
    Ok(Some(once(py, &OBSERVING, import)?.bind(py)))
}

/// Imports what logs and traces need, if they are used; see `super::prepare`.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    observing(py).map(|_| ())
}

fn shown<'py>(py: Python<'py>, attempt: &Observed) -> PyResult<Bound<'py, PyTuple>> {
    let began = attempt.began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let error = attempt.error.as_ref();
    let outages: Vec<(bool, f64)> = attempt
        .outages
        .iter()
        .map(|note| match note {
            OutageNote::Began { before } => (true, before.as_secs_f64()),
            OutageNote::Ended { lasted } => (false, lasted.as_secs_f64()),
        })
        .collect();
    (
        &attempt.request,
        attempt.number,
        attempt.status,
        error.map(|kind| (class_name(kind), kind.without_content())),
        began.as_secs_f64(),
        attempt.seconds_taken,
        attempt.seconds_waited,
        attempt.again_in.map(|wait| wait.as_secs_f64()),
        outages,
    )
        .into_pyobject(py)
}
