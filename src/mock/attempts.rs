//! How often each request came.

use std::collections::HashMap;
use std::sync::Mutex;

use super::lock;
use super::routes::Target;

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
    pub fn next(&self, request: &Target) -> u64 {
        let hash = request.hash();
        let mut generations = lock(&self.generations);
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
        *lock(&self.generations) = Default::default();
    }
}
