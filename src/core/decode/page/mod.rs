//! A list response (interface 2.3), split into rows. `scan.rs` reads its text once, and `members.rs`
//! the fields of its objects; that is the only reading, whatever JSON a service sends.

#[cfg(any(test, fuzzing))]
pub mod agreement;
mod members;
mod scan;
#[cfg(test)]
mod tests;
mod verdict;

use std::sync::Arc;

use bytes::Bytes;

use self::scan::{Envelope, Place, Refused, Scanned, ScannedRows};
pub use self::verdict::Unreadable;
use self::verdict::Verdict;
use crate::api::{Limit, Resource};
use crate::decode::json::cursor::Cursor;
use crate::decode::json::{self, Fault, Text};
use crate::decode::rows::{Message, User};
use crate::error::Misfit;
use crate::timestamp::Timestamp;

/// What all rows of a page share.
#[derive(Debug)]
struct Source {
    json: Arc<String>,
    places: Vec<Place>,
    rows: ScannedRows,
    resource: Resource,
    /// Its only row came alone, not in a page.
    alone: bool,
}

impl Source {
    fn split(self) -> Vec<Row> {
        let source = Arc::new(self);
        let places = source.places.iter().enumerate();
        let row = |(index, place): (usize, &Place)| Row {
            source: Arc::clone(&source),
            index,
            id: place.verdict.id,
            unreadable: place.verdict.unreadable,
            odd_values: place.verdict.odd_values,
        };
        places.map(row).collect()
    }
}

/// One row of a page: a slice of the page's text, and its id if it has one.
#[derive(Debug, Clone)]
pub struct Row {
    source: Arc<Source>,
    index: usize,
    /// `None` if the row is not an object or has no integer id.
    pub id: Option<i64>,
    /// Why it cannot become a record, if so.
    pub unreadable: Option<Unreadable>,
    /// Values of documented fields that have another type.
    pub odd_values: u64,
}

impl Row {
    /// A record that came alone, not in a page.
    pub fn alone(json: Arc<String>, resource: Resource) -> Result<Self, Fault> {
        let refuse = |refused| refusal(refused, &json, resource);
        let (places, rows) = scan::scan_alone(&json, resource).map_err(refuse)?;
        let source = Source {
            json: Arc::clone(&json),
            places,
            rows,
            resource,
            alone: true,
        };
        let row = source.split().pop();
        row.ok_or_else(|| refuse(Refused::NotAnObject))
    }

    pub fn json(&self) -> &str {
        let place = self.source.places.get(self.index);
        place
            .and_then(|place| self.source.json.get(place.slice.clone()))
            .unwrap_or_default()
    }

    /// The size of its page's text, in bytes.
    pub fn page_bytes(&self) -> usize {
        self.source.json.len()
    }

    /// Its index in the page, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    pub fn resource(&self) -> Resource {
        self.source.resource
    }

    /// The user and the text that its positions are in; fails if the row cannot be read.
    pub fn user(&self) -> Result<(&str, &User), Fault> {
        match &self.source.rows {
            ScannedRows::Users(users) => self.scanned(users),
            ScannedRows::Messages(_) => Err(self.fault()),
        }
    }

    /// The same for a message.
    pub fn message(&self) -> Result<(&str, &Message), Fault> {
        match &self.source.rows {
            ScannedRows::Messages(messages) => self.scanned(messages),
            ScannedRows::Users(_) => Err(self.fault()),
        }
    }

    fn scanned<'a, T>(&'a self, rows: &'a [Option<T>]) -> Result<(&'a str, &'a T), Fault> {
        let row = rows.get(self.index).and_then(Option::as_ref);
        row.map(|row| (self.source.json.as_str(), row))
            .ok_or_else(|| self.fault())
    }

    /// Whether both rows came in one response.
    pub fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.source, &other.source)
    }

    /// Why the row cannot be read, with a path relative to the response.
    fn fault(&self) -> Fault {
        let row = self.json();
        let (path, reason, near) = match (self.unreadable, sent_id(row)) {
            (Some(Unreadable::NoId), None | Some("null")) => {
                ("$.id", "the id is null or missing", row)
            }
            (Some(Unreadable::NoId), Some(id)) => ("$.id", "the id is not a 64-bit integer", id),
            (Some(Unreadable::TooDeep), _) => ("$", "nested too deep", row),
            (Some(Unreadable::NoObject), _) => ("$", "not an object", row),
            _ => ("$", "not read", row),
        };
        let fault = Fault::new(path, reason, near).of(Misfit::Field);
        if self.source.alone {
            fault
        } else {
            fault.below(&format!("$.{}[{}]", self.resource().key(), self.index))
        }
    }
}

