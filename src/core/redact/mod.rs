//! Redacts the secret wherever a text repeats it: a service that echoes our headers, or a program
//! that passes the secret in the wrong place, does not get it into a message.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

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
        String::from_utf8_lossy(&self.redact_bytes(text.as_bytes())).into_owned()
    }

    fn redact_bytes(&self, text: &[u8]) -> Vec<u8> {
        match &self.0 {
            Some(origin) => origin.secrets().fold(text.to_vec(), |text, secret| {
                redacted_bytes(&text, secret.as_bytes())
            }),
            None => text.to_vec(),
        }
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
                failure.body = self.redact_bytes(&failure.body).into();
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

/// Replaces the secret by stars: as it is (in any case, because hosts are in lower case),
/// percent-encoded or escaped as in JSON.
pub fn redacted(text: &str, secret: &str) -> String {
    String::from_utf8_lossy(&redacted_bytes(text.as_bytes(), secret.as_bytes())).into_owned()
}

fn redacted_bytes(text: &[u8], secret: &[u8]) -> Vec<u8> {
    if secret.len() < LEAST {
        return text.to_vec();
    }
    // A snippet may begin or end within the secret, and even do both.
    let at_start = (0..secret.len()).map(|from| alike(text.iter(), secret.iter().skip(from)));
    let at_start = at_start
        .filter(|length| *length >= LEAST)
        .max()
        .unwrap_or(0);
    let behind = text.get(at_start..).unwrap_or_default();
    let ends = 1..=secret.len();
    let at_end = ends.map(|to| alike(behind.iter().rev(), secret.iter().take(to).rev()));
    let at_end = at_end.filter(|length| *length >= LEAST).max().unwrap_or(0);
    let mut rest = text.get(at_start..text.len() - at_end).unwrap_or_default();
    let mut redacted = vec![b'*'; at_start];
    while let Some((&first, behind)) = rest.split_first() {
        match after_secret(rest, secret) {
            Some(after) => {
                redacted.extend(std::iter::repeat_n(b'*', secret.len()));
                rest = after;
            }
            None => {
                redacted.push(first);
                rest = behind;
            }
        }
    }
    redacted.extend(std::iter::repeat_n(b'*', at_end));
    redacted
}

/// How many bytes are the same before the first that differs.
fn alike<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}

/// What follows the secret at the start of a text.
fn after_secret<'t>(text: &'t [u8], secret: &[u8]) -> Option<&'t [u8]> {
    match text.split_at_checked(secret.len()) {
        Some((start, after)) if start.eq_ignore_ascii_case(secret) => Some(after),
        _ => after_escaped(text, secret, b'%').or_else(|| after_escaped(text, secret, b'\\')),
    }
}

/// The same if any byte of it may be escaped; `lead` begins each escape.
fn after_escaped<'t>(text: &'t [u8], secret: &[u8], lead: u8) -> Option<&'t [u8]> {
    secret.iter().try_fold(text, |rest, byte| match rest {
        [b'%', high, low, after @ ..] | [b'\\', b'u', b'0', b'0', high, low, after @ ..]
            if rest.first() == Some(&lead) && hexadecimal(*high, *low) == Some(*byte) =>
        {
            Some(after)
        }
        [b'\\', escaped, after @ ..] if lead == b'\\' && escaped == byte => Some(after),
        [plain, after @ ..] if plain == byte => Some(after),
        _ => None,
    })
}

fn hexadecimal(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}
