//! What a request asks for: its route, the ids in its path and the page, the random numbers that belong
//! to it, and how often it came.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Mutex;

use serde::Serialize;

use super::lock;
use super::world::draw::blend;

/// The largest page (interface 8.1: lower than 100).
pub const MAX_LIMIT: u64 = 99;
/// The default page size. The interface does not say; this is a guess.
pub const DEFAULT_LIMIT: u64 = 25;
/// The most distinct requests in one generation of counters.
const MOST_COUNTED: usize = 1 << 19;

/// The routes by which requests are counted; everything else counts as `other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    Users,
    User,
    Messages,
    Message,
    OpenApi,
    File,
    Other,
}

impl Route {
    pub const ALL: [Self; 7] = [
        Self::Users,
        Self::User,
        Self::Messages,
        Self::Message,
        Self::OpenApi,
        Self::File,
        Self::Other,
    ];

    /// The name in the counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::User => "user",
            Self::Messages => "messages",
            Self::Message => "message",
            Self::OpenApi => "openapi",
            Self::File => "file",
            Self::Other => "other",
        }
    }
}

/// The use of a random number. Each has its own, so that an additional use changes none of the
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Whether a rule fires.
    Fault = 1,
    /// How late an answer comes.
    Latency = 2,
    /// What `x-request-id` says.
    RequestId = 3,
    /// The order of a list that changes with every request.
    Order = 4,
    /// Whether a page is short, and how short.
    ShortPage = 5,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    pub route: Route,
    pub user: Option<u64>,
    pub message: Option<u64>,
    /// The page of a list, as applied; `None` for single items and malformed requests.
    pub offset: Option<u64>,
    pub limit: Option<u64>,
}

impl Target {
    /// Any other path.
    pub const UNKNOWN: Self = Self {
        route: Route::Other,
        user: None,
        message: None,
        offset: None,
        limit: None,
    };

    /// Parses a path. Ids are plain integers: digits only, without leading zeros.
    pub fn read(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').collect();
        let (route, ids) = match parts.as_slice() {
            ["", "openapi.json"] => (Route::OpenApi, [None, None]),
            ["", "chat", _, _] => (Route::File, [None, None]),
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
            ..Self::UNKNOWN
        }
    }

    /// 64 random bits that depend only on what is requested: not on the order of arrival, nor on
    /// what other requests drew.
    pub fn chance(&self, seed: u64, purpose: Purpose, attempt: u64) -> u64 {
        blend(&[seed, purpose as u64, self.hash(), attempt])
    }

    pub(super) fn hash(&self) -> u64 {
        let [user, message, offset, limit] =
            [self.user, self.message, self.offset, self.limit].map(|part| part.unwrap_or(0));
        blend(&[self.route as u64, user, message, offset, limit])
    }
}

/// How often each request came. Memory is bounded: beyond half a million distinct requests, the
/// least recent ones are forgotten and start again.
#[derive(Debug, Default)]
pub struct Attempts {
    /// The young and the old ones: only requests not repeated since the last change of generations
    /// are forgotten.
    generations: Mutex<(Counts, Counts)>,
}

/// By hash: among a million requests, two collide with a probability of 1 in 30 million.
type Counts = HashMap<u64, u64>;

impl Attempts {
    /// Counts an attempt and returns its number, from 1.
    pub fn next(&self, request: &Target) -> u64 {
        let hash = request.hash();
        let mut generations = lock(&self.generations);
        let (young, old) = &mut *generations;
        if let Some(count) = young.get_mut(&hash) {
            *count += 1;
            return *count;
        }
        let count = old.get(&hash).map_or(1, |count| count + 1);
        if young.len() >= MOST_COUNTED {
            std::mem::swap(young, old);
            young.clear();
        }
        young.insert(hash, count);
        count
    }

    /// Forgets all requests.
    pub fn clear(&self) {
        *lock(&self.generations) = Default::default();
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
