//! A list response (interface 2.3), split into rows. `scan.rs` scans its text once and records the
//! fields of rows of the documented shape. serde_json reads all other rows, and its result defines
//! what both must return.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use self::scan::{Envelope, Place, Plain, Scanned};
pub use self::verdict::Unreadable;
use self::verdict::Verdict;
use crate::api::Resource;
use crate::decode::json::{self, Fault, Text};
use crate::decode::model::{Extra, Members, Message, Record, User, whole};
use crate::decode::rows::{self, Resolve, Spans};
use crate::timestamp::Timestamp;

#[cfg(any(test, fuzzing))]
pub mod agreement;
mod field;
mod known_senders;
mod scan;
#[cfg(test)]
mod tests;
mod verdict;

/// Whether an array with this many elements in this many bytes cannot be rows. Each element takes
/// some hundred bytes of memory, and one with an id and a field or two is longer than that.
fn is_junk(elements: usize, bytes: usize) -> bool {
    const MANY: usize = 100_000;
    const LEAST_BYTES: usize = 24;
    elements >= MANY && bytes / LEAST_BYTES < elements
}

/// What all rows of a page share.
#[derive(Debug)]
struct Source {
    json: Arc<String>,
    places: Vec<Place>,
    plain: Plain,
    resource: Resource,
    /// Its only row came alone, not in a page.
    alone: bool,
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
        match scan::scan_alone(&json, resource) {
            Some((plain, verdict)) => Ok(Self::only(json, plain, verdict, resource)),
            None => Self::alone_by_serde(json, resource),
        }
    }

    fn alone_by_serde(json: Arc<String>, resource: Resource) -> Result<Self, Fault> {
        json::check(&json)?;
        json::check_object(&json)?;
        let verdict = Verdict::on(&json, resource);
        Ok(Self::only(json, Plain::None, verdict, resource))
    }

    fn only(json: Arc<String>, plain: Plain, verdict: Verdict, resource: Resource) -> Self {
        let slice = 0..json.len();
        let source = Source {
            json,
            places: vec![Place { slice, verdict }],
            plain,
            resource,
            alone: true,
        };
        Self::at(&Arc::new(source), 0, verdict)
    }

    fn at(source: &Arc<Source>, index: usize, verdict: Verdict) -> Self {
        let Verdict {
            id,
            unreadable,
            odd_values,
        } = verdict;
        Self {
            source: Arc::clone(source),
            index,
            id,
            unreadable,
            odd_values,
        }
    }

    pub fn json(&self) -> &str {
        let place = self.source.places.get(self.index);
        place
            .and_then(|place| self.source.json.get(place.slice.clone()))
            .unwrap_or_default()
    }

    /// All rows of its page.
    pub fn page(&self) -> PageRows {
        PageRows(Arc::clone(&self.source))
    }

    /// Its index in the page, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    pub fn resource(&self) -> Resource {
        self.source.resource
    }

    pub fn user(&self) -> Result<User<'_>, Fault> {
        match self.scanned_user() {
            Some((page, user)) => Ok(user.resolve(page)),
            None => self.read(),
        }
    }

    pub fn message(&self) -> Result<Message<'_>, Fault> {
        match self.scanned_message() {
            Some((page, message)) => Ok(message.resolve(page)),
            None => self.read(),
        }
    }

    /// A user as the scan found it in the text of the page; `user` reads all others.
    pub fn scanned_user(&self) -> Option<(&str, &rows::User<Spans>)> {
        let Plain::Users(users) = &self.source.plain else {
            return None;
        };
        let user = users.get(self.index)?.as_ref()?;
        Some((&self.source.json, user))
    }

    /// The same for a message.
    pub fn scanned_message(&self) -> Option<(&str, &rows::Message<Spans>)> {
        let Plain::Messages(messages) = &self.source.plain else {
            return None;
        };
        let message = messages.get(self.index)?.as_ref()?;
        Some((&self.source.json, message))
    }

    /// The JSON object as sent.
    pub fn object(&self) -> Result<Extra, Fault> {
        self.read()
    }

    /// A fault of this row, with a path relative to the response.
    fn in_answer(&self, fault: Fault) -> Fault {
        if self.source.alone {
            fault
        } else {
            fault.below(&format!("$.{}[{}]", self.resource().key(), self.index))
        }
    }

    fn read<'a, T: Record<'a>>(&'a self) -> Result<T, Fault> {
        let read = match self.unreadable {
            Some(Unreadable::TooDeep) => Err(Fault::new("$", "nested too deep", self.json())),
            _ => T::read(self.json()),
        };
        read.map_err(|fault| self.in_answer(fault))
    }
}

