//! Redacts the secret wherever a text repeats it: a service that echoes our headers, or a program
//! that passes the secret in the wrong place, does not get it into a message.

use std::fmt;
use std::sync::Arc;

use secrecy::ExposeSecret;

use super::config::Origin;
use super::error::{Error, ErrorKind};
use crate::decode::json::Fault;

// Anything shorter may occur in a text by chance.
const LEAST: usize = 6;

/// Knows the secret to redact; the default has none.
#[derive(Debug, Clone, Default)]
pub struct Redactor(Option<Arc<Origin>>);

impl Redactor {
    pub fn of(origin: &Arc<Origin>) -> Self {
        Self(Some(Arc::clone(origin)))
    }

    /// The URL of a request, given by its path and query.
    pub fn url(&self, request: &impl fmt::Display) -> String {
        match &self.0 {
            Some(origin) => self.redact(origin.address(request).as_str()),
            None => request.to_string(),
        }
    }

    pub fn redact_fault(&self, mut fault: Fault) -> Fault {
        for text in [&mut fault.path, &mut fault.reason, &mut fault.snippet] {
            *text = self.redact(text);
        }
        fault
    }

    pub fn redact(&self, text: &str) -> String {
        match &self.0 {
            Some(origin) => redacted(text, origin.api_secret.expose_secret()),
            None => text.to_owned(),
        }
    }

    /// Of a body in any encoding: if it is not UTF-8, each byte is taken for a character.
    fn redact_body(&self, body: &[u8]) -> Vec<u8> {
        if let Ok(text) = std::str::from_utf8(body) {
            return self.redact(text).into_bytes();
        }
        let text: String = body.iter().copied().map(char::from).collect();
        let redacted = self.redact(&text);
        redacted
            .chars()
            .map(|character| u8::try_from(character).unwrap_or(b'*'))
            .collect()
    }

    /// Redacts a failure, with what the service sent.
    pub fn redact_kind(&self, mut kind: ErrorKind) -> ErrorKind {
        match &mut kind {
            ErrorKind::Connect(text)
            | ErrorKind::Insecure(text)
            | ErrorKind::NotHttp(text)
            | ErrorKind::TruncatedBody(text)
            | ErrorKind::Transport(text) => *text = self.redact(text),
            ErrorKind::Decode {
                path,
                snippet,
                reason,
                ..
            } => {
                for text in [path, snippet, reason] {
                    *text = self.redact(text);
                }
            }
            ErrorKind::Status(failure) => {
                let of_headers = failure.headers.iter_mut();
                let of_headers = of_headers.flat_map(|(name, value)| [name, value]);
                for text in of_headers.chain(&mut failure.request_id) {
                    *text = self.redact(text);
                }
                failure.body = self.redact_body(&failure.body).into();
            }
            _ => {}
        }
        kind
    }
}

/// A settings error without the secret.
pub fn redacted_settings(error: Error, secret: &str) -> Error {
    match &error.kind {
        ErrorKind::Configuration(text) => Error::configuration(redacted(text, secret)),
        _ => error,
    }
}

/// Replaces the secret by stars: as it is, in lower case (as hosts are), or escaped.
pub fn redacted(text: &str, secret: &str) -> String {
    if secret.len() < LEAST {
        return text.to_owned();
    }
    let stars = "*".repeat(secret.len());
    let whole = text
        .replace(secret, &stars)
        .replace(&secret.to_ascii_lowercase(), &stars);
    let whole = without_spelled(whole, secret, b'\\', in_quotes);
    let whole = without_spelled(whole, secret, b'%', in_address);
    let whole = without_spelled(whole, secret, b'&', in_markup);
    without_parts_at_the_ends(whole, secret)
}

/// A snippet may begin or end within the secret, and even do both.
fn without_parts_at_the_ends(text: String, secret: &str) -> String {
    let (bytes, of_secret) = (text.as_bytes(), secret.as_bytes());
    let alike = |pair: &(&u8, &u8)| pair.0 == pair.1;
    let at_start = (0..of_secret.len()).map(|from| {
        let part = of_secret.get(from..).unwrap_or_default();
        bytes.iter().zip(part).take_while(alike).count()
    });
    let at_end = (1..=of_secret.len()).map(|to| {
        let part = of_secret.get(..to).unwrap_or_default();
        let pairs = bytes.iter().rev().zip(part.iter().rev());
        pairs.take_while(alike).count()
    });
    let at_start = at_start.max().filter(|length| *length >= LEAST);
    let at_end = at_end.max().filter(|length| *length >= LEAST);
    let start = text.floor_char_boundary(at_start.unwrap_or(0));
    let end = text.ceil_char_boundary(text.len() - at_end.unwrap_or(0));
    match text.get(start..end.max(start)) {
        Some(rest) => format!(
            "{}{rest}{}",
            "*".repeat(start),
            "*".repeat(text.len() - end.max(start))
        ),
        None => text,
    }
}

