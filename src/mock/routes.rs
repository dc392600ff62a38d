//! What a request asks for: its route, and the page arguments in its query.

use std::fmt;

use hyper::Uri;

use super::refusal::Refusal;

/// The largest page (interface 8.1: lower than 100).
pub const MAX_LIMIT: usize = 99;
/// The page size when none is asked for. The interface does not say; this is a guess.
pub const DEFAULT_LIMIT: usize = 25;

/// The routes that requests are counted by; everything else counts as `other`.
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

    /// The name that counters go by.
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
    /// Reads a path. Ids are plain integers: digits only and no zero in front.
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

fn plain_integer(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    if digits && !padded {
        text.parse().ok()
    } else {
        None
    }
}

/// Which part of a list is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    pub offset: u64,
    pub limit: usize,
}

impl PageRequest {
    /// Reads the query of a list.
    ///
    /// # Errors
    /// A refusal with status 422 for an argument that is unknown, repeated, or out of its range.
    pub fn read(uri: &Uri) -> Result<Self, Refusal> {
        let (mut offset, mut limit) = (None, None);
        for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or("").as_bytes()) {
            let before = match &*name {
                "offset" => offset.replace(read_offset(&value)?).is_some(),
                "limit" => limit.replace(read_limit(&value)?).is_some(),
                _ => {
                    return Err(Refusal::unknown_argument(
                        &name,
                        "a list takes offset and limit",
                    ));
                }
            };
            if before {
                return Err(Refusal::repeated_argument(&name));
            }
        }
        Ok(Self {
            offset: offset.unwrap_or(0),
            limit: limit.unwrap_or(DEFAULT_LIMIT),
        })
    }
}

/// Refuses any query: single items take no arguments (interface 4).
///
/// # Errors
/// A refusal with status 422 that names the first argument.
pub fn refuse_query(uri: &Uri) -> Result<(), Refusal> {
    match url::form_urlencoded::parse(uri.query().unwrap_or("").as_bytes()).next() {
        Some((name, _)) => Err(Refusal::unknown_argument(&name, "a single item takes none")),
        None => Ok(()),
    }
}

fn read_limit(value: &str) -> Result<usize, Refusal> {
    plain_integer(value)
        .and_then(|limit| usize::try_from(limit).ok())
        .filter(|limit| (1..=MAX_LIMIT).contains(limit))
        .ok_or_else(|| {
            let rule = "limit must be an integer greater than 0 and lower than 100";
            Refusal::invalid_argument("invalid_limit", rule, value)
        })
}

fn read_offset(value: &str) -> Result<u64, Refusal> {
    plain_integer(value)
        .filter(|offset| i64::try_from(*offset).is_ok())
        .ok_or_else(|| {
            let rule = "offset must be an integer from 0 to 9223372036854775807";
            Refusal::invalid_argument("invalid_offset", rule, value)
        })
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
        fn no_path_and_no_query_is_too_odd(path: String, query in "[ -~]{0,40}") {
            let _ = Target::read(&path);
            if let Ok(uri) = format!("/external/users?{query}").parse::<Uri>() {
                let page = PageRequest::read(&uri);
                prop_assert!(page.map_or(true, |page| (1..=MAX_LIMIT).contains(&page.limit)));
            }
        }
    }
}
