//! The interface document as code: paths, headers and the limit rule.

use std::fmt;

use crate::error::Error;

/// The largest `limit` that the interface allows (8.1: greater than 0 and lower than 100).
pub const LARGEST_LIMIT: u8 = 99;

/// A `limit` that the interface allows, 1 to 99 (interface 4 and 8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limit(u8);

impl Limit {
    pub const LARGEST: Self = Self(LARGEST_LIMIT);
    pub const SMALLEST: Self = Self(1);

    /// `name` is the argument's name in the caller's API.
    pub fn new(name: &str, value: i64) -> Result<Self, Error> {
        let limit = u64::try_from(value).ok().and_then(Self::of);
        limit.ok_or_else(|| {
            Error::invalid_argument(format!(
                "{name} must be 1 to {LARGEST_LIMIT}, not {value}; nothing was sent"
            ))
        })
    }

    /// `None` unless a page may have this many rows.
    pub fn of(rows: u64) -> Option<Self> {
        let rows = u8::try_from(rows).ok()?;
        (1..=LARGEST_LIMIT).contains(&rows).then_some(Self(rows))
    }

    pub fn get(self) -> u8 {
        self.0
    }

    /// Half as many rows, unless that is none.
    pub fn half(self) -> Option<Self> {
        Self::of(u64::from(self.0 / 2))
    }
}

/// A whole number from 0: an offset, or the id of a user or a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Natural(u64);

impl Natural {
    pub const ZERO: Self = Self(0);

    /// `name` is the argument's name in the caller's API.
    pub fn new(name: &str, value: i64) -> Result<Self, Error> {
        u64::try_from(value).map(Self).map_err(|_| {
            Error::invalid_argument(format!(
                "{name} must be 0 or more, not {value}; nothing was sent"
            ))
        })
    }

    pub fn get(self) -> u64 {
        self.0
    }

    /// The number as rows have it.
    pub fn signed(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl From<u64> for Natural {
    fn from(value: u64) -> Self {
        Self(value)
    }
}

/// The two resources, by the key of their list in a page envelope (interface 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Users,
    Messages,
}

impl Resource {
    pub fn key(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::Messages => "messages",
        }
    }
}

/// The key of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey {
    pub resource: Resource,
    /// The user whose message it is; for a user, their own id or `None`.
    pub user_id: Option<i64>,
    pub id: i64,
}

/// A list that can be paged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    Users,
    Messages { user_id: Natural },
}

impl List {
    pub fn resource(self) -> Resource {
        match self {
            Self::Users => Resource::Users,
            Self::Messages { .. } => Resource::Messages,
        }
    }

    /// Reads one of its rows.
    pub const fn row(self, id: Natural) -> Endpoint {
        Endpoint::Row { list: self, id }
    }

    /// Reads a page of it.
    pub const fn page(self, offset: u64, limit: Limit) -> Endpoint {
        Endpoint::Page {
            list: self,
            offset,
            limit,
        }
    }
}

impl fmt::Display for List {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Users => formatter.write_str("/external/users"),
            Self::Messages { user_id } => {
                write!(formatter, "/external/users/{}/messages", user_id.get())
            }
        }
    }
}

/// One of the four reads (interface 4); displayed as path and query, relative to the base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    Row {
        list: List,
        id: Natural,
    },
    Page {
        list: List,
        offset: u64,
        limit: Limit,
    },
}

/// The read that is sent with another header.
const ONE_USER: Endpoint = List::Users.page(0, Limit::SMALLEST);

/// What all paths of the interface begin with, below the base URL.
pub const EXTERNAL: &str = "/external/";

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row { list, id } => write!(formatter, "{list}/{}", id.get()),
            Self::Page {
                list,
                offset,
                limit,
            } => write!(formatter, "{list}?offset={offset}&limit={}", limit.get()),
        }
    }
}

/// A request: one of the four reads, or one that only the probe sends; displayed as path and query,
/// relative to the base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    Read(Endpoint),
    /// The start of the list of users, with any limit or none.
    Start(Option<u64>),
    /// A read with a made-up bearer token.
    MadeUpSecret,
    /// A read with a media type that the service does not know.
    OtherAccept,
}

impl Request {
    /// The list and offset of the page it requests, if any.
    pub fn page(&self) -> Option<(List, u64)> {
        match *self {
            Self::Start(_) => Some((List::Users, 0)),
            Self::Read(Endpoint::Page { list, offset, .. }) => Some((list, offset)),
            _ => None,
        }
    }

    /// Whether any client might send it, so that a failure is not the request's fault.
    pub fn is_allowed(&self) -> bool {
        match *self {
            Self::Read(_) | Self::Start(None) => true,
            Self::Start(Some(limit)) => Limit::of(limit).is_some(),
            Self::MadeUpSecret | Self::OtherAccept => false,
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users = List::Users;
        match self {
            Self::Read(endpoint) => endpoint.fmt(formatter),
            Self::Start(None) => users.fmt(formatter),
            Self::Start(Some(limit)) => write!(formatter, "{users}?offset=0&limit={limit}"),
            Self::MadeUpSecret | Self::OtherAccept => ONE_USER.fmt(formatter),
        }
    }
}

/// The versioned media type in every request's `Accept` header (interface 5.3).
pub fn accept(vendor: &str) -> String {
    format!("application/vnd.{vendor}.v1+json")
}
