//! A response body in pieces, so that rows already in memory are not copied.

use bytes::Bytes;

/// Consecutive pieces of bytes.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    pieces: Vec<Bytes>,
    length: usize,
}

impl Chunks {
    /// Appends a piece.
    pub fn push(&mut self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.length += piece.len();
            self.pieces.push(piece);
        }
    }

    /// The total number of bytes.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// All bytes in one piece.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.length);
        for piece in &self.pieces {
            whole.extend_from_slice(piece);
        }
        whole
    }
}

impl IntoIterator for Chunks {
    type Item = Bytes;
    type IntoIter = std::vec::IntoIter<Bytes>;

    fn into_iter(self) -> Self::IntoIter {
        self.pieces.into_iter()
    }
}

impl<Piece: Into<Bytes>> From<Piece> for Chunks {
    fn from(piece: Piece) -> Self {
        let mut chunks = Self::default();
        chunks.push(piece);
        chunks
    }
}
