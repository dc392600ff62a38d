//! JSON text directly to Python objects: 280,000 rows of users per second of CPU, where serde_json's
//! `Value` through pythonize made 89,000 (`as_dict=True`, one core, all else equal).
//!
//! What this reader leaves to serde_json does not go through pythonize either: that has no `Decimal` for
//! whole numbers of more digits than Python accepts, and fails
//! `test_a_number_of_more_digits_than_python_takes_is_a_decimal`.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString};
use serde_json::{Map, Value};

use super::caches::Caches;
use super::dict_shape::{DictShape, Filling};
use backread_core::decode::json::cursor::{Cursor, Span};
use backread_core::decode::model::Unknown;

// serde_json's limit, so that both readers refuse the same texts.
const DEEPEST: usize = 127;

/// A JSON object as a dict with its keys in the order sent; `None` if serde_json must read or refuse
/// the text.
pub fn object<'py>(
    py: Python<'py>,
    caches: &mut Caches<'py>,
    json: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if json.trim_start().starts_with('{') {
        value(py, caches, json)
    } else {
        Ok(None)
    }
}

/// Undocumented fields, as a dict.
pub fn members<'py>(
    py: Python<'py>,
    caches: &mut Caches<'py>,
    unknown: &Unknown<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let object = PyDict::new(py);
    for (key, json) in unknown {
        object.set_item(caches.strings.get(key), as_sent(py, caches, json)?)?;
    }
    Ok(object.into_any())
}

/// Any JSON as a Python object.
pub fn as_sent<'py>(
    py: Python<'py>,
    caches: &mut Caches<'py>,
    json: &str,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(value) = value(py, caches, json)? {
        return Ok(value);
    }
    let read = serde_json::from_str(json);
    let read = read.map_err(|error| PyValueError::new_err(error.to_string()))?;
    branch(py, caches, &read)
}

fn value<'py>(
    py: Python<'py>,
    caches: &mut Caches<'py>,
    json: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let failed = None;
    let mut reader = Reader {
        py,
        caches,
        json,
        failed,
    };
    let read = Cursor::new(json).and_then(|mut cursor| reader.whole(&mut cursor));
    reader.failed.map_or(Ok(read), Err)
}

struct Reader<'a, 'n, 'py> {
    py: Python<'py>,
    caches: &'n mut Caches<'py>,
    json: &'a str,
    /// The Python exception that stopped the reading, if one did.
    failed: Option<PyErr>,
}

impl<'a, 'py> Reader<'a, '_, 'py> {
    fn whole(&mut self, cursor: &mut Cursor<'a>) -> Option<Bound<'py, PyAny>> {
        cursor.space();
        let value = match cursor.peek() {
            b'{' => self.row(cursor)?,
            _ => self.value(cursor, DEEPEST)?,
        };
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

    /// An object that is no row.
    fn object(&mut self, cursor: &mut Cursor<'a>, levels: usize) -> Option<Bound<'py, PyAny>> {
        if let Some(copy) = self.caches.dicts.next(cursor) {
            return self.made(copy);
        }
        let from = cursor.at();
        let mut flat = true;
        let object = PyDict::new(self.py);
        cursor.object(|cursor, key| {
            flat &= !matches!(cursor.peek(), b'{' | b'[');
            let key = self.caches.strings.get(str::from_utf8(key).ok()?);
            let value = self.value(cursor, levels)?;
            // Of a repeated key the last value is kept, at the first one's place.
            self.made(object.set_item(key, value))
        })?;
        if flat && let Some(text) = self.json.get(from..cursor.at()) {
            let kept = self.caches.dicts.keep(text.as_bytes(), &object);
            self.made(kept)?;
        }
        Some(object.into_any())
    }

    /// The outermost object.
    fn row(&mut self, cursor: &mut Cursor<'a>) -> Option<Bound<'py, PyAny>> {
        let shape = self.caches.shape.take();
        let filling = Filling::new(self.py, shape.as_ref());
        let mut filling = self.made(filling)?;
        cursor.object(|cursor, name| {
            let expected = filling.key(name);
            let as_expected = expected.is_some();
            let key = match expected {
                Some(key) => key,
                None => self.caches.strings.get(str::from_utf8(name).ok()?),
            };
            let value = self.value(cursor, DEEPEST - 1)?;
            self.made(filling.add(&key, &value, as_expected))
        })?;
        let (row, differs) = self.made(filling.finish())?;
        self.caches.shape = if differs {
            self.made(DictShape::of(&row))
        } else {
            shape
        };
        Some(row.into_any())
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
            Err(error) if error.is_instance_of::<PyValueError>(py) => py
                .import("backread._files.json")?
                .call_method1("SentNumber", (text,)),
            made => made,
        },
    }
}

/// What serde_json read as an object.
pub fn tree<'py>(
    py: Python<'py>,
    caches: &mut Caches<'py>,
    object: &Map<String, Value>,
) -> PyResult<Bound<'py, PyAny>> {
    let made = PyDict::new(py);
    for (key, value) in object {
        made.set_item(caches.strings.get(key), branch(py, caches, value)?)?;
    }
    Ok(made.into_any())
}

fn branch<'py>(
    py: Python<'py>,
    caches: &mut Caches<'py>,
    value: &Value,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::Number(exact) => number(py, exact.as_str()),
        Value::String(text) => Ok(PyString::new(py, text).into_any()),
        Value::Object(object) => tree(py, caches, object),
        Value::Array(items) => {
            let items = items.iter().map(|item| branch(py, caches, item));
            Ok(PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
    }
}