/// The JSON of a row's id, if it has one.
fn sent_id(row: &str) -> Option<&str> {
    let mut found = None;
    Cursor::new(row)?.object(|cursor, key| {
        let value = cursor.value()?;
        if key.text(row) == "id" {
            found = Some(value.of(row));
        }
        Some(())
    });
    found
}

/// The fault of a text that is not what was requested.
fn refusal(refused: Refused, json: &str, resource: Resource) -> Fault {
    match refused {
        Refused::Rows(reason) => Fault::new(&format!("$.{}", resource.key()), reason, json),
        Refused::NotAnObject => match json::check(json) {
            Err(fault) => fault,
            Ok(()) => Fault::new("$", "not an object", json),
        },
    }
}

/// A list response (interface 2.3), whose rows are not decoded yet.
#[derive(Debug, Clone)]
pub struct Page {
    pub limit: Option<i64>,
    pub offset: Option<i64>,
    pub total: Option<i64>,
    pub rows: Vec<Row>,
    pub text: Text,
    /// The limit that was requested instead of the walk's, because more rows could not be read.
    pub reduced_to: Option<Limit>,
    /// When it was made, or later, if a cache had stored it.
    pub stored_at: Option<Timestamp>,
}

impl Page {
    /// The page in a response's body.
    pub fn of_body(
        body: Bytes,
        content_type: Option<&str>,
        resource: Resource,
    ) -> Result<Self, Fault> {
        let text = Text::unicode(body, content_type);
        match scan::scan(&text.json, resource) {
            Ok(scanned) => Ok(Self::of(scanned, text, resource)),
            // The scan lets no lone surrogate pass, and to look for them first takes a search for each
            // escape.
            Err(_) => Self::read(text.repair_escapes(), resource),
        }
    }

    pub fn read(text: Text, resource: Resource) -> Result<Self, Fault> {
        match scan::scan(&text.json, resource) {
            Ok(scanned) => Ok(Self::of(scanned, text, resource)),
            Err(refused) => Err(refusal(refused, &text.json, resource)),
        }
    }

    /// A page with a single row that was not read.
    pub fn of_a_row_not_read(offset: u64, resource: Resource, why: Unreadable) -> Self {
        let text = Text {
            json: Arc::default(),
            repaired: 0,
        };
        let scanned = Scanned {
            envelope: Envelope {
                limit: Some(1),
                offset: i64::try_from(offset).ok(),
                ..Envelope::default()
            },
            places: vec![Place {
                slice: 0..0,
                verdict: Verdict::not_read(why),
            }],
            rows: ScannedRows::none(resource),
        };
        Self::of(scanned, text, resource)
    }

    fn of(scanned: Scanned, text: Text, resource: Resource) -> Self {
        let source = Source {
            json: Arc::clone(&text.json),
            places: scanned.places,
            rows: scanned.rows,
            resource,
            alone: false,
        };
        Self {
            limit: scanned.envelope.limit,
            offset: scanned.envelope.offset,
            total: scanned.envelope.total,
            rows: source.split(),
            text,
            reduced_to: None,
            stored_at: None,
        }
    }
}
