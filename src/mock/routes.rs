//! What a request asks for: its route, and the ids in its path.

use std::fmt;

/// The largest page (interface 8.1: lower than 100).
pub const MAX_LIMIT: u64 = 99;
/// The default page size. The interface does not say; this is a guess.
pub const DEFAULT_LIMIT: u64 = 25;

/// The routes by which requests are counted; everything else counts as `other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
pub enum Target {
    Users,
    User { user_id: u64 },
    Messages { user_id: u64 },
    Message { user_id: u64, message_id: u64 },
    OpenApi,
    Unknown,
}

impl Target {
    /// Parses a path. Ids are plain integers: digits only, without leading zeros.
    #[must_use]
    pub fn read(path: &str) -> Self {
        if path == "/openapi.json" {
            return Self::OpenApi;
        }
        let mut parts = path
            .strip_prefix("/external/users")
            .unwrap_or("!")
            .split('/');
        if parts.next() != Some("") {
            return Self::Unknown;
        }
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (None, ..) => Some(Self::Users),
            (Some(user), None, ..) => plain_integer(user).map(|user_id| Self::User { user_id }),
            (Some(user), Some("messages"), None, _) => {
                plain_integer(user).map(|user_id| Self::Messages { user_id })
            }
            (Some(user), Some("messages"), Some(message), None) => plain_integer(user)
                .zip(plain_integer(message))
                .map(|(user_id, message_id)| Self::Message {
                    user_id,
                    message_id,
                }),
            _ => None,
        }
        .unwrap_or(Self::Unknown)
    }

    /// The user in the path.
    #[must_use]
    pub const fn user(self) -> Option<u64> {
        match self {
            Self::User { user_id } | Self::Messages { user_id } | Self::Message { user_id, .. } => {
                Some(user_id)
            }
            Self::Users | Self::OpenApi | Self::Unknown => None,
        }
    }

    /// The message in the path.
    #[must_use]
    pub const fn message(self) -> Option<u64> {
        match self {
            Self::Message { message_id, .. } => Some(message_id),
            _ => None,
        }
    }

    /// The route that the path belongs to.
    #[must_use]
    pub const fn route(self) -> Route {
        match self {
            Self::Users => Route::Users,
            Self::User { .. } => Route::User,
            Self::Messages { .. } => Route::Messages,
            Self::Message { .. } => Route::Message,
            Self::OpenApi => Route::OpenApi,
            Self::Unknown => Route::Other,
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_documented_paths_are_known() {
        assert_eq!(Target::read("/external/users"), Target::Users);
        assert_eq!(
            Target::read("/external/users/42"),
            Target::User { user_id: 42 }
        );
        let messages = Target::read("/external/users/42/messages");
        assert_eq!(messages, Target::Messages { user_id: 42 });
        let message = Target::read("/external/users/42/messages/7");
        assert_eq!(
            message,
            Target::Message {
                user_id: 42,
                message_id: 7
            }
        );
        for path in [
            "",
            "/",
            "/external",
            "/users",
            "/external/users/",
            "/external/usersx",
            "/external/users/42/",
            "/external/users/+42",
            "/external/users/042",
            "/external/users/-1",
            "/external/users/4.0",
            "/external/users/%34%32",
            "/external/users/99999999999999999999",
            "/external/users/42/messages/",
            "/external/users/42/messages/7/",
            "/external/users/42/messages/x",
            "/external/users/42/notes",
            "/EXTERNAL/users",
            "//external/users",
        ] {
            assert_eq!(Target::read(path), Target::Unknown, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_is_too_odd(path: String) {
            let _ = Target::read(&path);
        }
    }
}
