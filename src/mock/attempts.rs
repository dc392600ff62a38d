//! The identity of a request, and the random numbers that belong to it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::journal::PageArguments;
use super::routes::{Route, Target};
use super::world::draw::blend;

/// What a request asks for; 0 for parts that its route does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestKey {
    pub route: Route,
    pub user: u64,
    pub message: u64,
    pub offset: u64,
    /// The limit applied.
    pub limit: u64,
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

impl RequestKey {
    /// The key of a request for `target`, with its page if it is a list.
    #[must_use]
    pub fn new(target: Target, asked: Option<PageArguments>) -> Self {
        Self {
            route: target.route,
            user: target.user.unwrap_or(0),
            message: target.message.unwrap_or(0),
            offset: asked.map_or(0, |asked| asked.offset),
            limit: asked.map_or(0, |asked| asked.limit),
        }
    }

    /// 64 random bits that depend only on what is requested: not on the order of arrival, nor on
    /// what other requests drew.
    #[must_use]
    pub const fn chance(&self, seed: u64, purpose: Purpose, attempt: u64) -> u64 {
        blend(&[seed, purpose as u64, self.hash(), attempt])
    }

    pub(super) const fn hash(&self) -> u64 {
        let Self {
            user,
            message,
            offset,
            limit,
            ..
        } = *self;
        blend(&[self.route as u64, user, message, offset, limit])
    }
}

/// A number in `[0, 1)` from 64 bits.
#[must_use]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
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

/// The most requests in one generation.
const MOST: usize = 1 << 19;

impl Attempts {
    /// Counts an attempt and returns its number, from 1.
    pub fn next(&self, key: &RequestKey) -> u64 {
        let hash = key.hash();
        let mut generations = self.lock();
        let (young, old) = &mut *generations;
        if let Some(count) = young.get_mut(&hash) {
            *count += 1;
            return *count;
        }
        let count = old.get(&hash).map_or(1, |count| count + 1);
        if young.len() >= MOST {
            std::mem::swap(young, old);
            young.clear();
        }
        young.insert(hash, count);
        count
    }

    /// Forgets all requests.
    pub fn clear(&self) {
        *self.lock() = Default::default();
    }

    fn lock(&self) -> MutexGuard<'_, (Counts, Counts)> {
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
