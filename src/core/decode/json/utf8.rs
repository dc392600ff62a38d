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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_the_standard_library_finds(
            start in "\\PC{0,80}",
            odd in proptest::collection::vec(any::<u8>(), 0..4),
            end in "\\PC{0,80}",
        ) {
            let bytes = [start.as_bytes(), &odd, end.as_bytes()].concat();
            let reference = String::from_utf8(bytes.clone()).map_err(|error| error.into_bytes());
            prop_assert_eq!(text(bytes), reference);
        }
    }
}
