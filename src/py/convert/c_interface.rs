//! What only C's interface to Python can do: objects without their `__init__`, and the garbage
//! collector kept from looking at them in vain.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyDict, PyTuple, PyType};

/// A dataclass with slots whose objects are made without its `__init__`.
///
/// The objects are hidden from the garbage collector, which would look through millions of them
/// again and again in vain: what they are made of leads nowhere. Only what a caller puts into a
/// dictionary of theirs can close a cycle, so the fields that lead to one reveal their object.
pub struct Slotted<const N: usize> {
    class: Py<PyType>,
    allocate: ffi::allocfunc,
    set: ffi::descrsetfunc,
    slots: [Py<PyAny>; N],
}

impl<const N: usize> Slotted<N> {
    /// `fields` are all fields of the class, `leading` those of them that lead to a dictionary.
    pub fn new(class: &Bound<'_, PyType>, fields: [&str; N], leading: &[&str]) -> PyResult<Self> {
        let declared = class.getattr("__match_args__")?.extract::<Vec<String>>()?;
        if declared != fields {
            return Err(unfit(class, "its fields are others"));
        }
        let slots: Vec<Py<PyAny>> = fields
            .iter()
            .map(|field| slot(class, field).map(Bound::unbind))
            .collect::<PyResult<_>>()?;
        let slots: [Py<PyAny>; N] = slots.try_into().map_err(|_| unfit(class, "no slots"))?;
        let Some(first) = slots.first() else {
            return Err(unfit(class, "it has no fields"));
        };
        // SAFETY: a type that is alive.
        if unsafe { ffi::PyType_GetFlags(class.as_type_ptr()) } & ffi::Py_TPFLAGS_HAVE_GC == 0 {
            return Err(unfit(
                class,
                "the garbage collector does not know its objects",
            ));
        }
        let kind = first.bind(class.py()).get_type();
        let set = function(&kind, ffi::Py_tp_descr_set)?;
        let allocate = function(class, ffi::Py_tp_alloc)?;
        for field in leading {
            class.setattr(field, Revealing::new(slot(class, field)?)?)?;
        }
        Ok(Self {
            class: class.clone().unbind(),
            // SAFETY: what these places of a type hold, if not null, are functions of these types
            // (docs.python.org/3/c-api/typeobj.html).
            allocate: unsafe { std::mem::transmute::<*mut c_void, ffi::allocfunc>(allocate) },
            // SAFETY: as above.
            set: unsafe { std::mem::transmute::<*mut c_void, ffi::descrsetfunc>(set) },
            slots,
        })
    }

    /// An object of these values, which stand in the order of the fields.
    pub fn make<'py>(
        &self,
        py: Python<'py>,
        values: [Bound<'py, PyAny>; N],
    ) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class.bind(py).as_type_ptr();
        // SAFETY: the class's own allocator; it gives a new reference to an object whose slots are
        // empty, or null with an exception set.
        let object = unsafe { Bound::from_owned_ptr_or_err(py, (self.allocate)(class, 0))? };
        for (slot, value) in self.slots.iter().zip(&values) {
            // SAFETY: the setter of the slots' own type; it checks that the object is of the slot's
            // class, and takes a reference of its own to the value.
            let failed = unsafe { (self.set)(slot.as_ptr(), object.as_ptr(), value.as_ptr()) };
            if failed != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        hide(&object);
        Ok(object)
    }
}

/// A class without an `__init__`, whose `__new__` is given its arguments straight.
pub struct Constructor {
    class: Py<PyType>,
    new: ffi::newfunc,
}

impl Constructor {
    pub fn new(class: &Bound<'_, PyType>) -> PyResult<Self> {
        let new = function(class, ffi::Py_tp_new)?;
        Ok(Self {
            class: class.clone().unbind(),
            // SAFETY: as in `Slotted::new`.
            new: unsafe { std::mem::transmute::<*mut c_void, ffi::newfunc>(new) },
        })
    }

    pub fn call<'py>(&self, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        let class = self.class.bind(py).as_type_ptr();
        let (arguments, no_names) = (arguments.as_ptr(), std::ptr::null_mut());
        // SAFETY: the class's own constructor, given itself, a tuple and no names, as type.__call__
        // does; it gives a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, (self.new)(class, arguments, no_names)) }
    }
}

// No doc comment: it would be the documentation of the fields.
// A slot that leads to a dictionary: whoever reads it may close a cycle through its object, which
// is then made known to the garbage collector. In all else it is the slot that it stands for.
#[pyclass(frozen, module = "backread._backread")]
struct Revealing {
    slot: Py<PyAny>,
    get: ffi::descrgetfunc,
}

