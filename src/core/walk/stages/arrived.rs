//! A walk's requests, their responses, and a page as it arrived.

use crate::api::Limit;
use crate::client::{Read, Sent};
use crate::decode::json::Text;
use crate::decode::page::{Page, Row, Unreadable};
use crate::error::Error;

/// What a request fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    Page {
        offset: u64,
        limit: Limit,
    },
    /// One row by its id.
    Row {
        id: i64,
    },
}

/// A request of a walk.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub fetch: Fetch,
    /// The number of responses taken when it was sent: those are from earlier instants.
    pub(super) sent_after: u64,
    /// The largest total among them.
    pub(super) total_before: u64,
}

/// The response to a request.
#[derive(Debug)]
pub enum Response {
    Page(Read<Page>),
    /// The service refused the offset, as it may past the end of the list.
    PastEnd(Error),
    /// A request that was only for proof failed.
    Refused(Error),
    /// The row; `None` if no row has that id.
    Row {
        row: Option<Text>,
        sent: Sent,
    },
}

impl Response {
    /// How many requests it took.
    pub fn requests(&self) -> u64 {
        let attempts = match self {
            Self::Page(read) => &read.sent.attempts,
            Self::PastEnd(error) | Self::Refused(error) => &error.attempts,
            Self::Row { sent, .. } => &sent.attempts,
        };
        attempts.len() as u64
    }
}

/// A page that arrived; it is in the pool until it is joined or turns out to add nothing.
#[derive(Debug)]
pub(super) struct ArrivedPage {
    /// As requested.
    pub offset: u64,
    pub limit: u64,
    /// It was requested with fewer rows than usual, because those cannot be read.
    pub reduced: bool,
    pub said_limit: Option<i64>,
    pub said_offset: Option<i64>,
    pub said_total: Option<i64>,
    pub rows: Vec<Row>,
    /// The error, if the offset was refused.
    pub refusal: Option<Error>,
    /// `None` if the offset was refused.
    pub sent: Option<Sent>,
    /// The number of responses taken when it was requested,
    pub sent_after: u64,
    /// the largest total among them,
    pub total_before: u64,
    /// and its own number among the responses.
    pub number: u64,
    /// It did not link when a decision was taken; it may still join, but decides nothing.
    pub waits: bool,
}

impl ArrivedPage {
    pub fn of(request: &Request, offset: u64, limit: Limit, number: u64, read: Read<Page>) -> Self {
        let Read { value: page, sent } = read;
        let limit = page.reduced_to.unwrap_or(limit);
        let mut arrived = Self::empty(request, offset, limit, number);
        arrived.reduced = page.reduced_to.is_some();
        (arrived.said_limit, arrived.said_offset) = (page.limit, page.offset);
        arrived.said_total = page.total;
        arrived.rows = page.rows;
        arrived.sent = Some(sent);
        arrived
    }

    /// Without rows, as for an offset that was refused.
    pub fn empty(request: &Request, offset: u64, limit: Limit, number: u64) -> Self {
        Self {
            offset,
            limit: limit.get().into(),
            reduced: false,
            said_limit: None,
            said_offset: None,
            said_total: None,
            rows: Vec::new(),
            refusal: None,
            sent: None,
            sent_after: request.sent_after,
            total_before: request.total_before,
            number,
            waits: false,
        }
    }

    pub fn received(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Where its rows end, if they are where they were requested.
    pub fn end(&self) -> u64 {
        self.offset + self.received()
    }

    pub fn total(&self) -> Option<u64> {
        self.said_total.and_then(|total| u64::try_from(total).ok())
    }

    /// The limit that was applied: the one that the service states, or else the most rows that it was
    /// seen to send; `None` if neither is known.
    pub fn applied(&self, largest: Option<u64>) -> Option<u64> {
        let said = self.said_limit.and_then(|limit| u64::try_from(limit).ok());
        let said = said.filter(|limit| *limit > 0).into_iter();
        Some(said.chain(largest).min()?.min(self.limit))
    }

    /// Whether it has fewer rows than the limit that was applied.
    pub fn is_short(&self, largest: Option<u64>) -> bool {
        self.received() < self.applied(largest).unwrap_or(self.limit)
    }

    pub fn states_another_offset(&self) -> bool {
        let another = |said: i64| u64::try_from(said) != Ok(self.offset);
        self.said_offset.is_some_and(another)
    }

    /// Whether it stands for a row that was left out.
    pub fn is_left_out(&self) -> bool {
        let left_out = |row: &Row| {
            row.unreadable
                .is_some_and(|why| !Unreadable::was_received(why))
        };
        self.rows.first().is_some_and(left_out)
    }

    /// How many of its rows have no id, so that nothing can tell whether they came before.
    pub fn unnamed(&self) -> u64 {
        self.rows.iter().filter(|row| row.id.is_none()).count() as u64
    }
}
