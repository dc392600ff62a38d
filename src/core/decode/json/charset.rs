//! Bytes as text: of UTF-8, and of the other charsets that a Content-Type may name. `encoding_rs` has all
//! of them, and would add 140 KB and a build script to each wheel for these two.

#![allow(unsafe_code)]

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_in_any_case_and_quotes() {
        for named in [
            "application/json; charset=ISO-8859-1",
            "application/json;a=b; CharSet=\"Windows-1252\"",
            "text/plain;charset = latin1 ",
        ] {
            assert!(is_windows_1252(named), "{named}");
        }
        for other in [
            "",
            "application/json",
            "text/html; charset=ISO-8859-15",
            "latin1",
        ] {
            assert!(!is_windows_1252(other), "{other}");
        }
        assert!(is_utf_16(None, "application/json; charset=UTF-16LE"));
    }

    #[test]
    fn each_byte_of_windows_1252_is_one_character() {
        let every: Vec<u8> = (0..=255).collect();
        let text = from_windows_1252(&every);
        assert_eq!(text.chars().count(), 256);
        assert_eq!(
            from_windows_1252(b"Zo\xeb \x80 \x81 \x9f"),
            "Zoë € \u{81} Ÿ"
        );
    }
}
