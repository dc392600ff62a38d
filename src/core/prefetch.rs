//! Work that runs ahead of its reader by a bounded number of items.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc};
use tokio::task::AbortHandle;

use super::error::{Error, ErrorKind};

// Items prefetched by default, not counting the one being made and the one being read.
const AHEAD: usize = 1;

/// Where the prefetching task puts its items; it waits while the reader is behind.
pub struct Outlet<T>(mpsc::Sender<Item<T>>);

// The end is explicit: a task that stops without one has failed, and must not look complete.
enum Item<T> {
    Made(T),
    Failed(Error),
    End,
}

impl<T> Clone for Outlet<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Outlet<T> {
    /// False if there is no reader any more, so the work may end.
    pub async fn put(&self, item: T) -> bool {
        self.0.send(Item::Made(item)).await.is_ok()
    }

    /// Waits until there is room for an item; false if there is no reader any more.
    pub async fn room(&self) -> bool {
        self.0.reserve().await.is_ok()
    }
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

    /// A prefetch whose task may run this many items ahead of the reader.
    pub fn with_room<F>(ahead: usize, work: impl FnOnce(Outlet<T>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        Self {
            state: Mutex::new(State::Idle(Box::new(move |outlet| Box::pin(work(outlet))))),
            task: OnceLock::new(),
            stopped: AtomicBool::new(false),
            ahead,
            process: std::process::id(),
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
        let mut made = Vec::new();
        if let State::Running(receiver) = &mut *state {
            let mut received = Vec::new();
            receiver.recv_many(&mut received, most).await;
            let silent = received.is_empty();
            let mut last = None;
            for item in received {
                match item {
                    Item::Made(item) => made.push(item),
                    Item::Failed(error) => last = Some(State::Failed(error)),
                    Item::End => last = Some(State::Ended),
                }
            }
            if silent {
                last = Some(match self.stopped.load(Ordering::Acquire) {
                    true => State::Ended,
                    false => State::Failed(Error::new(ErrorKind::Aborted)),
                });
            }
            if let Some(last) = last {
                *state = last;
            }
        }
        if made.is_empty() && matches!(*state, State::Failed(_)) {
            let failed = std::mem::replace(&mut *state, State::Ended);
            if let State::Failed(error) = failed {
                return Err(error);
            }
        }
        Ok(made)
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
        match self.process == std::process::id() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::OtherProcess)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_stops_without_a_word_is_not_taken_for_done() {
        let prefetch = Prefetch::new(|outlet: Outlet<u8>| async move {
            outlet.put(1).await;
            panic!("a fault");
        });
        assert_eq!(prefetch.next().await, Ok(Some(1)));
        let error = prefetch.next().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Aborted);
        assert_eq!(prefetch.next().await, Ok(None));
    }

    #[tokio::test]
    async fn a_reader_that_stops_ends_the_work() {
        let (told, ended) = tokio::sync::oneshot::channel::<()>();
        let prefetch = Prefetch::new(|outlet: Outlet<u64>| async move {
            let _told_when_dropped = told;
            for item in 0.. {
                outlet.put(item).await;
            }
            Ok(())
        });
        assert_eq!(prefetch.next().await, Ok(Some(0)));
        prefetch.stop();
        assert_eq!(prefetch.next().await, Ok(None));
        assert!(ended.await.is_err());
    }

    #[tokio::test]
    async fn a_dropped_wait_loses_nothing() {
        let (go, gate) = tokio::sync::oneshot::channel::<()>();
        let prefetch = Prefetch::new(|outlet: Outlet<u64>| async move {
            let _ = gate.await;
            outlet.put(7).await;
            Ok(())
        });
        let dropped =
            tokio::time::timeout(std::time::Duration::from_millis(1), prefetch.next()).await;
        assert!(dropped.is_err());
        go.send(()).unwrap();
        assert_eq!(prefetch.next().await, Ok(Some(7)));
        assert_eq!(prefetch.next().await, Ok(None));
    }
}
