//! What a simulated service does, fixed before the first request.

use serde::{Deserialize, Serialize};

use crate::core::api::{List, Natural};

/// By what the rows are ordered, and what a change does to a row's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    OldestFirst,
    NewestFirst,
    /// New rows come anywhere, and a row that is renamed moves.
    Name,
    /// A row that is touched moves to the front.
    UpdatedFirst,
    /// A row that is touched moves to the end.
    UpdatedLast,
    /// Groups of rows with one key, each reshuffled at every request.
    Ties,
    Shuffled,
    /// Rows move, and nothing in them changes.
    HiddenKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Total {
    Exact,
    Null,
    /// As it was at the first request.
    Stale,
    TooSmall,
    TooLarge,
    Capped,
    /// Counted now and then, and served from a cache in between: behind, too large or too small.
    Cached,
    /// Missing from a third of the responses.
    Sometimes,
    /// Hidden rows take a place and are not counted.
    WithoutHidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PastEnd {
    Empty,
    Refused,
    LastPage,
    FirstPage,
}

/// What a page says of the limit and the offset that were applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Says {
    Applied,
    Asked,
    Nothing,
}

/// How many changes come with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Churn {
    None,
    /// One with every tenth request.
    Moderate,
    /// One to three with each request.
    Heavy,
    /// Moderate, and now and then 50 at once.
    Bursts,
    /// Moderate, and up to three times hundreds of new rows at once, where new rows go.
    Imports,
}

/// All of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Habits {
    /// A list of messages, or else of users.
    pub messages: bool,
    pub rows: i64,
    pub order: Order,
    pub total: Total,
    pub churn: Churn,
    /// Of `Order::Ties`, the rows that share a key on average.
    #[serde(default = "eight")]
    pub tied: u16,
    /// Messages are only ever added, as the certificates assume, where this is false.
    pub deletes: bool,
    pub largest_page: u8,
    pub says: Says,
    pub short_pages: bool,
    /// Of a hundred rows, those that are filtered out after paging.
    pub hidden: u8,
    pub past_end: PastEnd,
    pub seed: u64,
}

fn eight() -> u16 {
    8
}

impl Habits {
    pub fn list(&self) -> List {
        match self.messages {
            false => List::Users,
            true => List::Messages {
                user_id: Natural::new("user_id", 42).unwrap(),
            },
        }
    }
}
