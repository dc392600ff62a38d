//! Whether a list that cannot be read is only skipped, or ends the call.
//!
//! A list is given up once its retries are exhausted, if the service meanwhile answers other
//! requests. If it answers none, the service is down, and the call fails with the original error.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::api::{Limit, List};
use crate::budget::Budget;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::lock;
use crate::walk::failing_pages::{ends_search, fails_for_its_rows};

/// After this many unreadable lists in a row, the lists are not to blame.
pub const MOST_IN_A_ROW: u64 = 50;
// One answer may fail by chance.
const PROBES: u32 = 3;
const BETWEEN_PROBES: Duration = Duration::from_millis(500);
// A wrong secret or a rate limit affects every list.
const OF_EVERY_LIST: [u16; 2] = [401, 429];

/// The lists of one call that could not be read.
#[derive(Debug, Default)]
pub struct UnreadLists {
    in_a_row: AtomicU64,
    any_read: AtomicBool,
    last_given_up: Mutex<Option<Error>>,
}

impl UnreadLists {
    /// Records that a list was read to its end.
    pub fn note_read(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
        self.any_read.store(true, Ordering::Relaxed);
    }

    /// Ends the call: it fails if lists failed and none was read.
    pub fn end(&self) -> Result<(), Error> {
        match lock(&self.last_given_up).take() {
            Some(error) if !self.any_read.load(Ordering::Relaxed) => Err(error),
            _ => Ok(()),
        }
    }

    /// Gives up a failed list and returns the reason in words, or the error if it must end the
    /// call. A list that could not be read the last time either (`again`) says nothing new about
    /// the service.
    pub async fn give_up(
        &self,
        client: &Client,
        budget: &Budget,
        error: Error,
        again: bool,
    ) -> Result<String, Error> {
        if !may_be_of_one_list(&error) || !others_are_answered(client, budget, &error).await? {
            return Err(error);
        }
        if !again && self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_IN_A_ROW {
            return Err(error);
        }
        // Reasons are stored and shown, and the error may quote the answer.
        let reason = format!("it could not be read: {}", error.without_content());
        *lock(&self.last_given_up) = Some(error);
        Ok(reason)
    }
}

/// Whether the service refuses a page, and will again.
pub fn is_refusal(error: &Error) -> bool {
    let status = error.status();
    status.is_some_and(|status| matches!(status, 400 | 402 | 404..=407 | 409..=428 | 430..=499))
}

/// Whether a page of users that failed can never be read, though the service answers others: the
/// list ends before it.
pub async fn is_never_read(client: &Client, budget: &Budget, error: &Error) -> bool {
    match &error.kind {
        ErrorKind::Decode { .. } => true,
        ErrorKind::Status(failure) if failure.status < 500 => is_refusal(error),
        ErrorKind::Status(_)
        | ErrorKind::Timeout(_)
        | ErrorKind::TruncatedBody(_)
        | ErrorKind::ResponseTooLarge { .. } => {
            let once = client.with(|call| call.options.max_retries = 0);
            let first = once.page(List::Users, 0, Limit::SMALLEST, budget).await;
            first.is_ok()
        }
        _ => false,
    }
}

fn may_be_of_one_list(error: &Error) -> bool {
    match error.status() {
        Some(status) => !OF_EVERY_LIST.contains(&status),
        None => fails_for_its_rows(error) || error.is_too_large(),
    }
}

/// Whether the service has answered another request since the last attempt began, or answers one
/// now.
async fn others_are_answered(
    client: &Client,
    budget: &Budget,
    error: &Error,
) -> Result<bool, Error> {
    let taken = error.attempts.last().map_or(0.0, |last| last.seconds_taken);
    let taken = Duration::try_from_secs_f64(taken).unwrap_or_default();
    if client.was_answered_within(taken) {
        return Ok(true);
    }
    let once = client.with(|call| call.options.max_retries = 0);
    for attempt in 1..=PROBES {
        match once.page(List::Users, 0, Limit::SMALLEST, budget).await {
            Ok(_) => return Ok(true),
            Err(probe) if is_answered(&probe, error) => return Ok(true),
            Err(probe) if probe.status().is_none() && ends_search(&probe) => return Err(probe),
            Err(_) if attempt < PROBES => {
                client.clock().sleep_between_calls(BETWEEN_PROBES).await;
            }
            Err(_) => {}
        }
    }
    Ok(false)
}

/// Whether the response to the probe shows that the service is up, although it is none that was asked
/// for: too large, or refused for a reason that is not the list's.
fn is_answered(probe: &Error, error: &Error) -> bool {
    let refused = |status| (400..500).contains(&status) && status != 401;
    probe.is_too_large()
        || probe.status() == Some(429)
        || (probe.status().is_some_and(refused) && probe.status() != error.status())
}
