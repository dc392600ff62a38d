//! Strings that come again and again, such as the names of fields: one Python object for many.

use pyo3::prelude::*;
use pyo3::types::PyString;
use xxhash_rust::xxh3::xxh3_64;

// One that is met again after others of its place is made again: what is held is bounded.
const PLACES: usize = 256;
const LONGEST: usize = 64;
/// The names of the interface (2.1 to 2.3) and its two types of senders, which callers' code has as
/// literals: the very same objects are found fastest.
const KNOWN: [&str; 27] = [
    "auto_invitation",
    "body",
    "created_at",
    "email",
    "file_url",
    "forename",
    "id",
    "last_url",
    "limit",
    "messages",
    "name",
    "offset",
    "online_at",
    "operator",
    "picture_thumb_url",
    "read_by_operator",
    "read_by_user",
    "reference",
    "sender",
    "sender_type",
    "surname",
    "total",
    "updated_at",
    "user",
    "user_attributes",
    "users",
    "value",
];

/// Strings met before, each in the one place that its hash gives it.
pub struct Names<'py> {
    py: Python<'py>,
    places: Vec<Option<(Box<str>, Bound<'py, PyString>)>>,
}

impl<'py> Names<'py> {
    pub fn new(py: Python<'py>) -> Self {
        Self {
            py,
            places: Vec::new(),
        }
    }

    pub fn get(&mut self, text: &str) -> Bound<'py, PyString> {
        if text.len() > LONGEST {
            return PyString::new(self.py, text);
        }
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || None);
        }
        let hash = xxh3_64(text.as_bytes()) as usize;
        let Some(place) = self.places.get_mut(hash % PLACES) else {
            return PyString::new(self.py, text);
        };
        if let Some((held, name)) = place
            && **held == *text
        {
            return name.clone();
        }
        // What is interned may stay for good, so nothing that a service makes up is.
        let name = match KNOWN.contains(&text) {
            true => PyString::intern(self.py, text),
            false => PyString::new(self.py, text),
        };
        *place = Some((text.into(), name.clone()));
        name
    }
}
