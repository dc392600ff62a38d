//! Requests that only the probe sends: GETs outside the interface, or with more detail than a read.

use std::fmt;

use crate::api::{Endpoint, LARGEST_LIMIT, List};

/// One request of the probe; displayed as path and query, relative to the base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeRequest {
    pub target: Target,
    pub twist: Twist,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// One of the four reads.
    Read(Endpoint),
    /// The start of a list, with any limit or none.
    Start { list: List, limit: Option<u64> },
}

/// How a request differs from a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Twist {
    Plain,
    /// With a made-up bearer token.
    MadeUpSecret(String),
    /// With a media type that the service does not know.
    OtherAccept,
    /// With `If-None-Match` (RFC 9110, 13.1.2).
    IfNoneMatch(String),
    /// With `If-Modified-Since` (RFC 9110, 13.1.3).
    IfModifiedSince(String),
    /// Without decompressing the body.
    Undecoded,
}

impl ProbeRequest {
    pub fn plain(endpoint: Endpoint) -> Self {
        Self {
            target: Target::Read(endpoint),
            twist: Twist::Plain,
        }
    }

    pub fn start(list: List, limit: Option<u64>) -> Self {
        Self {
            target: Target::Start { list, limit },
            twist: Twist::Plain,
        }
    }

    /// The list and offset of the page it requests, if any.
    pub fn page(&self) -> Option<(List, u64)> {
        match self.target {
            Target::Start { list, .. } => Some((list, 0)),
            Target::Read(Endpoint::Page { list, offset, .. }) => Some((list, offset)),
            Target::Read(Endpoint::User { .. } | Endpoint::Message { .. }) => None,
        }
    }

    /// Whether any client might send it, so that a failure is not the request's fault.
    pub fn is_allowed(&self) -> bool {
        let target = match self.target {
            Target::Read(_) | Target::Start { limit: None, .. } => true,
            Target::Start {
                limit: Some(limit), ..
            } => (1..=u64::from(LARGEST_LIMIT)).contains(&limit),
        };
        target && matches!(self.twist, Twist::Plain | Twist::Undecoded)
    }

    /// Whether its response is JSON that can be read.
    pub fn is_plain(&self) -> bool {
        self.twist == Twist::Plain
    }
}

impl fmt::Display for ProbeRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.target {
            Target::Read(endpoint) => endpoint.fmt(formatter),
            Target::Start { list, limit: None } => list.fmt(formatter),
            Target::Start {
                list,
                limit: Some(limit),
            } => write!(formatter, "{list}?offset=0&limit={limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_has_any_limit_or_none() {
        let shown = |limit| ProbeRequest::start(List::Users, limit).to_string();
        assert_eq!(shown(None), "/external/users");
        assert_eq!(shown(Some(0)), "/external/users?offset=0&limit=0");
        assert_eq!(shown(Some(100)), "/external/users?offset=0&limit=100");
    }

    #[test]
    fn only_what_the_interface_rules_out_is_not_allowed() {
        for (limit, allowed) in [(None, true), (Some(1), true), (Some(99), true)] {
            assert_eq!(
                ProbeRequest::start(List::Users, limit).is_allowed(),
                allowed
            );
        }
        for limit in [0, 100] {
            assert!(!ProbeRequest::start(List::Users, Some(limit)).is_allowed());
        }
        let twisted = ProbeRequest {
            twist: Twist::OtherAccept,
            ..ProbeRequest::start(List::Users, None)
        };
        assert!(!twisted.is_allowed());
    }
}
