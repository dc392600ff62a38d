//! The redirects that an attempt has followed.

use std::time::Duration;

use crate::core::client::failure::Failure;
use crate::core::wire::{MOST_REDIRECTS, Target, too_many};

/// The redirects of one attempt so far.
#[derive(Default)]
pub(super) struct Redirects {
    pub(super) target: Option<Target>,
    pub(super) count: u32,
    /// How long they took: the timeout is over all of them.
    pub(super) took: Duration,
}

impl Redirects {
    /// The redirects with the one that an attempt ended in; `None` if it ended in none, or if there
    /// are too many, which is then its error.
    pub(super) fn follow<T>(
        &self,
        outcome: &mut Result<T, Failure>,
        took: Duration,
    ) -> Option<Self> {
        let Err(failure) = outcome else {
            return None;
        };
        let target = failure.moved_to.take()?;
        if self.count == MOST_REDIRECTS {
            failure.kind = too_many();
            failure.transient = false;
            return None;
        }
        Some(Self {
            target: Some(target),
            count: self.count + 1,
            took: self.took + took,
        })
    }
}