impl Revealing {
    fn new(slot: Bound<'_, PyAny>) -> PyResult<Self> {
        let get = function(&slot.get_type(), ffi::Py_tp_descr_get)?;
        Ok(Self {
            // SAFETY: as in `Slotted::new`.
            get: unsafe { std::mem::transmute::<*mut c_void, ffi::descrgetfunc>(get) },
            slot: slot.unbind(),
        })
    }
}

#[pymethods]
impl Revealing {
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        object: &Bound<'py, PyAny>,
        class: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if object.is_none() {
            return Ok(slf.clone().into_any());
        }
        let Self { slot, get } = slf.get();
        // SAFETY: the getter of the slot's own type; it checks that the object is of the slot's
        // class, and gives a new reference, or null with an exception set.
        let value = unsafe {
            let value = get(slot.as_ptr(), object.as_ptr(), class.as_ptr());
            Bound::from_owned_ptr_or_err(slf.py(), value)?
        };
        reveal(object);
        if value.is_exact_instance_of::<PyDict>() {
            reveal(&value);
        }
        Ok(value)
    }

    fn __set__(&self, object: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let slot = self.slot.bind(object.py());
        slot.call_method1("__set__", (object, value)).map(|_| ())
    }

    fn __delete__(&self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let slot = self.slot.bind(object.py());
        slot.call_method1("__delete__", (object,)).map(|_| ())
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.slot.bind(py).getattr(name)
    }
}

/// A new dictionary, hidden until a `Revealing` slot gives it out.
pub fn hidden_dict(py: Python<'_>) -> Bound<'_, PyAny> {
    let made = PyDict::new(py).into_any();
    hide(&made);
    made
}

/// Keeps the garbage collector from running while it is held; it runs as soon as anything is made
/// afterwards, if it is due.
///
/// For what is made in one go without anybody else's code: nothing of it is garbage yet.
pub struct Uncollected<'py> {
    attached: PhantomData<Python<'py>>,
    was_on: bool,
}

impl<'py> Uncollected<'py> {
    pub fn new(_: Python<'py>) -> Self {
        // SAFETY: this thread is attached to the interpreter, as long as this lives.
        let was_on = unsafe { ffi::PyGC_Disable() } != 0;
        Self {
            attached: PhantomData,
            was_on,
        }
    }
}

impl Drop for Uncollected<'_> {
    fn drop(&mut self) {
        if self.was_on {
            // SAFETY: as in `new`.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

/// Hides an object that is of a kind which the garbage collector tracks.
fn hide(object: &Bound<'_, PyAny>) {
    // SAFETY: `Slotted::new` asked for the collector's header, and dictionaries have it; that the
    // object is hidden already is no matter.
    unsafe { ffi::PyObject_GC_UnTrack(object.as_ptr().cast()) }
}

/// Makes an object known again; it is of a kind which the garbage collector tracks.
fn reveal(object: &Bound<'_, PyAny>) {
    with_critical_section(object, || {
        // SAFETY: as in `hide`; the section keeps other threads from doing the same between the
        // question and the answer, where there is no GIL that does.
        unsafe {
            if ffi::PyObject_GC_IsTracked(object.as_ptr()) == 0 {
                ffi::PyObject_GC_Track(object.as_ptr().cast());
            }
        }
    })
}

/// The slot of a field; its class may have been seen before.
fn slot<'py>(class: &Bound<'py, PyType>, field: &str) -> PyResult<Bound<'py, PyAny>> {
    let found = class.getattr("__dict__")?.get_item(field)?;
    if let Ok(revealing) = found.cast::<Revealing>() {
        return Ok(revealing.get().slot.bind(class.py()).clone());
    }
    let slots = class
        .py()
        .import("types")?
        .getattr("MemberDescriptorType")?;
    match found.get_type().is(&slots) {
        true => Ok(found),
        false => Err(unfit(class, "a field of it is no slot")),
    }
}

/// What a type does in one place of it.
fn function(class: &Bound<'_, PyType>, place: c_int) -> PyResult<*mut c_void> {
    // SAFETY: a type that is alive, and one of the numbers of CPython's typeslots.h.
    let function = unsafe { ffi::PyType_GetSlot(class.as_type_ptr(), place) };
    match function.is_null() {
        true => Err(unfit(class, "it lacks what its objects are made by")),
        false => Ok(function),
    }
}

fn unfit(class: &Bound<'_, PyType>, why: &str) -> PyErr {
    PyTypeError::new_err(format!("{class:?} cannot be made natively: {why}"))
}
