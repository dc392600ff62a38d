//! JSON text directly to Python objects, without a tree of values in between, which took three times
//! as long. Not by pythonize: whole numbers of more digits than Python accepts need `SentNumber`.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString};
use xxhash_rust::xxh3::xxh3_64;

use backread_core::api::Resource;
use backread_core::decode::json::cursor::{Cursor, Span};
use backread_core::decode::rows::Extra;
use backread_core::schema;

/// The deepest nesting of a row that is read.
const DEEPEST: usize = 127;
// Cached strings: one replaces the other in its place, so that memory is bounded.
const PLACES: usize = 256;
const LONGEST: usize = 64;

/// Undocumented fields, as a dict.
pub fn members<'py>(
    py: Python<'py>,
    strings: &mut StringCache<'py>,
    text: &str,
    extra: &Extra,
) -> PyResult<Bound<'py, PyAny>> {
    let object = PyDict::new(py);
    for (key, json) in extra {
        let value = as_sent(py, strings, json.of(text))?;
        object.set_item(strings.get(&key.text(text)), value)?;
    }
    Ok(object.into_any())
}

/// Any JSON as a Python object. Raises ValueError for what is nested too deep.
pub fn as_sent<'py>(
    py: Python<'py>,
    strings: &mut StringCache<'py>,
    json: &str,
) -> PyResult<Bound<'py, PyAny>> {
    value(py, strings, json)?.ok_or_else(|| PyValueError::new_err("nested too deep"))
}

/// JSON as a Python object, a dict with its keys in the order sent; `None` if it is nested too deep.
pub fn value<'py>(
    py: Python<'py>,
    strings: &mut StringCache<'py>,
    json: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let failed = None;
    let mut reader = Reader {
        py,
        strings,
        json,
        failed,
    };
    let read = Cursor::new(json).and_then(|mut cursor| reader.whole(&mut cursor));
    reader.failed.map_or(Ok(read), Err)
}

struct Reader<'a, 'n, 'py> {
    py: Python<'py>,
    strings: &'n mut StringCache<'py>,
    json: &'a str,
    /// The Python exception that stopped the reading, if one did.
    failed: Option<PyErr>,
}

impl<'a, 'py> Reader<'a, '_, 'py> {
    fn whole(&mut self, cursor: &mut Cursor<'a>) -> Option<Bound<'py, PyAny>> {
        cursor.space();
        let value = self.value(cursor, DEEPEST)?;
        cursor.space();
        cursor.is_at_end().then_some(value)
    }

    fn value(&mut self, cursor: &mut Cursor<'a>, levels: usize) -> Option<Bound<'py, PyAny>> {
        match cursor.peek() {
            b'"' => {
                let span = cursor.string()?;
                self.string(span)
            }
            b'{' => self.object(cursor, levels.checked_sub(1)?),
            b'[' => self.array(cursor, levels.checked_sub(1)?),
            b't' | b'f' => {
                let truth = cursor.boolean()?;
                self.made(truth.into_bound_py_any(self.py))
            }
            b'n' => cursor.null().then(|| self.py.None().into_bound(self.py)),
            _ => {
                let span = cursor.value()?;
                self.made(number(self.py, span.of(self.json)))
            }
        }
    }

    fn object(&mut self, cursor: &mut Cursor<'a>, levels: usize) -> Option<Bound<'py, PyAny>> {
        let object = PyDict::new(self.py);
        cursor.object(|cursor, key| {
            let key = self.strings.get(&key.text(self.json));
            let value = self.value(cursor, levels)?;
            // Of a repeated key the last value is kept, at the first one's place.
            self.made(object.set_item(key, value))
        })?;
        Some(object.into_any())
    }

    fn array(&mut self, cursor: &mut Cursor<'a>, levels: usize) -> Option<Bound<'py, PyAny>> {
        let mut items = Vec::new();
        cursor.array(|cursor| {
            items.push(self.value(cursor, levels)?);
            Some(())
        })?;
        let list = PyList::new(self.py, items);
        self.made(list.map(Bound::into_any))
    }

    fn string(&self, span: Span) -> Option<Bound<'py, PyAny>> {
        Some(PyString::new(self.py, &span.text(self.json)).into_any())
    }

    fn made<T>(&mut self, made: PyResult<T>) -> Option<T> {
        made.map_err(|error| self.failed = Some(error)).ok()
    }
}

/// A number, exact if it is whole: an `int`, or a `float`; a `SentNumber` if it has more digits than
/// Python accepts (`sys.set_int_max_str_digits`), or is beyond the range of a `float`.
fn number<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(whole) = text.parse::<i64>() {
        return whole.into_bound_py_any(py);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && text.contains(['.', 'e', 'E']) => {
            Ok(PyFloat::new(py, number).into_any())
        }
        _ => match py.get_type::<PyInt>().call1((text,)) {
            Err(error) if error.is_instance_of::<PyValueError>(py) => {
                let module = py.import("backread._files.json")?;
                module.call_method1("SentNumber", (text,))
            }
            made => made,
        },
    }
}

/// A cache of short strings that recur, such as field names: one Python object for all occurrences, each
/// in the place that its hash gives.
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
