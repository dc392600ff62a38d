//! What a request asks for: its route, and the ids in its path.

use std::fmt;

/// The largest page (interface 8.1: lower than 100).
pub const MAX_LIMIT: u64 = 99;
/// The default page size. The interface does not say; this is a guess.
pub const DEFAULT_LIMIT: u64 = 25;

/// The routes by which requests are counted; everything else counts as `other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    Users,
    User,
    Messages,
    Message,
    OpenApi,
    Other,
}

impl Route {
    pub const ALL: [Self; 6] = [
        Self::Users,
        Self::User,
        Self::Messages,
        Self::Message,
        Self::OpenApi,
        Self::Other,
    ];

    /// The name in the counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::User => "user",
            Self::Messages => "messages",
            Self::Message => "message",
            Self::OpenApi => "openapi",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A path of the service, with the ids in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub route: Route,
    pub user: Option<u64>,
    pub message: Option<u64>,
}

impl Target {
    /// Any other path.
    pub const UNKNOWN: Self = Self {
        route: Route::Other,
        user: None,
        message: None,
    };

    /// Parses a path. Ids are plain integers: digits only, without leading zeros.
    #[must_use]
    pub fn read(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').collect();
        let (route, ids) = match parts.as_slice() {
            ["", "openapi.json"] => (Route::OpenApi, [None, None]),
            ["", "external", "users"] => (Route::Users, [None, None]),
            ["", "external", "users", user] => (Route::User, [Some(*user), None]),
            ["", "external", "users", user, "messages"] => (Route::Messages, [Some(*user), None]),
            ["", "external", "users", user, "messages", message] => {
                (Route::Message, [Some(*user), Some(*message)])
            }
            _ => return Self::UNKNOWN,
        };
        let [user, message] = ids.map(|id| id.and_then(plain_integer));
        if user.is_some() != ids[0].is_some() || message.is_some() != ids[1].is_some() {
            return Self::UNKNOWN;
        }
        Self {
            route,
            user,
            message,
        }
    }
}

/// A number of digits only, without leading zeros.
pub fn plain_integer(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    if digits && !padded {
        text.parse().ok()
    } else {
        None
    }
}
