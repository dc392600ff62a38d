//! Which row fails a page: one that the service cannot render, or not in time.
//!
//! Nothing here is retried as requests usually are: the page was.

use super::page_request::PageRequest;
use super::says_past_end;
use crate::api::Limit;
use crate::decode::page::Page;
use crate::error::{Error, ErrorKind};
use crate::retry::is_transient;

/// This many rows after a failing one are tried: if none can be read, rows are not to blame.
const TRIED: u64 = 3;
/// This often a row is tried that seems to fail: that could be chance.
const TRIED_ALONE: u32 = 3;

/// What can be read of a page that fails.
pub(super) enum Found {
    /// The longest page from the same offset, and its limit; the row after it seems to fail.
    Before(Page, Limit),
    /// The same, but the row after it can be read: no longer page is answered.
    Longest(Page, Limit),
    /// The first row fails, and one soon after it can be read.
    RowFails,
    Nothing,
}

/// Whether an error may be the fault of a row of the page that was requested.
pub fn fails_for_its_rows(error: &Error) -> bool {
    match &error.kind {
        ErrorKind::Status(failure) => matches!(failure.status, 500..=510 | 512..=599),
        ErrorKind::Connect(_)
        | ErrorKind::NotHttp(_)
        | ErrorKind::Timeout(_)
        | ErrorKind::TruncatedBody(_)
        | ErrorKind::Transport(_)
        | ErrorKind::Decode { .. } => true,
        _ => false,
    }
}

/// Whether an error says nothing about rows, so that looking further is no use: the time is over, the
/// secret is refused, the client was closed.
pub fn ends_search(error: &Error) -> bool {
    let retried = error.status() != Some(429) && is_transient(&error.kind);
    !(retried || fails_for_its_rows(error) || error.is_too_large() || says_past_end(error))
}

/// The longest page from an offset that can be read, if any is: shorter ones than `failing`, which
/// fails as `fails` says.
pub(super) async fn longest_read(
    request: &mut PageRequest<'_>,
    offset: u64,
    mut failing: Limit,
    fails: impl Fn(&Error) -> bool,
) -> Result<Option<(Page, Limit)>, Error> {
    // A single row first: it tells a row that fails from a service that does.
    let (mut tried, mut longest) = (Limit::SMALLEST, None);
    while tried < failing {
        match request.send_once(offset, tried).await {
            Ok(page) => longest = Some((page, tried)),
            Err(error) if fails(&error) => failing = tried,
            Err(error) => return Err(error),
        }
        let Some((_, readable)) = longest else {
            break;
        };
        tried = readable.next().max(readable.midpoint(failing));
    }
    Ok(longest)
}

/// Looks for the row that fails a page: some eight requests for a page of 99, two to four if the
/// service fails altogether.
pub(super) async fn longest_page(
    request: &mut PageRequest<'_>,
    offset: u64,
    failing: Limit,
    any_read: bool,
) -> Result<Found, Error> {
    let longest = longest_read(request, offset, failing, |error| !ends_search(error)).await?;
    let Some((page, limit)) = longest else {
        return Ok(match is_next_read(request, offset, any_read).await? {
            true => Found::RowFails,
            false => Found::Nothing,
        });
    };
    let next = offset + u64::from(limit.get());
    match request.send_once(next, Limit::SMALLEST).await {
        Ok(_) => Ok(Found::Longest(page, limit)),
        Err(error) if ends_search(&error) => Err(error),
        Err(_) => Ok(Found::Before(page, limit)),
    }
}

/// The row at an offset; `None` if it fails each time. The page with it was retried for a while, and
/// more waiting would let rows move.
pub(super) async fn read_alone(
    request: &mut PageRequest<'_>,
    offset: u64,
) -> Result<Option<Page>, Error> {
    for _ in 0..TRIED_ALONE {
        match request.send_once(offset, Limit::SMALLEST).await {
            Ok(page) => return Ok(Some(page)),
            Err(error) if ends_search(&error) => return Err(error),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Whether one of a list's first rows can be read.
pub async fn is_any_read(request: &mut PageRequest<'_>) -> Result<bool, Error> {
    match request.send_once(0, Limit::SMALLEST).await {
        Ok(page) => Ok(!page.rows.is_empty()),
        Err(error) if ends_search(&error) => Err(error),
        Err(_) => is_next_read(request, 0, false).await,
    }
}

/// Whether a row soon after a failing one can be read. If `any_read`, it may also be the last one:
/// otherwise an empty page says no more than that the service can send one.
pub(super) async fn is_next_read(
    request: &mut PageRequest<'_>,
    offset: u64,
    any_read: bool,
) -> Result<bool, Error> {
    for next in 1..=TRIED {
        match request.send_once(offset + next, Limit::SMALLEST).await {
            Ok(page) => return Ok(any_read || !page.rows.is_empty()),
            Err(error) if ends_search(&error) => return Err(error),
            // A service that does not answer costs a timeout each time.
            Err(error) if !fails_for_its_rows(&error) || !error.is_an_answer() => {
                return Ok(any_read && says_past_end(&error));
            }
            Err(_) => {}
        }
    }
    Ok(false)
}
