//! The probe's result as it is written. It holds no text that the service sent.

use std::collections::BTreeMap;

use serde::Serialize;

/// Raised whenever a key changes; profiles of another version are refused.
pub const PROFILE_VERSION: u32 = 2;

/// The behaviour of one service. What could not be measured is `None`, and `notes` says why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServiceProfile {
    pub profile_version: u32,
    pub backread: &'static str,
    /// ISO 8601, UTC.
    pub measured_at: String,
    pub requests: u64,
    /// The number of rows in a list requested without a limit.
    pub default_page: Option<u64>,
    /// The largest limit, up to 99, that is applied.
    pub largest_page: Option<u64>,
    pub limit_zero: Option<LimitAnswer>,
    pub limit_hundred: Option<LimitAnswer>,
    pub users: ListProfile,
    pub messages: ListProfile,
    pub updated_at_follows: Option<Follows>,
    pub online_at_follows: Option<Follows>,
    /// The statuses that answer invalid requests.
    pub refusals: BTreeMap<&'static str, Option<u16>>,
    /// Why a finding is `None`, by its path.
    pub notes: BTreeMap<String, String>,
}

/// The response to a limit outside 1 to 99.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitAnswer {
    pub treatment: Option<Treatment>,
    /// The limit that the service says it applied.
    pub applied: Option<u64>,
    pub status: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// A status from 400 to 499.
    Refused,
    /// The nearest limit that is allowed.
    Clamped,
    /// The default page.
    Ignored,
    /// The requested limit was applied.
    Applied,
    /// Some other limit, or a status that does not answer it.
    Other,
}

/// The behaviour of one kind of list.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ListProfile {
    /// The number of distinct rows behind the findings.
    pub rows: u64,
    pub order: Option<Order>,
    /// Whether a page that is requested again has its rows in the same order.
    pub stable: Option<bool>,
    pub total_exact: Option<bool>,
    /// `total` minus the actual number of rows.
    pub total_error: Option<i64>,
    /// Whether a page had fewer rows than it could.
    pub short_pages: Option<bool>,
    pub past_end: Option<PastEnd>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Order {
    pub field: &'static str,
    pub direction: Direction,
    /// False if rows are only roughly in this order, such as by a coarser value.
    pub exact: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Ascending,
    Descending,
}

/// What a list returns for an offset past its last row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PastEnd {
    pub gives: Gives,
    pub status: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gives {
    /// A page without rows.
    Empty,
    /// A status from 400 to 499.
    Error,
    /// Rows from an offset before the end.
    EarlierRows,
}

/// Whether a user's timestamp is never behind the newest message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Follows {
    pub holds: bool,
    /// The share of the users that were compared.
    pub share: f64,
    pub users: u64,
}
