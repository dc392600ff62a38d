//! The order of a list: the position in the world of each row that is sent.

#[cfg(test)]
mod tests;

use crate::dialect::Order;
use crate::world::draw::blend;

/// Rows that share one value of a coarse order.
const TIED: u64 = 8;
const FEISTEL_ROUNDS: u64 = 4;

/// The order that one request sees, in a list of `total` rows; computed, not stored.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    pub order: Order,
    pub total: u64,
    /// What changes the order from one request to the next.
    pub chance: u64,
}

impl Sequence {
    /// The position in the world of the row at `place`, which must be below `total`.
    pub fn position(&self, place: u64) -> u64 {
        self.permuted(place, shuffled)
    }

    /// The place of the row at a position in the world; the inverse of `position`.
    pub fn place(&self, position: u64) -> u64 {
        self.permuted(position, unshuffled)
    }

    fn permuted(&self, at: u64, permute: fn(u64, u64, u64) -> u64) -> u64 {
        match self.order {
            Order::Id => at,
            Order::Newest => (self.total - 1).saturating_sub(at),
            Order::Ties => {
                let first = at - at % TIED;
                let length = TIED.min(self.total.saturating_sub(first)).max(1);
                first + permute(at - first, length, blend(&[self.chance, first]))
            }
            Order::Shuffled => permute(at, self.total.max(1), self.chance),
        }
    }
}

/// A permutation of `0..length` that is computed, not stored: a Feistel network over the next even
/// number of bits, repeated until the result is in range.
fn shuffled(mut number: u64, length: u64, key: u64) -> u64 {
    let half = half_bits(length);
    loop {
        number = (0..FEISTEL_ROUNDS).fold(number, |number, round| {
            let (left, right) = (number >> half, number & low(half));
            (right << half) | (left ^ (blend(&[key, round, right]) & low(half)))
        });
        if number < length {
            return number;
        }
    }
}

fn unshuffled(mut number: u64, length: u64, key: u64) -> u64 {
    let half = half_bits(length);
    loop {
        number = (0..FEISTEL_ROUNDS).rev().fold(number, |number, round| {
            let (right, mixed) = (number >> half, number & low(half));
            ((mixed ^ (blend(&[key, round, right]) & low(half))) << half) | right
        });
        if number < length {
            return number;
        }
    }
}

const fn half_bits(length: u64) -> u32 {
    let bits = u64::BITS - length.saturating_sub(1).leading_zeros();
    if bits < 2 { 1 } else { bits.div_ceil(2) }
}

const fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}
