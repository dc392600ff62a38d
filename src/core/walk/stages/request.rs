//! A walk's requests and their responses.

use crate::api::Limit;
use crate::client::{Read, Sent};
use crate::decode::json::Text;
use crate::decode::page::Page;
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
