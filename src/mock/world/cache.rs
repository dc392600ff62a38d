//! A cache of rendered blocks. A block never changes, so no entry is ever outdated.

use std::sync::OnceLock;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::block::Block;

/// The most bytes of rendered rows for one world.
const CAPACITY: u64 = 64 * 1024 * 1024;
/// The usual number of blocks in it; small, so that the cache uses few shards.
const USUAL_BLOCKS: usize = 512;

/// The kind of a block, and its first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Users { first: u64 },
    Messages { index: u64, first: u64 },
}

#[derive(Clone, Debug)]
struct BlockWeight;

impl Weighter<Key, Block> for BlockWeight {
    fn weight(&self, _: &Key, block: &Block) -> u64 {
        // The cache's approximate overhead per entry.
        const ENTRY: u64 = 64;
        ENTRY + block.weight()
    }
}

/// Blocks by key, at most [`CAPACITY`] bytes of them. Takes no memory until the first one.
#[derive(Debug, Default)]
pub struct Blocks {
    kept: OnceLock<Cache<Key, Block, BlockWeight>>,
}

impl Blocks {
    /// The block, if it is cached.
    pub fn get(&self, key: Key) -> Option<Block> {
        self.kept.get()?.get(&key)
    }

    /// The block, rendered if it is not cached.
    pub fn get_or_render(&self, key: Key, render: impl FnOnce() -> Block) -> Block {
        let kept = self
            .kept
            .get_or_init(|| Cache::with_weighter(USUAL_BLOCKS, CAPACITY, BlockWeight));
        kept.get(&key).unwrap_or_else(|| {
            // Two threads may both render it, with the same result.
            let block = render();
            kept.insert(key, block.clone());
            block
        })
    }

    /// The number of bytes cached.
    #[cfg(test)]
    pub fn weight(&self) -> u64 {
        self.kept.get().map_or(0, Cache::weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_within_its_bound() {
        let blocks = Blocks::default();
        let render = || Block::written(0..64, |_, out| out.extend_from_slice(&[b'1'; 1000]));
        for first in 0..10_000 {
            let key = Key::Messages { index: 7, first };
            let block = blocks.get_or_render(key, render);
            assert_eq!(block.row(63).len(), 1000);
            assert!(blocks.weight() <= CAPACITY);
        }
        assert!(blocks.weight() > CAPACITY / 2);
        let newest = Key::Messages {
            index: 7,
            first: 9_999,
        };
        assert!(blocks.get(newest).is_some());
        assert!(blocks.get(Key::Users { first: 9_999 }).is_none());
    }
}
