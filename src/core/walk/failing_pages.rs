//! Pages that cannot be read as requested: those that exceed `max_response_bytes`, and those that fail
//! although the service answers others. They are requested in halves, down to one row, which is left
//! out if the row after it can be read.

use std::mem::take;
use std::sync::{Mutex, MutexGuard};

use super::says_past_end;
use super::unread::is_refusal;
use crate::api::{Limit, List};
use crate::budget::Budget;
use crate::client::{Client, Read};
use crate::decode::page::{Page, Unreadable};
use crate::error::{Attempt, Error, ErrorKind};
use crate::lock;
use crate::retry::is_transient;

// This often a row is requested alone: that it fails once could be chance.
const TRIED_ALONE: u32 = 3;
// Pages of so few rows grow again: they cannot share rows with others and have new ones.
const FEW_ROWS: u64 = 2;

/// Reads the pages of one list.
#[derive(Debug)]
pub(super) struct PageReader {
    /// Whether the first page is read around a row that fails it, too.
    searches_first: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many rows a page may have, after a longer one could not be read,
    fitting: Option<Limit>,
    /// because it was too large; then later ones may have more.
    too_large: bool,
    any_read: bool,
    /// The total of the page that was read last.
    total: Option<u64>,
}

impl PageReader {
    pub fn new(searches_first: bool) -> Self {
        Self {
            searches_first,
            state: Mutex::default(),
        }
    }

    /// One page, with fewer rows than requested if those cannot be read.
    pub async fn page(
        &self,
        client: &Client,
        list: List,
        offset: u64,
        requested: Limit,
        budget: &Budget,
    ) -> Result<Read<Page>, Error> {
        let fitting = self.state().fitting.filter(|fitting| *fitting < requested);
        let limit = fitting.unwrap_or(requested);
        let once = client.with(|call| call.refusals_alone = true);
        let sender = if fitting.is_some() { &once } else { client };
        let error = match sender.page(list, offset, limit, budget).await {
            Ok(mut read) => {
                self.state().total = read.value.total.and_then(|total| u64::try_from(total).ok());
                // Unless a row was left out meanwhile.
                if self.state().fitting == fitting {
                    self.note_read(limit, requested);
                }
                read.value.reduced_to = (limit < requested).then_some(limit);
                return Ok(read);
            }
            Err(error) => error,
        };
        let too_large = error.is_too_large();
        let refused = self.is_refused_within(offset, &error);
        if !(too_large || refused || self.may_be_for_its_rows(&error)) {
            return Err(error);
        }
        let attempts = error.attempts.clone();
        let mut search = Search {
            once: &once,
            list,
            offset,
            budget,
            refused,
            attempts,
            error,
        };
        let any_read = self.state().any_read;
        let (page, limit) = match search.halves(limit, too_large).await? {
            Some((mut page, limit)) => {
                self.state().too_large = too_large;
                self.note_read(limit, requested);
                page.reduced_to = (limit < requested).then_some(limit);
                (page, limit)
            }
            None if !refused && search.reads_next(any_read).await? => {
                self.state().fitting = None;
                let why = match too_large {
                    true => Unreadable::TooLarge,
                    false => Unreadable::Failing,
                };
                let left_out = Page::of_a_row_not_read(offset, list.resource(), why);
                (left_out, Limit::SMALLEST)
            }
            None => return Err(search.error.after_attempts(search.attempts)),
        };
        Ok(client.answered(page, list.page(offset, limit), search.attempts))
    }

    /// Whether a page failed for its rows, perhaps. If it is the first one, the service may as well be
    /// down, or misconfigured.
    fn may_be_for_its_rows(&self, error: &Error) -> bool {
        let first = matches!(error.status(), Some(500 | 502 | 504 | 520 | 522 | 524));
        fails_for_its_rows(error) && (self.state().any_read || (first && self.searches_first))
    }

    /// Whether the service refused a page although the total promises rows there: some serve no rows
    /// beyond an offset, and refuse each page that goes further.
    fn is_refused_within(&self, offset: u64, error: &Error) -> bool {
        let promised = self.state().total.is_some_and(|total| offset < total);
        offset > 0 && promised && is_refusal(error)
    }

    /// Notes a page that was read.
    fn note_read(&self, limit: Limit, requested: Limit) {
        let rows = u64::from(limit.get());
        let mut state = self.state();
        state.any_read = true;
        let more = match state.too_large {
            _ if rows <= FEW_ROWS => 2 * rows,
            true => rows + rows / 4,
            false => rows,
        };
        state.fitting = Limit::of(more).filter(|more| *more < requested && limit < requested);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The search for what can be read of a page. Nothing in it is retried as usual: the page was.
struct Search<'a> {
    once: &'a Client,
    list: List,
    offset: u64,
    budget: &'a Budget,
    refused: bool,
    attempts: Vec<Attempt>,
    /// What to report if nothing can be read.
    error: Error,
}

impl Search<'_> {
    /// The first rows of the page, as many as can be read of half of it, a quarter and so on.
    async fn halves(
        &mut self,
        mut limit: Limit,
        too_large: bool,
    ) -> Result<Option<(Page, Limit)>, Error> {
        let mut first_row = None;
        if !too_large {
            // It tells a row that fails from a service that does.
            for _ in 0..TRIED_ALONE {
                first_row = self.read(self.offset, Limit::SMALLEST).await?;
                if first_row.is_some() {
                    break;
                }
            }
        }
        while too_large || first_row.is_some() {
            let Some(half) = limit
                .half()
                .filter(|half| too_large || *half > Limit::SMALLEST)
            else {
                break;
            };
            limit = half;
            if let Some(page) = self.read(self.offset, limit).await? {
                return Ok(Some((page, limit)));
            }
        }
        Ok(first_row.map(|page| (page, Limit::SMALLEST)))
    }

    /// Whether the row after the first one can be read. If any page was, it may also be the last row;
    /// otherwise an empty page says no more than that the service can send one.
    async fn reads_next(&mut self, any_read: bool) -> Result<bool, Error> {
        match self.read(self.offset + 1, Limit::SMALLEST).await {
            Ok(page) => Ok(page.is_some_and(|page| any_read || !page.rows.is_empty())),
            Err(error) if says_past_end(&error) => Ok(any_read),
            Err(error) => Err(error),
        }
    }

    /// Requests a page once; `None` if it cannot be read.
    async fn read(&mut self, offset: u64, limit: Limit) -> Result<Option<Page>, Error> {
        match self.once.page(self.list, offset, limit, self.budget).await {
            Ok(mut read) => {
                self.attempts.append(&mut read.sent.attempts);
                Ok(Some(read.value))
            }
            Err(error) => {
                self.attempts.extend(error.attempts.iter().cloned());
                let refused = self.refused && is_refusal(&error);
                if !refused && (ends_search(&error) || says_past_end(&error)) {
                    return Err(error.after_attempts(take(&mut self.attempts)));
                }
                if error.is_too_large() && offset == self.offset {
                    self.error = error;
                }
                Ok(None)
            }
        }
    }
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
