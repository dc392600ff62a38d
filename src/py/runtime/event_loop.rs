//! How an event loop hears of the tasks that ended for it: one wake-up for all since the last.

use std::cell::RefCell;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use super::{Held, Inside, Leave, held_already};
use crate::py::kept::{kept, name};
use crate::py::observing::Onlooker;

static GET_RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

thread_local! {
    /// The event loops that ran on this thread.
    static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

struct Known {
    event_loop: Py<PyWeakrefReference>,
    mailbox: Weak<Mailbox>,
    /// That of the process which made it: a forked child has its own.
    held: Weak<Held>,
}

/// The futures of an event loop whose tasks have ended.
struct Mailbox {
    ended: Mutex<Ended>,
    bell: Bell,
}

#[derive(Default)]
struct Ended {
    futures: Vec<Py<PyAny>>,
    /// Those who have something to tell while their calls go on.
    onlookers: Vec<Onlooker>,
    /// The loop will look: no need to ring again.
    rung: bool,
}

/// Tells the event loop when dropped that a task has ended.
pub struct Ending {
    future: Option<Py<PyAny>>,
    mailbox: Arc<Mailbox>,
}

impl Ending {
    /// Has the event loop tell what an onlooker has seen.
    pub fn reminder(&self) -> impl Fn(Onlooker) + Send + 'static {
        let mailbox = Arc::downgrade(&self.mailbox);
        move |onlooker| {
            if let Some(mailbox) = mailbox.upgrade() {
                mailbox.put(|ended| ended.onlookers.push(onlooker));
            }
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.mailbox.put(|ended| ended.futures.push(future));
        }
    }
}

/// Makes what event loops need; see `crate::py::prepare`.
pub fn prepare(py: Python<'_>) {
    py.get_type::<Opener>();
}

/// A future of the running event loop, and what sets it done.
pub fn ending<'py>(py: Python<'py>, held: &Arc<Held>) -> PyResult<(Bound<'py, PyAny>, Ending)> {
    let get_running_loop = kept(py, &GET_RUNNING_LOOP, || {
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
    let mailbox = match known(&event_loop, held) {
        Some(mailbox) => mailbox,
        None => new_mailbox(&event_loop, held)?,
    };
    let future = event_loop.call_method0(name!(py, "create_future"))?;
    let ending = Ending {
        future: Some(future.clone().unbind()),
        mailbox,
    };
    Ok((future, ending))
}

fn known(event_loop: &Bound<'_, PyAny>, held: &Arc<Held>) -> Option<Arc<Mailbox>> {
    KNOWN.with_borrow(|known| {
        known
            .iter()
            .filter(|known| known.held.as_ptr() == Arc::as_ptr(held))
            .find(|known| {
                let known = known.event_loop.bind(event_loop.py()).upgrade();
                known.is_some_and(|known| known.is(event_loop))
            })
            .and_then(|known| known.mailbox.upgrade())
    })
}

fn new_mailbox(event_loop: &Bound<'_, PyAny>, held: &Arc<Held>) -> PyResult<Arc<Mailbox>> {
    let weak = PyWeakrefReference::new(event_loop)?.unbind();
    let mailbox = Bell::of(event_loop, &weak)?;
    let new = Known {
        event_loop: weak,
        mailbox: Arc::downgrade(&mailbox),
        held: Arc::downgrade(held),
    };
    KNOWN.with(|known| {
        if let Ok(mut known) = known.try_borrow_mut() {
            known.retain(|known| known.mailbox.strong_count() > 0);
            known.push(new);
        }
    });
    Ok(mailbox)
}

impl Mailbox {
    fn new(bell: Bell) -> Arc<Self> {
        Arc::new(Self {
            ended: Mutex::default(),
            bell,
        })
    }

    fn put(self: &Arc<Self>, add: impl FnOnce(&mut Ended)) {
        let mut ended = self.ended();
        add(&mut ended);
        if !mem::replace(&mut ended.rung, true) {
            drop(ended);
            self.bell.ring(self);
        }
    }

    fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets done what has ended, on the loop's thread.
    fn empty(&self, py: Python<'_>) -> PyResult<()> {
        self.bell.silence();
        let Ended {
            futures, onlookers, ..
        } = mem::take(&mut *self.ended());
        for future in futures {
            let future = future.bind(py);
            // One that was cancelled is done already.
            if !future.call_method0(name!(py, "done"))?.is_truthy()? {
                future.call_method1(name!(py, "set_result"), (py.None(),))?;
            }
        }
        onlookers.iter().try_for_each(|onlooker| onlooker.tell(py))
    }
}

/// What the event loop calls when the bell has rung.
#[pyclass(frozen, module = "backread._backread")]
struct Opener(Arc<Mailbox>);

#[pymethods]
impl Opener {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        // In an exit handler there is nobody left to wait for.
        let _inside = Inside::enter(py, Leave::Nowhere);
        self.0.empty(py)
    }
}

/// What wakes an event loop.
enum Bell {
    /// A socket that it reads, where it can: the workers ring without the GIL. Both ends are held
    /// until nobody can ring any more.
    #[cfg(unix)]
    Socket {
        read: std::os::unix::net::UnixStream,
        write: std::os::unix::net::UnixStream,
    },
    /// A call of the loop's own, by a thread that waits for the GIL.
    Call(Py<PyWeakrefReference>),
}

impl Bell {
    #[cfg(unix)]
    fn of(event_loop: &Bound<'_, PyAny>, weak: &Py<PyWeakrefReference>) -> PyResult<Arc<Mailbox>> {
        use std::os::fd::AsRawFd;

        let py = event_loop.py();
        let (read, write) = std::os::unix::net::UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        let descriptor = read.as_raw_fd();
        let mailbox = Mailbox::new(Self::Socket { read, write });
        let opener = Opener(Arc::clone(&mailbox));
        match event_loop.call_method1(name!(py, "add_reader"), (descriptor, opener)) {
            Ok(_) => Ok(mailbox),
            Err(error) if error.is_instance_of::<PyNotImplementedError>(py) => {
                Ok(Mailbox::new(Self::Call(weak.clone_ref(py))))
            }
            Err(error) => Err(error),
        }
    }

    #[cfg(not(unix))]
    fn of(event_loop: &Bound<'_, PyAny>, weak: &Py<PyWeakrefReference>) -> PyResult<Arc<Mailbox>> {
        Ok(Mailbox::new(Self::Call(weak.clone_ref(event_loop.py()))))
    }

    fn ring(&self, mailbox: &Arc<Mailbox>) {
        match self {
            #[cfg(unix)]
            Self::Socket { write, .. } => {
                use std::io::Write;
                // A full socket is one that will be read.
                let _ = (&*write).write(&[0]);
            }
            Self::Call(_) => {
                if let Some(held) = held_already() {
                    let mailbox = Arc::clone(mailbox);
                    held.handle
                        .spawn_blocking(move || mailbox.bell.call(&mailbox));
                }
            }
        }
    }

    fn call(&self, mailbox: &Arc<Mailbox>) {
        // A loop that is closed by now has nobody who waits.
        let _ = Python::attach(|py| -> PyResult<()> {
            if let Self::Call(event_loop) = self
                && let Some(event_loop) = event_loop.bind(py).upgrade()
            {
                let opener = (Opener(Arc::clone(mailbox)),);
                event_loop.call_method1(name!(py, "call_soon_threadsafe"), opener)?;
            }
            Ok(())
        });
    }

    fn silence(&self) {
        #[cfg(unix)]
        if let Self::Socket { read, .. } = self {
            use std::io::Read;
            let _ = (&*read).read(&mut [0; 8]);
        }
    }
}
