//! The behaviour of a simulated service, fixed before the first request.

use serde::{Deserialize, Serialize};

use crate::api::{LARGEST_LIMIT, List, Natural};

/// The sort key of the rows, and how a change moves a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    OldestFirst,
    NewestFirst,
    /// New rows are inserted anywhere, and a renamed row moves.
    Name,
    /// An updated row moves to the front.
    UpdatedFirst,
    /// An updated row moves to the end.
    UpdatedLast,
    /// Groups of rows with the same key, each reshuffled at every request.
    Ties,
    /// The same, but each query always gets the same order, as from PostgreSQL.
    TiesByQuery,
    Shuffled,
    /// Rows move without any change in them.
    HiddenKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Total {
    Exact,
    Null,
    /// As at the first request.
    Stale,
    TooSmall,
    TooLarge,
    Capped,
    /// Counted now and then and cached in between: outdated, too large or too small.
    Cached,
    /// Missing from a third of the responses.
    Sometimes,
    /// Hidden rows take up a place but are not counted.
    WithoutHidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PastEnd {
    Empty,
    Refused,
    LastPage,
    FirstPage,
}

/// What a page reports about the limit and offset applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReportedPage {
    Applied,
    Requested,
    Nothing,
}

/// How many changes happen per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Churn {
    None,
    /// One per ten requests.
    Moderate,
    /// One to three with each request.
    Heavy,
    /// Moderate, and occasionally 50 at once.
    Bursts,
    /// Moderate, and up to three times hundreds of new rows at once, where new rows go.
    Imports,
    /// One row at the end before every second request.
    Grows,
}

/// All of the above.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct Behaviour {
    /// A list of messages, otherwise of users.
    pub messages: bool,
    pub rows: i64,
    pub order: Order,
    pub total: Total,
    pub churn: Churn,
    /// For `Order::Ties`, the average number of rows with the same key.
    pub tied: u16,
    /// If false, messages are only added, as the certificates assume.
    pub deletes: bool,
    pub largest_page: u8,
    pub reported: ReportedPage,
    pub short_pages: bool,
    /// How many of a hundred rows are filtered out after paging.
    pub hidden: u8,
    pub past_end: PastEnd,
    /// How many of a thousand rows fail each page that they are part of.
    pub failing: u16,
    /// The length of a block of consecutive hidden rows.
    pub hidden_block: u16,
    /// Offsets from here on are refused.
    pub refused_from: Option<u64>,
    pub seed: u64,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            messages: false,
            rows: 0,
            order: Order::OldestFirst,
            total: Total::Exact,
            churn: Churn::None,
            tied: 8,
            deletes: true,
            largest_page: LARGEST_LIMIT,
            reported: ReportedPage::Applied,
            short_pages: false,
            hidden: 0,
            past_end: PastEnd::Empty,
            failing: 0,
            hidden_block: 0,
            refused_from: None,
            seed: 0,
        }
    }
}

impl Behaviour {
    pub fn list(&self) -> List {
        match self.messages {
            false => List::Users,
            true => List::Messages {
                user_id: Natural::new("user_id", 42).unwrap(),
            },
        }
    }
}
