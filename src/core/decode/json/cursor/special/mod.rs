//! The characters that plain text in a JSON string does not have (RFC 8259, section 7): quotes,
//! backslashes and control characters, found many bytes at a time.

#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

pub use self::chunk::first;

pub fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..b' ')
}

// The strings of a message took 945 instructions in steps of 8 bytes, and take 633 in steps of 16
// (callgrind, the case "messages" of benches/decode).
#[cfg(target_arch = "x86_64")]
pub(super) mod chunk {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8,
    };

    pub const STEP: usize = 16;

    /// The position of the first special byte.
    #[inline(always)]
    pub fn first(chunk: &[u8; STEP]) -> Option<usize> {
        // SAFETY: every x86-64 processor has SSE2; the load is of 16 bytes, at any address.
        let marks = unsafe {
            let bytes = _mm_loadu_si128(chunk.as_ptr().cast());
            let quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"'.cast_signed()));
            let backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\'.cast_signed()));
            let below = _mm_min_epu8(bytes, _mm_set1_epi8((b' ' - 1).cast_signed()));
            let controls = _mm_cmpeq_epi8(below, bytes);
            _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quotes, backslashes), controls))
        };
        (marks != 0).then(|| marks.trailing_zeros() as usize)
    }
}

#[cfg(not(target_arch = "x86_64"))]
use self::word as chunk;

#[cfg(any(not(target_arch = "x86_64"), test))]
pub(super) mod word {
    pub const STEP: usize = size_of::<u64>();

    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    const SPACES: u64 = 0x2020_2020_2020_2020;
    const QUOTES: u64 = 0x2222_2222_2222_2222;
    const BACKSLASHES: u64 = 0x5c5c_5c5c_5c5c_5c5c;

    /// The position of the first special byte.
    #[inline(always)]
    pub fn first(chunk: &[u8; STEP]) -> Option<usize> {
        let word = u64::from_le_bytes(*chunk);
        // Each term marks the bytes below 1, or below a space; marks above the lowest one may be
        // wrong.
        let (quotes, backslashes) = (word ^ QUOTES, word ^ BACKSLASHES);
        let marks = (quotes.wrapping_sub(ONES) & !quotes)
            | (backslashes.wrapping_sub(ONES) & !backslashes)
            | (word.wrapping_sub(SPACES) & !word);
        let marks = marks & HIGHS;
        (marks != 0).then(|| (marks.trailing_zeros() / u8::BITS) as usize)
    }
}
