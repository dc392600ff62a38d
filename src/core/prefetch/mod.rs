//! Streams of items whose work runs ahead of its reader by a bounded number of them.
//!
//! All reading goes through [`Prefetch`]: it alone spawns the work, bounds and cancels it, and
//! passes on its errors. The work puts its items into a [`Sink`]: the stream's [`Outlet`], or an
//! adapter in front of it. [`gathered`] combines the items of one stream into the larger ones of
//! another.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::error::{Error, ErrorKind};
use super::process;

// Items prefetched by default, not counting the one being made and the one being read.
const AHEAD: usize = 1;

/// Where work puts its items, one after the other.
pub trait Sink<T>: Send + Sync {
    /// Waits while the reader is behind. False if there is no reader any more, so the work may end.
    fn put(&self, item: T) -> impl Future<Output = bool> + Send;
}

/// Converts items on their way to a sink.
#[derive(Debug)]
pub struct Mapped<'a, S, F> {
    pub sink: &'a S,
    pub convert: F,
}

impl<T: Send, U: Send, S: Sink<U>, F: Fn(T) -> U + Send + Sync> Sink<T> for Mapped<'_, S, F> {
    fn put(&self, item: T) -> impl Future<Output = bool> + Send {
        self.sink.put((self.convert)(item))
    }
}

/// Where the prefetching task puts its items.
pub struct Outlet<T>(mpsc::Sender<Item<T>>);

// The end is explicit: a task that stops without one has failed, and must not look complete.
enum Item<T> {
    Made(T),
    Failed(Error),
    End,
}

impl<T: Send> Sink<T> for Outlet<T> {
    async fn put(&self, item: T) -> bool {
        self.0.send(Item::Made(item)).await.is_ok()
    }
}

/// Combines items into larger ones.
pub trait Gather<T>: Send + 'static {
    type Gathered: Send + 'static;

    fn take(&mut self, item: T) -> Result<(), Error>;

    fn is_empty(&self) -> bool;

    /// Whether what was gathered is to be passed on.
    fn is_full(&self) -> bool;

    /// What was gathered since the last call.
    fn finish(&mut self) -> Result<Self::Gathered, Error>;
}

