//! Pages that exceed `max_response_bytes`: requested again with half the limit, down to a single
//! row, which is skipped if it is too large alone.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::core::api::{Limit, List};
use crate::core::budget::Budget;
use crate::core::client::{Client, Read};
use crate::core::decode::page::Page;
use crate::core::error::{Attempt, Error, ErrorKind};
use crate::core::walk::says_past_end;

/// The most consecutive rows skipped; after that, the list counts as unreadable.
const MOST_LEFT_OUT: u32 = 16;
/// If no page was read yet, this many rows after the first are tried.
const TRIED: u64 = 3;

/// How many rows fit in a response, learned once a page was too large.
#[derive(Debug, Default)]
pub(super) struct TooLarge(Mutex<State>);

type Response = Result<Read<Page>, Error>;

#[derive(Debug, Default)]
struct State {
    fitting: Option<Limit>,
    /// Rows skipped since a page was last read.
    left_out: u32,
    /// At least one page was not too large.
    any_read: bool,
    /// The response to the first request, if it was sent before the walk began.
    first: Option<Response>,
}

impl TooLarge {
    /// Takes the response to the first request, which is then not sent again.
    pub fn after(first: Response) -> Self {
        Self(Mutex::new(State {
            first: Some(first),
            ..State::default()
        }))
    }

    /// One page, with fewer rows than requested if those would be too large.
    pub async fn page(
        &self,
        client: &Client,
        list: List,
        offset: u64,
        requested: Limit,
        budget: &Budget,
    ) -> Result<Read<Page>, Error> {
        let mut limit = self
            .state()
            .fitting
            .filter(|fitting| *fitting < requested)
            .unwrap_or(requested);
        let mut attempts: Vec<Attempt> = Vec::new();
        loop {
            let first = self.state().first.take();
            let response = match first {
                Some(first) => first,
                None => client.page(list, offset, limit, budget).await,
            };
            match response {
                Ok(mut read) => {
                    let reduced = limit < requested;
                    read.value.reduced_to = reduced.then(|| limit.get().into());
                    // Row sizes vary: grow the limit a little each time.
                    let more = Limit::of((limit.get() + limit.get() / 4 + 1).into());
                    *self.state() = State {
                        fitting: more.filter(|more| reduced && *more < requested),
                        left_out: 0,
                        any_read: true,
                        first: None,
                    };
                    attempts.append(&mut read.sent.attempts);
                    read.sent.attempts = attempts;
                    return Ok(read);
                }
                Err(error) if matches!(error.kind, ErrorKind::ResponseTooLarge { .. }) => {
                    attempts.extend(error.attempts.iter().cloned());
                    if let Some(half) = Limit::of((limit.get() / 2).into()) {
                        limit = half;
                        continue;
                    }
                    let others_fit = self.state().any_read
                        || next_fits(client, list, offset, limit, budget, &mut attempts).await?;
                    if !others_fit || !self.leave_out() {
                        return Err(error.after_attempts(attempts));
                    }
                    let page = Page::of_a_row_too_large(offset, list.resource());
                    let endpoint = list.page(offset, limit);
                    return Ok(client.answer_without(page, endpoint, attempts));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Skips a row; false once too many were skipped.
    fn leave_out(&self) -> bool {
        let mut state = self.state();
        state.fitting = None;
        state.left_out += 1;
        state.left_out <= MOST_LEFT_OUT
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a row after a too large one can be read, or there is none.
async fn next_fits(
    client: &Client,
    list: List,
    offset: u64,
    one: Limit,
    budget: &Budget,
    attempts: &mut Vec<Attempt>,
) -> Result<bool, Error> {
    for next in 1..=TRIED {
        match client.page(list, offset + next, one, budget).await {
            Ok(read) => {
                attempts.extend(read.sent.attempts);
                return Ok(true);
            }
            Err(error) if error.is_budget_spent() => return Err(error),
            Err(error) => {
                attempts.extend(error.attempts.iter().cloned());
                if !matches!(error.kind, ErrorKind::ResponseTooLarge { .. }) {
                    return Ok(says_past_end(&error));
                }
            }
        }
    }
    Ok(false)
}
