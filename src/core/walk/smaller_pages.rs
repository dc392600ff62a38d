//! Pages that cannot be read as requested are requested with fewer rows, down to a single row, which
//! is skipped if it cannot be read alone: those that exceed `max_response_bytes`, and those that fail
//! although the service answers others.

use std::collections::BTreeSet;
use std::mem::take;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::answered_length::AnsweredLength;
use super::failing_row::{
    Found, ends_search, fails_for_its_rows, is_next_read, longest_page, longest_read, read_alone,
};
use super::page_request::PageRequest;
use super::says_past_end;
use super::unread::is_refusal;
use crate::api::{Limit, List};
use crate::budget::Budget;
use crate::client::{Client, Read};
use crate::decode::page::{Page, Unreadable};
use crate::error::Error;

/// The most consecutive rows skipped; after that, the list counts as unreadable.
const MOST_LEFT_OUT: u32 = 16;
/// The most searches for failing rows without a page in between that was read as requested: rows that
/// are inserted in front could move a failing one away for ever.
const MOST_SEARCHES: u32 = 16;
/// If no page was read yet, this many rows after the first are tried.
const TRIED: u64 = 3;

/// The pages of one list, and what was learned about how many rows fit into one.
#[derive(Debug)]
pub(super) struct SmallerPages {
    /// Whether the first page is searched for a row that fails it, too.
    searches_first: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many rows were not too large, and a little more each time.
    fitting: Option<Limit>,
    answered: AnsweredLength,
    /// The offsets of rows that fail the pages that they are part of, or seem to.
    failing: BTreeSet<u64>,
    /// The total of the page that was read last.
    total: Option<i64>,
    /// The service refuses pages that go beyond this offset, although the total promises rows there.
    refused_from: Option<u64>,
    /// Searches for such rows since a page was last read as requested.
    searches: u32,
    /// The error of the page that was searched last, and the end of what was to be skipped of it.
    searched_for: Option<(Error, u64)>,
    /// Rows skipped since a page was last read.
    left_out: u32,
    /// At least one page was read.
    any_read: bool,
    uncounted: u64,
}

impl State {
    /// How many rows the page at this offset may have: none of those that seem to fail, or that the
    /// service refuses.
    fn limit(&self, offset: u64, requested: Limit) -> Limit {
        let failing = self.failing.range(offset..).next().copied();
        let refused = self.refused_from.filter(|from| *from >= offset);
        let end = failing.into_iter().chain(refused).min();
        let before = end.and_then(|end| Limit::of((end - offset).max(1)));
        let bounds = [self.fitting, self.answered.most(), before];
        bounds.into_iter().flatten().fold(requested, Limit::min)
    }
}

impl SmallerPages {
    pub fn new(searches_first: bool) -> Self {
        Self {
            searches_first,
            state: Mutex::default(),
        }
    }

    /// The error of the page that was searched last for rows that fail it, if a walk that ended here
    /// did not get past them.
    pub fn take_error_after(&self, end: u64) -> Option<Error> {
        let (error, past) = self.state().searched_for.take()?;
        (end < past).then_some(error)
    }

    /// How many requests were sent in search of rows since this was last called, and are in no
    /// response's attempts.
    pub fn take_uncounted(&self) -> u64 {
        take(&mut self.state().uncounted)
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
        let mut request = PageRequest::new(client, list, budget);
        match self.read(&mut request, offset, requested).await {
            Ok((mut page, limit)) => {
                page.reduced_to = (limit < requested).then(|| limit.get().into());
                Ok(client.answered(page, list.page(offset, limit), request.attempts))
            }
            Err(error) if error.is_too_large() => Err(error.after_attempts(request.attempts)),
            // The others were not for the page that this error is about.
            Err(error) => {
                let others = request.attempts.len() - error.attempts.len();
                self.state().uncounted += others as u64;
                Err(error)
            }
        }
    }

