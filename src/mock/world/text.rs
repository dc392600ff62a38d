//! The few kinds of JSON text that rows consist of.

/// Writes a number in decimal.
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

/// Writes a number in decimal, with leading zeros up to `width` digits.
pub fn padded(value: u64, width: u32, out: &mut Vec<u8>) {
    let missing = (1..width)
        .rev()
        .take_while(|digits| value < 10_u64.pow(*digits));
    out.extend(missing.map(|_| b'0'));
    number(value, out);
}

/// Writes the lowest `digits` hexadecimal digits of a number.
pub fn hexadecimal(value: u64, digits: u32, out: &mut Vec<u8>) {
    out.extend(
        (0..digits)
            .rev()
            .map(|place| match (value >> (4 * place)) as u8 & 15 {
                digit @ 0..10 => b'0' + digit,
                digit => b'a' + digit - 10,
            }),
    );
}

/// Writes `true` or `false`.
pub fn boolean(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
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
        fn any_text_reads_back(value: String, count: u64) {
            let mut out = vec![b'"'];
            super::escaped(&value, &mut out);
            out.push(b'"');
            prop_assert_eq!(serde_json::from_slice::<String>(&out).ok(), Some(value));
            let mut out = Vec::new();
            super::number(count, &mut out);
            prop_assert_eq!(String::from_utf8(out).ok(), Some(count.to_string()));
            let mut out = Vec::new();
            super::padded(count % 100_000, 3, &mut out);
            super::hexadecimal(count, 12, &mut out);
            let expected = format!("{:03}{:012x}", count % 100_000, count & 0xffff_ffff_ffff);
            prop_assert_eq!(String::from_utf8(out).ok(), Some(expected));
        }
    }
}
