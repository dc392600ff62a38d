//! The few kinds of JSON text that rows consist of.

use std::fmt::Arguments;
use std::io::Write as _;

/// Writes a number in decimal. Messages have many, and the standard formatter takes longer.
pub fn number(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut rest, mut start) = (value, digits.len());
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        start -= 1;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}

/// Writes text that needs no escapes.
pub fn formatted(text: Arguments<'_>, out: &mut Vec<u8>) {
    // A vector accepts everything.
    let _ = out.write_fmt(text);
}

/// Writes `true` or `false`.
pub fn boolean(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Writes a JSON string whose content is escaped already.
pub fn quoted(value: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(value.as_bytes());
    out.push(b'"');
}

/// Writes the content of a JSON string (RFC 8259, section 7).
pub fn escaped(value: &str, out: &mut Vec<u8>) {
    if !value
        .bytes()
        .any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\')
    {
        out.extend_from_slice(value.as_bytes());
        return;
    }
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_reads_back(value: String) {
            let mut out = vec![b'"'];
            super::escaped(&value, &mut out);
            out.push(b'"');
            prop_assert_eq!(serde_json::from_slice::<String>(&out).ok(), Some(value));
        }
    }
}