/// Decodes the byte of the secret at the start of a text; also gives the length of its escape.
type Escape = fn(&[u8]) -> Option<(u8, usize)>;

/// `lead` begins each escape.
fn without_spelled(text: String, secret: &str, lead: u8, escape: Escape) -> String {
    let Some(&first) = secret.as_bytes().first() else {
        return text;
    };
    if memchr::memchr(lead, text.as_bytes()).is_none() {
        return text;
    }
    let stars = "*".repeat(secret.len());
    let mut redacted = String::with_capacity(text.len());
    let (mut copied, mut from) = (0, 0);
    while let Some(rest) = text.as_bytes().get(from..)
        && let Some(found) = memchr::memchr2(lead, first, rest)
    {
        let at = from + found;
        let length = rest
            .get(found..)
            .and_then(|rest| spelled(rest, secret, escape));
        from = at + length.unwrap_or(1);
        if length.is_some()
            && let Some(before) = text.get(copied..at)
            && text.is_char_boundary(from)
        {
            redacted.push_str(before);
            redacted.push_str(&stars);
            copied = from;
        }
    }
    redacted.push_str(text.get(copied..).unwrap_or_default());
    redacted
}

/// The length of the secret at the start of a text that escapes some of it.
fn spelled(text: &[u8], secret: &str, escape: Escape) -> Option<usize> {
    let mut length = 0;
    for byte in secret.bytes() {
        let rest = text.get(length..)?;
        length += match escape(rest) {
            Some((meant, long)) if meant == byte => long,
            _ if rest.first() == Some(&byte) => 1,
            _ => return None,
        };
    }
    Some(length)
}

fn in_quotes(text: &[u8]) -> Option<(u8, usize)> {
    match text {
        [b'\\', b'u', b'0', b'0', high, low, ..] => Some((hexadecimal(*high, *low)?, 6)),
        [b'\\', escaped, ..] => Some((*escaped, 2)),
        _ => None,
    }
}

fn in_address(text: &[u8]) -> Option<(u8, usize)> {
    match text {
        [b'%', high, low, ..] => Some((hexadecimal(*high, *low)?, 3)),
        _ => None,
    }
}

/// As pages of errors have it: `&#43;`, `&#x2B;` and `&amp;`.
fn in_markup(text: &[u8]) -> Option<(u8, usize)> {
    let name = text.strip_prefix(b"&")?;
    let length = name.iter().take(8).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(name.get(..length)?).ok()?;
    let byte = match name {
        "amp" => b'&',
        "lt" => b'<',
        "gt" => b'>',
        "quot" => b'"',
        "apos" => b'\'',
        _ => {
            let number = name.strip_prefix('#')?;
            match number.strip_prefix(['x', 'X']) {
                Some(digits) => u8::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            }
        }
    };
    Some((byte, length + 2))
}

fn hexadecimal(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_secret_is_starred_whole_and_where_a_text_is_cut_within_it() {
        let secret = "t0psecret!";
        assert_eq!(redacted("a t0psecret! b", secret), "a ********** b");
        assert_eq!(redacted("a t0psec", secret), "a ******");
        assert_eq!(redacted("secret! b", secret), "******* b");
        assert_eq!(redacted("a secret b", secret), "a secret b");
        assert_eq!(redacted("id", "id"), "id");
    }

    #[test]
    fn a_secret_is_starred_however_it_is_spelled() {
        let secret = r#"T0p/Se"c\r+%25t"#;
        let stars = "*".repeat(secret.len());
        for spelling in [
            secret,
            &secret.to_lowercase(),
            r#"T0p/Se\"c\\r+%25t"#,
            r#"T0p\/Se\"c\\r+%25t"#,
            "T0p%2FSe%22c%5Cr%2B%2525t",
            "T0p%2fSe%22c%5cr+%2525t",
            "%540p/Se%22c%5Cr+%25%32%35t",
            r"T0p\u002fSe\u0022c\u005Cr\u002B%25t",
            "T0p&#47;Se&quot;c&#x5C;r&#x2b;%25t",
        ] {
            assert_eq!(
                redacted(&format!("é{spelling}é"), secret),
                format!("é{stars}é")
            );
        }
        assert_eq!(redacted("T0p%2FSe%2", secret), "T0p%2FSe%2");
    }

    proptest! {
        #[test]
        fn nothing_around_a_spelled_secret_keeps_it(
            before in r"[\\%&;#ué5T0]{0,8}",
            after in r"[\\%&;#ué5T0]{0,8}",
            spelling in 0_usize..3,
        ) {
            let secret = r#"T0p/Se"c+"#;
            let spelled = [r#"T0p/Se\"c+"#, "T0p%2FSe%22c%2B", "T0p&#47;Se&quot;c&#x2b;"];
            let text = format!("{before}{}{after}", spelled[spelling]);
            prop_assert!(!redacted(&text, secret).contains(spelled[spelling]));
        }
    }
}
