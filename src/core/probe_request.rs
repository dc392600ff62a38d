//! Requests that only the probe sends: GETs outside the interface.

use std::fmt;

use crate::api::{Endpoint, Limit, List};

/// The read that is sent with another header.
const ONE_USER: Endpoint = List::Users.page(0, Limit::SMALLEST);

/// One request of the probe; displayed as path and query, relative to the base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeRequest {
    /// One of the four reads.
    Read(Endpoint),
    /// The start of the list of users, with any limit or none.
    Start(Option<u64>),
    /// A read with a made-up bearer token.
    MadeUpSecret,
    /// A read with a media type that the service does not know.
    OtherAccept,
}

impl ProbeRequest {
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

impl fmt::Display for ProbeRequest {
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
