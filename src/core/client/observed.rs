//! Reporting each attempt to the observer.

use std::time::Duration;

use super::Client;
use super::sending::Request;
use crate::error::{Attempt, ErrorKind};
use crate::observer::{Observed, OutageNote};

impl Client {
    /// Reports the last of these attempts.
    pub(super) fn observe(
        &self,
        request: &Request<'_>,
        attempts: &[Attempt],
        failure: Option<&ErrorKind>,
        again_in: Option<Duration>,
        outages: Vec<OutageNote>,
    ) {
        let (Some(observer), Some(last)) = (&self.observer, attempts.last()) else {
            return;
        };
        let taken = Duration::try_from_secs_f64(last.seconds_taken).unwrap_or_default();
        let now = self.clock.wall();
        observer.put(Observed {
            request: request.to_string(),
            number: attempts.len(),
            status: last.status,
            error: failure
                .filter(|kind| !matches!(kind, ErrorKind::Status(_)))
                .cloned(),
            began: now.checked_sub(taken).unwrap_or(now),
            seconds_taken: last.seconds_taken,
            seconds_waited: last.seconds_waited,
            again_in,
            outages,
        });
    }
}
