//! Pages that are larger than `max_response_bytes`: requested again with half the limit, down to one
//! row, which is left out if it is too large alone.

use std::sync::{Mutex, PoisonError};

use crate::core::budget::Budget;
use crate::core::client::{Client, Read};
use crate::core::error::{Attempt, Error, ErrorKind};
use crate::core::interface::{Limit, List};
use crate::core::page::Page;

/// The rows of a list among which one is known to be too large: a page of them was.
#[derive(Debug, Default)]
pub(super) struct TooLarge(Mutex<Option<Span>>);

#[derive(Debug, Clone, Copy)]
struct Span {
    from: u64,
    to: u64,
}

impl TooLarge {
    /// One page, of fewer rows than asked for where those would be too large.
    pub async fn page(
        &self,
        client: &Client,
        list: List,
        offset: u64,
        limit: Limit,
        budget: &Budget,
    ) -> Result<Read<Page>, Error> {
        let mut limit = self.limit_at(offset, limit);
        let mut attempts: Vec<Attempt> = Vec::new();
        loop {
            match client.page(list, offset, limit, budget).await {
                Ok(mut read) => {
                    attempts.append(&mut read.sent.attempts);
                    read.sent.attempts = attempts;
                    return Ok(read);
                }
                Err(error) if matches!(error.kind, ErrorKind::ResponseTooLarge { .. }) => {
                    attempts.extend(error.attempts.iter().cloned());
                    if limit.get() == 1 {
                        self.note(None);
                        let page = Page::of_a_row_too_large(offset, list.resource());
                        return Ok(client.answer_without(page, list.page(offset, limit), attempts));
                    }
                    self.note(Some(Span {
                        from: offset,
                        to: offset + u64::from(limit.get()),
                    }));
                    limit = half(limit.get().into()).unwrap_or(limit);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Half of what is left of the span, so that the large row is found as by bisection.
    fn limit_at(&self, offset: u64, limit: Limit) -> Limit {
        let span = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match span {
            Some(Span { from, to }) if from <= offset && offset < to => {
                let smaller = half(to - offset).filter(|half| half.get() < limit.get());
                smaller.unwrap_or(limit)
            }
            _ => limit,
        }
    }

    fn note(&self, span: Option<Span>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = span;
    }
}

fn half(rows: u64) -> Option<Limit> {
    let half = i64::try_from(rows / 2).ok()?.max(1);
    Limit::new("limit", half).ok()
}
