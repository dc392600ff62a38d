//! A response body in pieces, so that rows already in memory are not copied.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// From this many pieces on, joining them is cheaper than passing each to the system.
const MANY: usize = 32;

/// Consecutive pieces of bytes.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    pieces: VecDeque<Bytes>,
    length: usize,
}

impl Chunks {
    /// Appends a piece.
    pub fn push(&mut self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.length += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// The total number of bytes.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Drops everything after the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
        let mut left = self.length;
        for piece in &mut self.pieces {
            piece.truncate(left);
            left -= piece.len();
        }
    }

    /// The same bytes in few pieces.
    pub fn joined(self) -> Self {
        if self.pieces.len() > MANY {
            Self::from(self.to_vec())
        } else {
            self
        }
    }

    /// All bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.length);
        for piece in &self.pieces {
            whole.extend_from_slice(piece);
        }
        whole
    }
}

impl<Piece: Into<Bytes>> From<Piece> for Chunks {
    fn from(piece: Piece) -> Self {
        let mut chunks = Self::default();
        chunks.push(piece);
        chunks
    }
}

impl Buf for Chunks {
    fn remaining(&self) -> usize {
        self.length
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn chunks_vectored<'buffer>(&'buffer self, slots: &mut [IoSlice<'buffer>]) -> usize {
        let filled = slots.iter_mut().zip(&self.pieces);
        filled
            .map(|(slot, piece)| *slot = IoSlice::new(piece))
            .count()
    }

    fn advance(&mut self, mut count: usize) {
        self.length = self.length.saturating_sub(count);
        while let Some(front) = self.pieces.front_mut() {
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.pieces.pop_front();
        }
    }
}
