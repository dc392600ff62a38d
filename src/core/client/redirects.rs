//! The redirects that an attempt has followed.

use std::time::Duration;

use super::failure::Failure;
use crate::api::EXTERNAL;
use crate::error::{ErrorKind, Misfit};
use crate::wire::{MOST_REDIRECTS, Target, too_many};

/// The redirects of one attempt so far.
#[derive(Default)]
pub struct Redirects {
    pub target: Option<Target>,
    pub count: u32,
    /// How long they took: the timeout is over all of them.
    pub took: Duration,
}

impl Redirects {
    /// Names the cause of a failure behind a redirect to something else, such as a login page:
    /// requesting it again does not help.
    pub fn explain(&self, mut failure: Failure) -> Failure {
        if let Some(path) = self.target.as_ref().map(Target::path)
            && !path.contains(EXTERNAL)
            && let ErrorKind::Decode { reason, misfit, .. } = &mut failure.kind
            && *misfit == Misfit::NotJson
        {
            *reason = format!("it came after a redirect to {path}, perhaps a login: {reason}");
            failure.transient = false;
        }
        failure
    }

    /// The redirects with the one that an attempt ended in; `None` if it ended in none, or if there
    /// are too many, which is then its error.
    pub fn follow<T>(&self, outcome: &mut Result<T, Failure>, took: Duration) -> Option<Self> {
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
