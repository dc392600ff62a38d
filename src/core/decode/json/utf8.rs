//! Bytes as text. Whole bodies are checked once, with SIMD.

#![allow(unsafe_code)]

/// The bytes as text, or the bytes themselves if they are not valid UTF-8.
pub fn text(bytes: Vec<u8>) -> Result<String, Vec<u8>> {
    match simdutf8::basic::from_utf8(&bytes) {
        // SAFETY: these very bytes have just been found to be valid UTF-8.
        Ok(_) => Ok(unsafe { String::from_utf8_unchecked(bytes) }),
        Err(_) => Err(bytes),
    }
}
