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

    /// Removes the last byte, if there is one.
    pub fn drop_last_byte(&mut self) {
        let Some(mut piece) = self.pieces.pop() else {
            return;
        };
        self.length -= piece.len();
        piece.truncate(piece.len() - 1);
        self.push(piece);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_read_like_one_text(texts: Vec<String>) {
            let mut chunks = Chunks::default();
            for text in &texts {
                chunks.push(text.clone());
            }
            let mut whole = texts.concat().into_bytes();
            prop_assert_eq!(chunks.length(), whole.len());
            prop_assert_eq!(chunks.to_vec(), whole.clone());
            whole.pop();
            chunks.drop_last_byte();
            prop_assert_eq!((chunks.length(), chunks.to_vec()), (whole.len(), whole.clone()));
            let joined: Vec<u8> = chunks.into_iter().flatten().collect();
            prop_assert_eq!(joined, whole);
        }
    }
}