/// The texts of all rows of a page.
#[derive(Debug, Clone)]
pub struct PageRows(Arc<Source>);

impl PageRows {
    /// The size of the page's text.
    pub fn bytes(&self) -> usize {
        self.0.json.len()
    }

    /// The rows with an id, in order: the id and the JSON.
    pub fn named(&self) -> impl DoubleEndedIterator<Item = (i64, &str)> {
        let text = |place: &Place| self.0.json.get(place.slice.clone()).unwrap_or_default();
        let places = self.0.places.iter();
        places.filter_map(move |place| Some((place.verdict.id?, text(place))))
    }

    /// The JSON of the last row with this id.
    pub fn text_of(&self, id: i64) -> Option<&str> {
        let (_, text) = self.named().rev().find(|(named, _)| *named == id)?;
        Some(text)
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
    pub reduced_to: Option<u64>,
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
            // The scan lets no lone surrogate pass, and to look for them first takes a search for each
            // escape.
            Some(scanned) => Ok(Self::of(scanned, text, resource)),
            None => Self::read(text.repair_escapes(), resource),
        }
    }

    pub fn read(text: Text, resource: Resource) -> Result<Self, Fault> {
        match scan::scan(&text.json, resource) {
            Some(scanned) => Ok(Self::of(scanned, text, resource)),
            None => Self::read_by_serde(text, resource),
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
            plain: Plain::None,
        };
        Self::of(scanned, text, resource)
    }

    fn of(scanned: Scanned, text: Text, resource: Resource) -> Self {
        let source = Arc::new(Source {
            json: Arc::clone(&text.json),
            places: scanned.places,
            plain: scanned.plain,
            resource,
            alone: false,
        });
        let rows = source.places.iter().enumerate();
        let rows = rows.map(|(index, place)| Row::at(&source, index, place.verdict));
        let Envelope {
            limit,
            offset,
            total,
        } = scanned.envelope;
        Self {
            limit,
            offset,
            total,
            rows: rows.collect(),
            text,
            reduced_to: None,
            stored_at: None,
        }
    }

    fn read_by_serde(text: Text, resource: Resource) -> Result<Self, Fault> {
        let members = json::parse::<Members<'_>>(&text.json)?;
        let key = resource.key();
        let refused = |reason| Err(Fault::new(&format!("$.{key}"), reason, &text.json));
        let number = |name: &str| whole(members.last(name)?);
        let sent = members.last(key);
        // Go sends an empty slice as null; the count beside it tells it from another shape.
        let is_empty = sent == Some("null") && number("total").is_some();
        let items = if is_empty {
            "[]"
        } else {
            sent.unwrap_or("null")
        };
        let items: Option<Vec<&RawValue>> =
            json::parse(items).map_err(|fault| fault.below(&format!("$.{key}")))?;
        let Some(items) = items else {
            return refused("the array is null or missing");
        };
        if is_junk(items.len(), text.json.len()) {
            return refused("more rows than their size allows for");
        }
        let start = text.json.as_ptr() as usize;
        let rows = items.into_iter().map(|item| {
            let from = item.get().as_ptr() as usize - start;
            Place {
                slice: from..from + item.get().len(),
                verdict: Verdict::on(item.get(), resource),
            }
        });
        let scanned = Scanned {
            // A value of another type counts as missing.
            envelope: Envelope::of(number),
            places: rows.collect(),
            plain: Plain::None,
        };
        Ok(Self::of(scanned, text, resource))
    }
}