/// The items of a stream, combined in a task that works on at most one ahead of the reader. What
/// was gathered is passed on once it is full or `most_age` old, and before an error.
pub fn gathered<T: Send + 'static, G: Gather<T>>(
    source: impl AsRef<Prefetch<T>> + Send + 'static,
    mut gather: G,
    most_age: Option<Duration>,
) -> Prefetch<G::Gathered> {
    Prefetch::new(move |outlet: Outlet<G::Gathered>| async move {
        // Gather only once there is room: a killed reader loses what was gathered ahead.
        while outlet.0.reserve().await.is_ok() {
            let ended = fill(source.as_ref(), &mut gather, most_age).await;
            while !gather.is_empty() {
                outlet.put(gather.finish()?).await;
                // What is left over comes with more, unless there is no more.
                if ended.is_none() {
                    break;
                }
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
        Ok(())
    })
}

/// Gathers until it is time to pass on; also returns how the source ended, if it did.
async fn fill<T: Send + 'static>(
    source: &Prefetch<T>,
    gather: &mut impl Gather<T>,
    most_age: Option<Duration>,
) -> Option<Result<(), Error>> {
    let soon = || most_age.and_then(|age| Instant::now().checked_add(age));
    // What the last one left over waits, too.
    let mut due = if gather.is_empty() { None } else { soon() };
    while !gather.is_full() {
        let next = match due {
            None => source.next().await,
            Some(due) => match timeout_at(due, source.next()).await {
                Ok(next) => next,
                Err(_) => return None,
            },
        };
        let taken = match next {
            Ok(Some(item)) => gather.take(item),
            Ok(None) => return Some(Ok(())),
            Err(error) => Err(error),
        };
        if let Err(error) = taken {
            return Some(Err(error));
        }
        if due.is_none() && !gather.is_empty() {
            due = soon();
        }
    }
    None
}

type Work<T> = Box<dyn FnOnce(Outlet<T>) -> BoxFuture<'static, Result<(), Error>> + Send>;

enum State<T> {
    Idle(Work<T>),
    Running(mpsc::Receiver<Item<T>>),
    /// It failed, but the error was not returned yet.
    Failed(Error),
    Ended,
}

/// A stream of items whose work starts at the first `next` and is aborted on drop.
pub struct Prefetch<T> {
    state: Mutex<State<T>>,
    task: OnceLock<AbortHandle>,
    stopped: AtomicBool,
    ahead: usize,
    process: u32,
}

impl<T> AsRef<Self> for Prefetch<T> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<T> fmt::Debug for Prefetch<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Prefetch")
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Prefetch<T> {
    pub fn new<F>(work: impl FnOnce(Outlet<T>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        Self::with_room(AHEAD, work)
    }

    /// A prefetch whose work may run this many items ahead of the reader.
    pub fn with_room<F>(ahead: usize, work: impl FnOnce(Outlet<T>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        Self {
            state: Mutex::new(State::Idle(Box::new(move |outlet| Box::pin(work(outlet))))),
            task: OnceLock::new(),
            stopped: AtomicBool::new(false),
            ahead,
            process: process::id(),
        }
    }

    /// The next item; `None` at the end, after an error and once stopped. Cancel-safe: dropping the
    /// future loses nothing.
    pub async fn next(&self) -> Result<Option<T>, Error> {
        Ok(self.next_ready(1).await?.pop())
    }

    /// All items that are ready, at least one and at most `most`; none at the end. Otherwise like
    /// `next`: an error comes after the items made before it.
    pub async fn next_ready(&self, most: usize) -> Result<Vec<T>, Error> {
        self.check_process()?;
        let mut state = self.state.lock().await;
        if self.stopped.load(Ordering::Acquire) {
            *state = State::Ended;
        }
        if matches!(*state, State::Idle(_))
            && let State::Idle(work) = std::mem::replace(&mut *state, State::Ended)
        {
            *state = State::Running(self.begin(work));
        }
        let made = match &mut *state {
            State::Running(receiver) => {
                let (made, last) = self.receive(receiver, most).await;
                if let Some(last) = last {
                    *state = last;
                }
                made
            }
            _ => Vec::new(),
        };
        if made.is_empty()
            && matches!(*state, State::Failed(_))
            && let State::Failed(error) = std::mem::replace(&mut *state, State::Ended)
        {
            return Err(error);
        }
        Ok(made)
    }

    /// Waits for items; also returns the state after them, if they were the last.
    async fn receive(
        &self,
        receiver: &mut mpsc::Receiver<Item<T>>,
        most: usize,
    ) -> (Vec<T>, Option<State<T>>) {
        let mut received = Vec::new();
        receiver.recv_many(&mut received, most).await;
        if received.is_empty() {
            let stopped = self.stopped.load(Ordering::Acquire);
            let aborted = || State::Failed(Error::new(ErrorKind::Aborted));
            let last = if stopped { State::Ended } else { aborted() };
            return (Vec::new(), Some(last));
        }
        let mut made = Vec::with_capacity(received.len());
        let mut last = None;
        for item in received {
            match item {
                Item::Made(item) => made.push(item),
                Item::Failed(error) => last = Some(State::Failed(error)),
                Item::End => last = Some(State::Ended),
            }
        }
        (made, last)
    }

    fn begin(&self, work: Work<T>) -> mpsc::Receiver<Item<T>> {
        let (sender, receiver) = mpsc::channel(self.ahead);
        let task = tokio::spawn(async move {
            let last = match work(Outlet(sender.clone())).await {
                Ok(()) => Item::End,
                Err(error) => Item::Failed(error),
            };
            // The send fails if there is no reader any more, which is fine.
            let _ = sender.send(last).await;
        });
        let _ = self.task.set(task.abort_handle());
        receiver
    }
}

impl<T> Prefetch<T> {
    /// Fails in a forked child: it has neither the work nor the threads that hold the locks.
    pub fn check_process(&self) -> Result<(), Error> {
        if self.process == process::id() {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::OtherProcess))
        }
    }

    /// Stops the work and drops prefetched items.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        // A forked child holds a copy of the handle, but the task belongs to its parent.
        if self.check_process().is_ok()
            && let Some(task) = self.task.get()
        {
            task.abort();
        }
    }
}

impl<T> Drop for Prefetch<T> {
    fn drop(&mut self) {
        self.stop();
        if self.check_process().is_err() {
            // Dropping the parent's channel would wake its task and wait for its locks.
            std::mem::forget(std::mem::replace(self.state.get_mut(), State::Ended));
        }
    }
}
