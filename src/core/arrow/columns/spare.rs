//! Memory of large columns that readers have dropped, for the columns that follow.

use std::sync::{Arc, Mutex, Weak};

use arrow_buffer::Buffer;
use bytes::Bytes;

use super::column::with_margin;

/// Allocators return larger ones to the system when they are dropped, and touching fresh memory costs:
/// batches of bodies of 4 KB took 1.3 times the CPU time (benches/speed.py).
const LARGE: usize = 1 << 20;
/// A reader drops one batch while another is filled.
const MOST: usize = 2;

type Memory = Vec<u8>;

/// What one column lends to its batches. When it is dropped, so is all that came back, and what is
/// still lent is freed by its reader.
#[derive(Debug, Default)]
pub struct Spare(Arc<Mutex<Vec<Memory>>>);

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

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(spare: &Spare) -> Memory {
        let mut memory = spare.with_room(LARGE);
        memory.resize(LARGE, b'x');
        memory
    }

    #[test]
    fn dropped_memory_is_used_again() {
        let spare = Spare::default();
        let buffer = spare.lend(filled(&spare));
        let first = buffer.as_ptr();
        let slice = buffer.slice(7);
        drop(buffer);
        // The slice still holds it.
        let other = spare.with_room(LARGE);
        assert_ne!(other.as_ptr(), first);
        drop(slice);
        let again = spare.with_room(LARGE);
        assert!(again.is_empty());
        assert_eq!(again.as_ptr(), first);
    }

    #[test]
    fn memory_that_is_too_small_is_not_used() {
        let spare = Spare::default();
        drop(spare.lend(filled(&spare)));
        assert!(spare.with_room(4 * LARGE).capacity() >= 4 * LARGE);
    }

    #[test]
    fn no_more_is_kept_than_is_needed() {
        let spare = Spare::default();
        let lent: Vec<Buffer> = (0..5).map(|_| spare.lend(filled(&spare))).collect();
        drop(lent);
        assert_eq!(spare.0.lock().unwrap().len(), MOST);
        drop(spare.lend(Memory::with_capacity(LARGE - 1)));
        assert_eq!(spare.0.lock().unwrap().len(), MOST);
    }

    #[test]
    fn a_small_batch_does_not_keep_the_memory_of_a_large_one() {
        let spare = Spare::default();
        let mut memory = filled(&spare);
        memory.reserve(8 * LARGE);
        drop(spare.lend(memory));
        assert!(spare.with_room(0).capacity() < 2 * LARGE);
    }

    #[test]
    fn a_buffer_outlives_its_column() {
        let spare = Spare::default();
        let buffer = spare.lend(filled(&spare));
        drop(spare);
        assert_eq!(buffer.as_slice(), vec![b'x'; LARGE]);
    }
}
