//! Attempts as reported to telemetry: logs and traces.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::error::{ErrorKind, Misfit};

// The most attempts buffered; beyond that, the oldest are dropped and counted.
const MOST_KEPT: usize = 10_000;

/// One completed attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The request, relative to the base URL: `/external/users/42`.
    pub request: String,
    /// 1 for the first attempt of a request.
    pub number: usize,
    pub status: Option<u16>,
    /// What went wrong, if no usable response came.
    pub error: Option<Trouble>,
    pub began: SystemTime,
    pub seconds_taken: f64,
    /// How long the client waited before this attempt.
    pub seconds_waited: f64,
    /// The wait before the next attempt, if there is one.
    pub again_in: Option<Duration>,
    /// The outage that it was the first to probe, or that it ended.
    pub outages: Vec<OutageNote>,
}

/// What an attempt told of an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageNote {
    /// An outage began, this long before the attempt.
    Began { before: Duration },
    /// This attempt was answered: the outage is over.
    Ended { lasted: Duration },
}

/// An error as logs and traces may show it, without any part of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// The class of `backread.errors` to raise if retries do not help.
    pub class: &'static str,
    pub text: String,
}

impl Trouble {
    /// `None` if the status says it all.
    pub fn of(kind: &ErrorKind) -> Option<Self> {
        let class = match kind {
            ErrorKind::Status(_) => return None,
            ErrorKind::Connect(_) | ErrorKind::Insecure(_) | ErrorKind::ProxyPassword => {
                "ConnectError"
            }
            ErrorKind::Timeout(_) => "RequestTimeoutError",
            ErrorKind::TruncatedBody(_) => "TruncatedBodyError",
            ErrorKind::ResponseTooLarge { .. } => "ResponseTooLargeError",
            ErrorKind::DeadlineExceeded { .. } => "DeadlineExceededError",
            ErrorKind::Decode { .. } => "DecodeError",
            _ => "TransportError",
        };
        let text = match kind {
            // Path and reason may come from the service, as the snippet does.
            ErrorKind::Decode { misfit, .. } => match misfit {
                Misfit::NotJson => "the answer is not JSON".to_owned(),
                _ => "the answer is not what the interface says".to_owned(),
            },
            kind => kind.to_string(),
        };
        Some(Self { class, text })
    }
}

/// Buffers the attempts of one operation until they are taken. Requests never wait for that.
#[derive(Default)]
pub struct Observer {
    kept: Mutex<Kept>,
    /// Called to wake the reader when a request is to be retried, since that may take a while.
    bell: Mutex<Option<Box<dyn Fn() + Send>>>,
    trace: Vec<(&'static str, String)>,
}

#[derive(Default)]
struct Kept {
    attempts: VecDeque<Observed>,
    left_out: u64,
}

impl fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Observer").finish_non_exhaustive()
    }
}

impl Observer {
    /// With the headers that link its requests to a trace.
    pub fn of_trace(trace: Vec<(&'static str, String)>) -> Self {
        Self {
            trace,
            ..Self::default()
        }
    }

    pub fn trace(&self) -> &[(&'static str, String)] {
        &self.trace
    }

    pub fn put(&self, attempt: Observed) {
        let urgent = attempt.again_in.is_some() || !attempt.outages.is_empty();
        let mut kept = self.kept();
        if kept.attempts.len() == MOST_KEPT {
            kept.attempts.pop_front();
            kept.left_out += 1;
        }
        kept.attempts.push_back(attempt);
        drop(kept);
        if urgent && let Some(ring) = &*lock(&self.bell) {
            ring();
        }
    }

    /// The attempts since the last call, and how many earlier ones were dropped.
    pub fn take(&self) -> (Vec<Observed>, u64) {
        let kept = mem::take(&mut *self.kept());
        (kept.attempts.into(), kept.left_out)
    }

    pub fn ring_with(&self, bell: impl Fn() + Send + 'static) {
        *lock(&self.bell) = Some(Box::new(bell));
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_looks_at_is_bounded_and_counted() {
        let observer = Observer::default();
        for number in 1..=MOST_KEPT + 3 {
            observer.put(Observed {
                request: "/external/users".to_owned(),
                number,
                status: Some(200),
                error: None,
                began: SystemTime::UNIX_EPOCH,
                seconds_taken: 0.0,
                seconds_waited: 0.0,
                again_in: None,
                outages: Vec::new(),
            });
        }
        let (attempts, left_out) = observer.take();
        assert_eq!((attempts.len(), left_out), (MOST_KEPT, 3));
        assert_eq!(attempts.first().map(|attempt| attempt.number), Some(4));
        assert_eq!(observer.take(), (Vec::new(), 0));
    }
}
