//! What is replaced in rows before they become columns: names, addresses and references by
//! pseudonyms, bodies by nothing or by a redacted text. Where nothing is replaced, no row comes
//! here.

mod json;
mod redaction;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::iter;
use std::sync::Arc;

use ring::hmac;
use url::Url;

use self::redaction::redact;
pub use self::redaction::replace_emails;
use crate::api::Resource;
use crate::decode::json::Fault;
use crate::decode::json::cursor::Span;
use crate::decode::page::Row;
use crate::decode::rows::{Extra, Message, Sender, User};

/// Bytes of a pseudonym, of the 32 that the hash has.
const PSEUDONYM_LENGTH: usize = 16;

/// What is replaced.
#[derive(Debug)]
pub struct Privacy {
    pseudonyms: Option<Pseudonyms>,
    drop_bodies: bool,
    redact: bool,
}

impl Privacy {
    /// With `key`, names, addresses and references become pseudonyms. `drop_bodies` keeps no text
    /// of messages; `redact` blanks e-mail addresses, phone and card numbers in it.
    #[must_use]
    pub fn new(key: Option<&[u8]>, drop_bodies: bool, redact: bool) -> Self {
        Self {
            pseudonyms: key.map(Pseudonyms::new),
            drop_bodies,
            redact,
        }
    }

    /// The user of a row, without what may not be stored, and the text that its positions are in.
    pub fn user(&self, row: &Row) -> Result<(String, User), Fault> {
        let (mut text, mut user) = copy(row, Row::user)?;
        let Some(pseudonyms) = &self.pseudonyms else {
            return Ok((text, user));
        };
        for (kind, place) in [
            ("name", &mut user.name),
            ("email", &mut user.email),
            ("reference", &mut user.reference),
        ] {
            pseudonyms.replace(&mut text, kind, place);
        }
        change(&mut text, &mut user.last_url, |url| pseudonyms.page(url));
        for attribute in user.user_attributes.iter_mut().flatten() {
            pseudonyms.replace(&mut text, "value", &mut attribute.value);
            replace_extra(pseudonyms, &mut text, &mut attribute.extra);
        }
        replace_extra(pseudonyms, &mut text, &mut user.extra);
        Ok((text, user))
    }

    /// The same for the message of a row.
    pub fn message(&self, row: &Row) -> Result<(String, Message), Fault> {
        let (mut text, mut message) = copy(row, Row::message)?;
        if self.drop_bodies {
            message.body = None;
            // A field that is not documented may repeat the text.
            extras(&mut message).for_each(Extra::clear);
        }
        if self.redact {
            change(&mut text, &mut message.body, |body| redact(body).into());
            extras(&mut message).for_each(|extra| redact_extra(&mut text, extra));
        }
        if let Some(pseudonyms) = &self.pseudonyms {
            pseudonyms.replace(&mut text, "file", &mut message.file_url);
            if let Some(sender) = &mut message.sender {
                replace_sender(pseudonyms, &mut text, sender);
            }
            extras(&mut message).for_each(|extra| replace_extra(pseudonyms, &mut text, extra));
        }
        Ok((text, message))
    }

    /// The JSON of a record that does not fit, and why it does not, without what may not be stored.
    pub fn reject(&self, row: &Row) -> (String, String) {
        let of_message = row.resource() == Resource::Messages;
        let stored = if self.drop_bodies && of_message {
            "null".to_owned()
        } else if let Some(pseudonyms) = &self.pseudonyms {
            json::pseudonymised_record(row.json(), pseudonyms)
        } else if self.redact && of_message {
            json::redacted(row.json())
        } else {
            row.json().to_owned()
        };
        // A parser's reason may quote the record.
        let why = row.unreadable.map_or("does not fit", |why| why.reason());
        (stored, format!("the record {why}"))
    }
}

/// The record of a row, with a copy of its text, to which others can be appended.
fn copy<T: Clone>(
    row: &Row,
    read: impl Fn(&Row) -> Result<(&str, &T), Fault>,
) -> Result<(String, T), Fault> {
    read(row)?;
    let alone = Row::alone(Arc::new(row.json().to_owned()), row.resource())?;
    let (text, record) = read(&alone)?;
    Ok((text.to_owned(), record.clone()))
}

