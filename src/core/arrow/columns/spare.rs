//! Memory of large columns that readers have dropped, for the columns that follow.

use std::sync::{Arc, Mutex, Weak};

use arrow_buffer::Buffer;
use bytes::Bytes;

use super::column::with_margin;

/// Allocators return larger ones to the system when they are dropped, and touching fresh memory costs:
/// batches of bodies of 4 KB took 1.3 times the CPU time (benches/speed.py).
pub(super) const LARGE: usize = 1 << 20;
/// A reader drops one batch while another is filled.
pub(super) const MOST: usize = 2;

pub(super) type Memory = Vec<u8>;

/// What one column lends to its batches. When it is dropped, so is all that came back, and what is
/// still lent is freed by its reader.
#[derive(Debug, Default)]
pub struct Spare(pub(super) Arc<Mutex<Vec<Memory>>>);

impl Spare {
    /// Empty memory with room for at least this many bytes.
    pub fn with_room(&self, bytes: usize) -> Memory {
        let spare = self.0.try_lock().ok().and_then(|mut spare| spare.pop());
        spare
            .filter(|memory| memory.capacity() >= bytes)
            .unwrap_or_else(|| Memory::with_capacity(with_margin(bytes)))
    }

    /// A buffer whose memory comes back when it is dropped.
    pub fn lend(&self, mut memory: Memory) -> Buffer {
        // A small batch in the memory of a large one would keep all of that.
        if memory.capacity() / 2 > memory.len() {
            memory.shrink_to(with_margin(memory.len()));
        }
        if memory.capacity() < LARGE {
            return Buffer::from_vec(memory);
        }
        let home = Arc::downgrade(&self.0);
        Buffer::from(Bytes::from_owner(Lent { memory, home }))
    }
}

struct Lent {
    memory: Memory,
    home: Weak<Mutex<Vec<Memory>>>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(home) = self.home.upgrade() else {
            return;
        };
        // Never waits: in a forked child, the thread that holds the lock may not exist.
        if let Ok(mut spare) = home.try_lock()
            && spare.len() < MOST
        {
            let mut memory = std::mem::take(&mut self.memory);
            memory.clear();
            spare.push(memory);
        }
    }
}
