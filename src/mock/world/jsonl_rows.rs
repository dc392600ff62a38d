//! The rows of a world from JSON lines, byte for byte.

use std::collections::HashSet;

use bytes::Bytes;

use super::block::{BLOCK, Block};
use super::draw::Digest;

/// Users, in their order, with their messages.
#[derive(Debug, Default)]
pub struct JsonlRows {
    pub users: FixedRows,
    /// One for each user.
    pub messages: Vec<UserMessages>,
}

/// The messages of one user.
#[derive(Debug, Default)]
pub struct UserMessages {
    pub rows: FixedRows,
    /// The latest time in the user or a message, in milliseconds since 1970.
    pub last: Option<u64>,
}

impl JsonlRows {
    /// The messages of the user at `index`, if the lines had that user.
    pub fn messages_of(&self, index: u64) -> Option<&UserMessages> {
        self.messages.get(index as usize)
    }

    /// Adds all rows to a fingerprint; nothing if there are none.
    pub fn digest(&self, digest: &mut Digest) {
        self.users.digest(digest);
        for messages in &self.messages {
            digest.number(messages.rows.len());
            messages.rows.digest(digest);
        }
    }
}

/// Rows with their ids, found by id and by place.
#[derive(Debug, Default)]
pub struct FixedRows {
    ids: Vec<u64>,
    /// The places by ascending id, unless the list is in that order itself.
    by_id: Option<Vec<usize>>,
    blocks: Vec<Block>,
}

impl FixedRows {
    pub const fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    pub fn largest_id(&self) -> Option<u64> {
        self.ids.iter().copied().max()
    }

    pub fn id(&self, place: u64) -> Option<u64> {
        self.ids.get(place as usize).copied()
    }

    pub fn place(&self, id: u64) -> Option<u64> {
        let place = match &self.by_id {
            None => self.ids.binary_search(&id).ok(),
            Some(by_id) => by_id
                .binary_search_by_key(&Some(id), |place| self.ids.get(*place).copied())
                .ok()
                .and_then(|found| by_id.get(found).copied()),
        };
        place.map(|place| place as u64)
    }

    /// The block of `place`; each has the rows of [`super::block::span`].
    pub fn block(&self, place: u64) -> Option<&Block> {
        let block = self.blocks.get((place / BLOCK) as usize);
        block.filter(|_| place < self.len())
    }

    pub fn row(&self, place: u64) -> Option<Bytes> {
        Some(self.block(place)?.row(place % BLOCK))
    }

    fn digest(&self, digest: &mut Digest) {
        for block in &self.blocks {
            digest.bytes(block.text());
        }
    }
}

/// Rows under construction.
#[derive(Debug, Default)]
pub struct FixedRowsBuilder {
    ids: Vec<u64>,
    seen: HashSet<u64>,
    blocks: Vec<Block>,
    open: Vec<Vec<u8>>,
}

impl FixedRowsBuilder {
    /// Appends a row; false if its id exists already.
    pub fn push(&mut self, id: u64, row: Vec<u8>) -> bool {
        if !self.seen.insert(id) {
            return false;
        }
        self.ids.push(id);
        self.open.push(row);
        if self.open.len() as u64 == BLOCK {
            self.close_block();
        }
        true
    }

    pub const fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    pub fn finish(mut self) -> FixedRows {
        if !self.open.is_empty() {
            self.close_block();
        }
        let ids = self.ids;
        let by_id = (!ids.is_sorted()).then(|| {
            let mut places: Vec<usize> = (0..ids.len()).collect();
            places.sort_unstable_by_key(|place| ids.get(*place));
            places
        });
        FixedRows {
            ids,
            by_id,
            blocks: self.blocks,
        }
    }

    fn close_block(&mut self) {
        let mut rows = self.open.drain(..);
        let places = 0..rows.len() as u64;
        self.blocks.push(Block::written(places, |_, out| {
            out.append(&mut rows.next().unwrap_or_default());
        }));
    }
}