/// Replaces a text by what it is changed to, which is appended to `text`.
fn change(text: &mut String, place: &mut Option<Span>, change: impl Fn(&str) -> String) {
    if let Some(span) = place {
        let changed = change(&span.text(text));
        *span = Span::append(text, &changed);
    }
}

fn replace_sender(pseudonyms: &Pseudonyms, text: &mut String, sender: &mut Sender) {
    for (kind, place) in [
        ("name", &mut sender.name),
        ("email", &mut sender.email),
        ("forename", &mut sender.forename),
        ("surname", &mut sender.surname),
        ("picture", &mut sender.picture_thumb_url),
    ] {
        pseudonyms.replace(text, kind, place);
    }
}

/// The fields that are not documented, of the message and of its sender.
fn extras(message: &mut Message) -> impl Iterator<Item = &mut Extra> {
    let of_sender = message.sender.as_mut().map(|sender| &mut sender.extra);
    iter::once(&mut message.extra).chain(of_sender)
}

fn redact_extra(text: &mut String, extra: &mut Extra) {
    let names = extra.iter().map(|(name, _)| name.text(text).into_owned());
    let mut names: HashSet<String> = names.collect();
    for (name, value) in extra {
        if let Cow::Owned(redacted) = redact(&name.text(text)) {
            // Two addresses look alike then, and one of two equal names would be lost.
            let numbered = (2_u32..).map(|number| format!("{redacted} {number}"));
            let mut unused = iter::once(redacted.clone()).chain(numbered);
            if let Some(unused) = unused.find(|each| !names.contains(each)) {
                *name = Span::append(text, &unused);
                names.insert(unused);
            }
        }
        let redacted = json::redacted(value.of(text));
        *value = Span::append(text, &redacted);
    }
}

fn replace_extra(pseudonyms: &Pseudonyms, text: &mut String, extra: &mut Extra) {
    for (name, value) in extra {
        let plain = name.text(text).into_owned();
        if !json::is_plain_name(&plain) {
            *name = Span::append(text, &pseudonyms.of("field", &plain));
        }
        let replaced = json::pseudonymised(value.of(text), pseudonyms);
        *value = Span::append(text, &replaced);
    }
}

/// Makes pseudonyms: `email-` and 32 hexadecimal digits, by HMAC-SHA256 under a key. It holds the key, and its debug form does not show it.
#[derive(Debug)]
pub struct Pseudonyms(hmac::Key);

impl Pseudonyms {
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The pseudonym of a text, which begins with the kind of the text: equal texts of one kind have
    /// equal pseudonyms. An empty text stays empty.
    pub fn of(&self, kind: &'static str, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let mut hash = hmac::Context::with_key(&self.0);
        // No kind has a colon, so no two kinds hash the same bytes.
        for part in [kind, ":", text] {
            hash.update(part.as_bytes());
        }
        let mut pseudonym = String::with_capacity(kind.len() + 1 + 2 * PSEUDONYM_LENGTH);
        pseudonym.push_str(kind);
        pseudonym.push('-');
        for byte in hash.sign().as_ref().iter().take(PSEUDONYM_LENGTH) {
            let _ = write!(pseudonym, "{byte:02x}");
        }
        pseudonym
    }

    /// Replaces a text of that kind by its pseudonym, which is appended to `text`.
    fn replace(&self, text: &mut String, kind: &'static str, place: &mut Option<Span>) {
        change(text, place, |text| self.of(kind, text));
    }

    /// The address of a page: its host and the pseudonym of its path. Query and fragment are left
    /// out, and so are a user name and a password.
    pub fn page(&self, address: &str) -> String {
        let page = Url::parse(address).ok();
        let page = page.filter(|page| matches!(page.scheme(), "http" | "https"));
        let Some((page, host)) = page
            .as_ref()
            .and_then(|page| Some((page, page.host_str()?)))
        else {
            return self.of("url", address);
        };
        let port = page.port().map_or(String::new(), |port| format!(":{port}"));
        let path = match page.path() {
            "" | "/" => String::new(),
            path => self.of("page", path),
        };
        format!("{}://{host}{port}/{path}", page.scheme())
    }
}
