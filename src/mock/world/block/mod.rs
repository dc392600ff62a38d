//! Consecutive rows rendered as one text, so that a page is a few slices of it; and a cache of them.
//! A block never changes, so no entry is ever outdated.

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// The most rows in a cached block. Few, because a page renders whole blocks.
pub const BLOCK: u64 = 16;
/// The most bytes of rendered rows for one world.
const CAPACITY: u64 = 64 * 1024 * 1024;
/// The usual number of blocks in it; small, so that the cache uses few shards.
const USUAL_BLOCKS: usize = 2048;

/// Consecutive rows, with commas between them.
#[derive(Clone, Debug, Default)]
pub struct Block {
    text: Bytes,
    /// Where each row ends.
    ends: Arc<[usize]>,
}

/// A block under construction.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl BlockBuilder {
    /// An empty block, with room for `rows` rows of the usual length.
    pub fn with_room(rows: u64) -> Self {
        const USUAL_ROW: u64 = 512;
        Self {
            text: Vec::with_capacity((rows * USUAL_ROW) as usize),
            ends: Vec::with_capacity(rows as usize),
        }
    }

    /// Appends a row, which `write` adds to the text.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.text.is_empty() {
            self.text.push(b',');
        }
        write(&mut self.text);
        self.ends.push(self.text.len());
    }

    pub fn finish(mut self) -> Block {
        // The cache counts a block by its length, so it must not hold more than that.
        self.text.shrink_to_fit();
        Block {
            text: Bytes::from(self.text),
            ends: self.ends.into(),
        }
    }
}

impl Block {
    /// The rows `places`, with commas between them; empty if they do not exist.
    pub fn rows(&self, places: Range<u64>) -> Bytes {
        let end = |place: u64| self.ends.get(place as usize).copied();
        let before = places.start.checked_sub(1);
        let start = before.map_or(Some(0), |before| end(before).map(|comma| comma + 1));
        let stop = places.end.checked_sub(1).and_then(end);
        match (start, stop) {
            (Some(start), Some(stop)) if start <= stop => self.text.slice(start..stop),
            _ => Bytes::new(),
        }
    }

    /// All rows.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// The list of a block, and its first row.
pub type Key = (Option<u64>, u64);

#[derive(Clone, Debug)]
struct BlockWeight;

impl Weighter<Key, Block> for BlockWeight {
    fn weight(&self, _: &Key, block: &Block) -> u64 {
        // The cache's approximate overhead per entry.
        const ENTRY: usize = 64 + 2 * size_of::<Block>();
        (ENTRY + block.text.len() + size_of_val(&*block.ends)) as u64
    }
}

/// Blocks by key, at most [`CAPACITY`] bytes of them. Takes no memory until the first one.
#[derive(Debug, Default)]
pub struct Blocks {
    cached: OnceLock<Cache<Key, Block, BlockWeight>>,
}

impl Blocks {
    /// The block, if it is cached.
    pub fn get(&self, key: Key) -> Option<Block> {
        self.cached.get()?.get(&key)
    }

    /// The block, rendered if it is not cached.
    pub fn get_or_render(&self, key: Key, render: impl FnOnce() -> Block) -> Block {
        let new = || Cache::with_weighter(USUAL_BLOCKS, CAPACITY, BlockWeight);
        let cached = self.cached.get_or_init(new);
        cached.get(&key).unwrap_or_else(|| {
            // Two threads may both render it, with the same result.
            let block = render();
            cached.insert(key, block.clone());
            block
        })
    }

    /// The number of bytes cached.
    #[cfg(test)]
    pub fn weight(&self) -> u64 {
        self.cached.get().map_or(0, Cache::weight)
    }
}
