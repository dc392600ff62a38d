//! JSON text directly to Python objects, without a tree of values in between, which took three times
//! as long. Not by pythonize: whole numbers of more digits than Python accepts need `SentNumber`.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString};

use super::caches::Caches;
use super::dict_shape::{DictShape, Filling};
use backread_core::decode::json::cursor::{Cursor, Span};
use backread_core::decode::rows::Extra;

/// The deepest nesting of a row that is read.
const DEEPEST: usize = 127;

/// A JSON object as a dict with its keys in the order sent; `None` if it is nested too deep.
pub fn object<'py>(
    py: Python<'py>,
    caches: &mut Caches<'py>,
    json: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    value(py, caches, json)
}

/// Undocumented fields, as a dict.
pub fn members<'py>(
    py: Python<'py>,
    caches: &mut Caches<'py>,
    text: &str,
    extra: &Extra,
) -> PyResult<Bound<'py, PyAny>> {
    let object = PyDict::new(py);
    for (key, json) in extra {
        let value = as_sent(py, caches, json.of(text))?;
        object.set_item(caches.strings.get(&key.text(text)), value)?;
    }
    Ok(object.into_any())
}

/// Any JSON as a Python object.
pub fn as_sent<'py>(
    py: Python<'py>,
    caches: &mut Caches<'py>,
    json: &str,
) -> PyResult<Bound<'py, PyAny>> {
    value(py, caches, json)?.ok_or_else(|| PyValueError::new_err("nested too deep"))
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
            let key = self.caches.strings.get(&key.text(self.json));
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
            let name = name.text(self.json);
            let expected = filling.key(name.as_bytes());
            let as_expected = expected.is_some();
            let key = match expected {
                Some(key) => key,
                None => self.caches.strings.get(&name),
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
