//! What is replaced in rows before they become columns: names, addresses and references by
//! pseudonyms, bodies by nothing or by a redacted text. Where nothing is replaced, no row comes
//! here.

mod json;
mod pseudonyms;
mod redaction;

use std::borrow::Cow;
use std::collections::HashSet;
use std::{fmt, iter};

use self::pseudonyms::{Pseudonyms, What};
use self::redaction::redact;
use crate::api::Resource;
use crate::decode::json::Fault;
use crate::decode::model::{Message, Sender, Unknown, User};
use crate::decode::page::Row;

/// What is replaced.
pub struct Privacy {
    pseudonyms: Option<Pseudonyms>,
    drop_bodies: bool,
    redact: bool,
}

/// Without the key.
impl fmt::Debug for Privacy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Privacy")
            .field("pseudonymise", &self.pseudonyms.is_some())
            .field("drop_bodies", &self.drop_bodies)
            .field("redact", &self.redact)
            .finish()
    }
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

    /// The user of a row, without what may not be stored.
    pub fn user<'a>(&self, row: &'a Row) -> Result<User<'a>, Fault> {
        let mut user = row.user()?;
        let Some(pseudonyms) = &self.pseudonyms else {
            return Ok(user);
        };
        pseudonyms.replace(What::Name, &mut user.name);
        pseudonyms.replace(What::Email, &mut user.email);
        pseudonyms.replace(What::Reference, &mut user.reference);
        if let Some(url) = &mut user.last_url {
            *url = Cow::Owned(pseudonyms.page(url));
        }
        for attribute in user.user_attributes.iter_mut().flatten() {
            pseudonyms.replace(What::Value, &mut attribute.value);
            replace_extra(pseudonyms, &mut attribute.extra);
        }
        replace_extra(pseudonyms, &mut user.extra);
        Ok(user)
    }

    /// The message of a row, without what may not be stored.
    pub fn message<'a>(&self, row: &'a Row) -> Result<Message<'a>, Fault> {
        let mut message = row.message()?;
        if self.drop_bodies {
            message.body = None;
            // A field that is not documented may repeat the text.
            message.extra.clear();
            if let Some(sender) = &mut message.sender {
                sender.extra.clear();
            }
        }
        if self.redact {
            if let Some(body) = &mut message.body
                && let Cow::Owned(redacted) = redact(body)
            {
                *body = Cow::Owned(redacted);
            }
            redact_extra(&mut message.extra);
            if let Some(sender) = &mut message.sender {
                redact_extra(&mut sender.extra);
            }
        }
        if let Some(pseudonyms) = &self.pseudonyms {
            pseudonyms.replace(What::File, &mut message.file_url);
            replace_extra(pseudonyms, &mut message.extra);
            if let Some(sender) = &mut message.sender {
                replace_sender(pseudonyms, sender);
            }
        }
        Ok(message)
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

fn replace_sender(pseudonyms: &Pseudonyms, sender: &mut Sender<'_>) {
    pseudonyms.replace(What::Name, &mut sender.name);
    pseudonyms.replace(What::Email, &mut sender.email);
    pseudonyms.replace(What::Forename, &mut sender.forename);
    pseudonyms.replace(What::Surname, &mut sender.surname);
    pseudonyms.replace(What::Picture, &mut sender.picture_thumb_url);
    replace_extra(pseudonyms, &mut sender.extra);
}

fn redact_extra(extra: &mut Unknown<'_>) {
    let mut names: HashSet<String> = extra.iter().map(|(name, _)| name.to_string()).collect();
    for (name, value) in extra {
        if let Cow::Owned(redacted) = redact(name) {
            // Two addresses look alike then, and one of two equal names would be lost.
            let numbered = (2_u32..).map(|number| format!("{redacted} {number}"));
            let mut unused = iter::once(redacted.clone()).chain(numbered);
            if let Some(unused) = unused.find(|each| !names.contains(each)) {
                names.insert(unused.clone());
                *name = Cow::Owned(unused);
            }
        }
        *value = Cow::Owned(json::redacted(value));
    }
}

fn replace_extra(pseudonyms: &Pseudonyms, extra: &mut Unknown<'_>) {
    for (name, value) in extra {
        if !json::is_plain_name(name) {
            *name = Cow::Owned(pseudonyms.of(What::Field, name));
        }
        *value = Cow::Owned(json::pseudonymised(value, pseudonyms));
    }
}

#[cfg(test)]
mod tests;
