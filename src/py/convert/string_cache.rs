//! A cache of short strings that recur, such as field names: one Python object for all occurrences.

use pyo3::prelude::*;
use pyo3::types::PyString;
use xxhash_rust::xxh3::xxh3_64;

use backread_core::api::Resource;
use backread_core::schema;

// A string replaces the one in its place, so that memory is bounded.
const PLACES: usize = 256;
const LONGEST: usize = 64;

/// Strings seen before, each in the place that its hash gives.
pub struct StringCache<'py> {
    py: Python<'py>,
    places: Vec<Option<(Box<str>, Bound<'py, PyString>)>>,
}

impl<'py> StringCache<'py> {
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
        if let Some((held, string)) = place
            && **held == *text
        {
            return string.clone();
        }
        // Only documented names are interned, because interned strings may stay for good. Callers'
        // code has the same objects as literals, which makes looking them up in dicts fastest.
        let string = if is_documented(text) {
            PyString::intern(self.py, text)
        } else {
            PyString::new(self.py, text)
        };
        *place = Some((text.into(), string.clone()));
        string
    }
}

fn is_documented(text: &str) -> bool {
    let lists = [Resource::Users, Resource::Messages].map(Resource::key);
    schema::names().chain(lists).any(|name| name == text)
}
