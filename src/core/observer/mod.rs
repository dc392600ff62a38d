//! Attempts as reported to telemetry: logs and traces.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use super::error::ErrorKind;
use super::lock;

// The most attempts buffered; beyond that, the oldest are dropped and counted.
const MOST_BUFFERED: usize = 10_000;

/// One completed attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The request, relative to the base URL: `/external/users/42`.
    pub request: String,
    /// 1 for the first attempt of a request.
    pub number: usize,
    pub status: Option<u16>,
    /// What went wrong, unless the status says it all.
    pub error: Option<ErrorKind>,
    pub began: SystemTime,
    pub seconds_taken: f64,
    /// How long the client waited before this attempt.
    pub seconds_waited: f64,
    /// The wait before the next attempt, if there is one.
    pub again_in: Option<Duration>,
    /// The outage that it was the first to probe, or that it ended.
    pub outages: Vec<OutageNote>,
}

/// What an attempt showed about an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageNote {
    /// An outage began, this long before the attempt.
    Began { before: Duration },
    /// This attempt was answered: the outage is over.
    Ended { lasted: Duration },
}

/// Buffers the attempts of one operation until they are taken. Requests never wait for that.
#[derive(Default)]
pub struct Observer {
    buffer: Mutex<Buffer>,
    /// Called to wake the reader when a request is to be retried, since that may take a while.
    wake: Mutex<Option<Box<dyn Fn() + Send>>>,
    trace: Vec<(&'static str, String)>,
}

#[derive(Default)]
struct Buffer {
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
        let mut buffer = self.buffer();
        if buffer.attempts.len() == MOST_BUFFERED {
            buffer.attempts.pop_front();
            buffer.left_out += 1;
        }
        buffer.attempts.push_back(attempt);
        drop(buffer);
        if urgent && let Some(wake) = &*lock(&self.wake) {
            wake();
        }
    }

    /// The attempts since the last call, and how many earlier ones were dropped.
    pub fn take(&self) -> (Vec<Observed>, u64) {
        let buffer = mem::take(&mut *self.buffer());
        (buffer.attempts.into(), buffer.left_out)
    }

    pub fn wake_with(&self, wake: impl Fn() + Send + 'static) {
        *lock(&self.wake) = Some(Box::new(wake));
    }

    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        lock(&self.buffer)
    }
}