    /// A page and its limit.
    async fn read(
        &self,
        request: &mut PageRequest<'_>,
        offset: u64,
        requested: Limit,
    ) -> Result<(Page, Limit), Error> {
        let mut limit = self.state().limit(offset, requested);
        let longer = self.state().answered.longer();
        if let Some(longer) = longer.map(|longer| longer.min(requested)) {
            match request.send_once(offset, longer).await {
                Ok(page) => {
                    self.state().answered.note_longer(longer, requested);
                    return Ok((self.note_read(page), longer));
                }
                // Any response leaves the usual request to be sent.
                Err(error) if error.status().is_none() && ends_search(&error) => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        if self.state().failing.contains(&offset)
            && let Some(read) = self.alone(request, offset).await?
        {
            return Ok(read);
        }
        loop {
            let error = match request.send(offset, limit).await {
                Ok(page) => {
                    self.note_fitting(offset, limit, requested);
                    return Ok((self.note_read(page), limit));
                }
                Err(error) => error,
            };
            let (why, others_are_read) = if error.is_too_large() {
                if let Some(half) = limit.half() {
                    limit = half;
                    continue;
                }
                let any_read = self.state().any_read;
                let fit = any_read || next_fits(request, offset).await?;
                (Unreadable::TooLarge, fit)
            } else if self.is_refused_within(request.list, offset, &error) {
                let longest = longest_read(request, offset, limit, is_refusal).await?;
                let (page, limit) = longest.ok_or(error)?;
                self.state().refused_from = Some(offset + u64::from(limit.get()));
                return Ok((self.note_read(page), limit));
            } else if !self.may_be_for_its_rows(&error) {
                return Err(error);
            } else if limit == Limit::SMALLEST {
                let any_read = self.state().any_read;
                let others = is_next_read(request, offset, any_read).await?;
                (Unreadable::Failing, others)
            } else {
                return match self.search(request, offset, limit, &error).await? {
                    Some(read) => Ok(read),
                    None => Err(error),
                };
            };
            if !others_are_read || !self.leave_out() {
                return Err(error);
            }
            return Ok((not_read(request, offset, why), limit));
        }
    }

    /// What can be read of a page that fails; `None` if it is no row's fault.
    async fn search(
        &self,
        request: &mut PageRequest<'_>,
        offset: u64,
        failing: Limit,
        error: &Error,
    ) -> Result<Option<(Page, Limit)>, Error> {
        self.state().searches += 1;
        if self.state().searches > MOST_SEARCHES {
            return Ok(None);
        }
        let any_read = self.state().any_read;
        let found = longest_page(request, offset, failing, any_read).await?;
        let past = match &found {
            Found::Before(_, limit) => offset + u64::from(limit.get()) + 1,
            Found::Longest(_, limit) => offset + u64::from(limit.get()),
            Found::RowFails | Found::Nothing => offset + 1,
        };
        self.state().searched_for = Some((error.clone(), past));
        match found {
            Found::Before(page, limit) => {
                let end = offset + u64::from(limit.get());
                self.state().failing.insert(end);
                Ok(Some((self.note_read(page), limit)))
            }
            Found::Longest(page, limit) => {
                self.state().answered.learn(limit);
                Ok(Some((self.note_read(page), limit)))
            }
            Found::RowFails => {
                self.state().failing.insert(offset);
                self.alone(request, offset).await
            }
            Found::Nothing => Ok(None),
        }
    }

    /// A row that seems to fail: as a page if it can be read after all, otherwise what stands for it;
    /// `None` if rows after it fail as well.
    async fn alone(
        &self,
        request: &mut PageRequest<'_>,
        offset: u64,
    ) -> Result<Option<(Page, Limit)>, Error> {
        if let Some(page) = read_alone(request, offset).await? {
            self.state().failing.remove(&offset);
            return Ok(Some((self.note_read(page), Limit::SMALLEST)));
        }
        let any_read = self.state().any_read;
        let skipped = is_next_read(request, offset, any_read).await? && self.leave_out();
        let page = skipped.then(|| not_read(request, offset, Unreadable::Failing));
        Ok(page.map(|page| (page, Limit::SMALLEST)))
    }

    /// Whether a page failed for its rows, perhaps. If it is the first one, the service may as well be
    /// down, or misconfigured.
    fn may_be_for_its_rows(&self, error: &Error) -> bool {
        let first = self.searches_first
            && matches!(error.status(), Some(500 | 502 | 504 | 520 | 522 | 524));
        fails_for_its_rows(error) && (first || self.state().any_read)
    }

    /// Whether the service refused a page of users that the total promises.
    fn is_refused_within(&self, list: List, offset: u64, error: &Error) -> bool {
        let promised = self
            .state()
            .total
            .and_then(|total| u64::try_from(total).ok());
        let within = offset > 0 && promised.is_some_and(|total| offset < total);
        list == List::Users && within && is_refusal(error)
    }

    fn note_read(&self, page: Page) -> Page {
        let mut state = self.state();
        state.total = page.total;
        state.left_out = 0;
        state.any_read = true;
        page
    }

    /// Row sizes vary: grows the limit a little each time.
    fn note_fitting(&self, offset: u64, limit: Limit, requested: Limit) {
        let mut state = self.state();
        let end = offset + u64::from(limit.get());
        let is_for_a_row = state.failing.contains(&end);
        if !is_for_a_row {
            state.searches = 0;
        }
        let is_reduced = limit < requested && !is_for_a_row;
        let more = Limit::of((limit.get() + limit.get() / 4 + 1).into());
        state.fitting = more.filter(|more| is_reduced && *more < requested);
    }

    /// Skips a row; false once too many were skipped.
    fn leave_out(&self) -> bool {
        let mut state = self.state();
        state.fitting = None;
        state.left_out += 1;
        state.left_out <= MOST_LEFT_OUT
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What stands for a row that is skipped.
fn not_read(request: &PageRequest<'_>, offset: u64, why: Unreadable) -> Page {
    Page::of_a_row_not_read(offset, request.list.resource(), why)
}

/// Whether a row after a too large one can be read, or there is none.
async fn next_fits(request: &mut PageRequest<'_>, offset: u64) -> Result<bool, Error> {
    for next in 1..=TRIED {
        match request.send(offset + next, Limit::SMALLEST).await {
            Ok(_) => return Ok(true),
            Err(error) if ends_search(&error) => return Err(error),
            Err(error) if !error.is_too_large() => return Ok(says_past_end(&error)),
            Err(_) => {}
        }
    }
    Ok(false)
}
