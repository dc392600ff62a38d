//! Bytes as text: of UTF-8, and of the other charsets that a Content-Type may name. `encoding_rs` has all
//! of them, and would add 140 KB and a build script to each wheel for these two.

#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

/// 0x80 to 0x9F (WHATWG Encoding, 9.1). All other bytes are characters of the same number.
const HIGH_CONTROLS: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";

/// The bytes as text, or the bytes themselves if they are not valid UTF-8. Whole bodies are checked
/// once, with SIMD.
pub fn utf_8(bytes: Vec<u8>) -> Result<String, Vec<u8>> {
    match simdutf8::basic::from_utf8(&bytes) {
        // SAFETY: these very bytes have just been found to be valid UTF-8.
        Ok(_) => Ok(unsafe { String::from_utf8_unchecked(bytes) }),
        Err(_) => Err(bytes),
    }
}

/// Whether the media type names windows-1252 or ISO-8859-1, which is read as windows-1252, too
/// (WHATWG Encoding, 4.2).
pub fn is_windows_1252(content_type: &str) -> bool {
    let charset = charset(content_type);
    ["windows-1252", "cp1252", "iso-8859-1", "latin1"].contains(&&*charset)
}

/// Whether a body that is no JSON is UTF-16, by its byte order mark or its media type.
pub fn is_utf_16(start: Option<[u8; 2]>, content_type: &str) -> bool {
    matches!(start, Some([0xff, 0xfe] | [0xfe, 0xff]))
        || charset(content_type).starts_with("utf-16")
}

pub fn from_windows_1252(bytes: &[u8]) -> String {
    let character = |byte: &u8| match byte {
        0x80..=0x9f => HIGH_CONTROLS.chars().nth(usize::from(byte - 0x80)),
        _ => Some(char::from(*byte)),
    };
    bytes.iter().filter_map(character).collect()
}

/// The charset of a media type, in lower case; empty without one.
fn charset(content_type: &str) -> String {
    let parameters = content_type
        .split(';')
        .filter_map(|each| each.split_once('='));
    let named = |(name, value): (&str, &str)| {
        let is_it = name.trim().eq_ignore_ascii_case("charset");
        is_it.then(|| value.trim().trim_matches('"').to_ascii_lowercase())
    };
    parameters.filter_map(named).next().unwrap_or_default()
}
