//! The timeout for the head of a request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Counted from the accept, or from the first byte of a later head. It is real time, whatever the
/// lanes' clocks show.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The state of one connection between two heads.
#[derive(Debug)]
pub struct Heads(Mutex<State>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Between two requests, for as long as the client likes.
    Idle,
    /// A head is due.
    Due(Instant),
    /// A request is being answered; `more` says whether bytes arrived meanwhile.
    Answering { more: bool },
}

/// A guard: a request is being answered until it is dropped.
#[derive(Debug)]
pub struct Answering(Arc<Heads>);

impl Heads {
    /// The state of a new connection.
    pub fn new() -> Self {
        Self(Mutex::new(State::due()))
    }

    /// Records that bytes arrived.
    pub fn bytes_came(&self) {
        let mut state = self.state();
        *state = match *state {
            State::Idle => State::due(),
            State::Answering { .. } => State::Answering { more: true },
            due @ State::Due(_) => due,
        };
    }

    /// Records that a head is complete.
    pub fn answering(self: &Arc<Self>) -> Answering {
        *self.state() = State::Answering { more: false };
        Answering(Arc::clone(self))
    }

    /// The deadline of the head that has begun, if any.
    pub fn due(&self) -> Option<Instant> {
        match *self.state() {
            State::Due(deadline) => Some(deadline),
            _ => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn due() -> Self {
        Self::Due(Instant::now() + TIMEOUT)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if let State::Answering { more } = *state {
            // They may be the start of the next head.
            *state = if more { State::due() } else { State::Idle };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_due_from_its_first_byte_until_it_is_whole() {
        let heads = Arc::new(Heads::new());
        let first = heads.due();
        heads.bytes_came();
        assert!(first.is_some() && heads.due() == first);
        let answering = heads.answering();
        assert_eq!(heads.due(), None);
        drop(answering);
        assert_eq!(heads.due(), None);
        heads.bytes_came();
        assert!(heads.due() > first);
        let answering = heads.answering();
        heads.bytes_came();
        assert_eq!(heads.due(), None);
        drop(answering);
        assert!(heads.due() > first);
    }
}
