//! What PyO3's safe API has no function for: the only file of the bindings with `unsafe`.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyCapsule, PyString, PyType};

use super::arrow::STREAM;
use backread_core::process;

/// A class whose objects are made as `object.__new__(cls)` makes them, without its `__init__`.
pub struct PlainClass(Py<PyType>);

impl PlainClass {
    /// Raises TypeError for a class with another `__new__`.
    pub fn new(class: &Bound<'_, PyType>) -> PyResult<Self> {
        let object = class.py().get_type::<PyAny>();
        if class.getattr("__new__")?.is(&object.getattr("__new__")?) {
            return Ok(Self(class.clone().unbind()));
        }
        let text = format!("{class:?} does not fit the native module: it has a __new__");
        Err(PyTypeError::new_err(text))
    }

    /// A new object without values.
    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = self.0.bind(py).as_type_ptr();
        // SAFETY: `object.__new__` allocates objects of this class by the same function; it returns a
        // new reference, or null with an exception set.
        unsafe {
            let object = ffi::PyType_GenericNew(class, ptr::null_mut(), ptr::null_mut());
            Bound::from_owned_ptr_or_err(py, object)
        }
    }
}

/// `object.__setattr__`, which sets slots of frozen dataclasses too.
pub fn set_attribute(
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // SAFETY: three live objects of an attached thread; the function keeps its own references.
    match unsafe { ffi::PyObject_GenericSetAttr(object.as_ptr(), name.as_ptr(), value.as_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(object.py())),
    }
}

/// Keeps the garbage collector off until dropped: none of the objects of a batch is garbage yet, and
/// it would traverse those of a long list again and again.
pub struct CollectorPause<'py>(PhantomData<Python<'py>>);

impl<'py> CollectorPause<'py> {
    /// `None` if it is off already, and from Python 3.12 on, whose collector runs only between
    /// Python's instructions.
    pub fn new(py: Python<'py>) -> Option<Self> {
        // SAFETY: the thread is attached.
        let was_on = py.version_info() < (3, 12) && unsafe { ffi::PyGC_Disable() } != 0;
        was_on.then(|| Self(PhantomData))
    }
}

impl Drop for CollectorPause<'_> {
    fn drop(&mut self) {
        // SAFETY: the thread is attached for as long as this value lives.
        unsafe { ffi::PyGC_Enable() };
    }
}

/// Has the core's process id forgotten in each forked child, before anything else runs there.
#[cfg(unix)]
pub fn watch_forks() {
    // SAFETY: `forget_id` only stores to an atomic, which is allowed in a child of a process with
    // threads, and this module is never unloaded.
    if unsafe { libc::pthread_atfork(None, None, Some(process::forget_id)) } == 0 {
        process::remember_id();
    }
}

/// Takes the stream out of a capsule, which is empty then.
pub fn take_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArrayStream> {
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    Ok(with_critical_section(capsule, || {
        // SAFETY: by its name, the capsule points to a stream of the Arrow C stream interface, and no
        // other thread of ours moves it meanwhile.
        unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) }
    }))
}
