//! What needs CPython's C API: making objects without calling `__init__`, and keeping the garbage
//! collector from traversing them.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyDict, PyTuple, PyType};

/// A dataclass with slots whose objects are made without its `__init__`.
///
/// The objects are hidden from the garbage collector, which would traverse millions of them again
/// and again: they hold strings, numbers and such, which refer to nothing. Only what a caller puts
/// into one of their dictionaries can close a cycle, so reading a field that leads to a dictionary
/// makes its object visible.
pub struct Slotted {
    class: Py<PyType>,
    allocate: ffi::allocfunc,
    set: ffi::descrsetfunc,
}

/// The slot of one field of a class.
pub struct Slot(Py<PyAny>);

/// Whether a field leads to a dictionary.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leads {
    Nowhere,
    ToDictionaries,
    /// It is a dictionary itself: an empty one, made when it is first read, in objects where it is
    /// not set.
    IsDictionary,
}

impl Slotted {
    /// `fields` are all fields of the class, in any order.
    pub fn new(class: &Bound<'_, PyType>, fields: &[(&str, Leads)]) -> PyResult<Self> {
        let mut declared: Vec<String> = class.getattr("__match_args__")?.extract()?;
        declared.sort_unstable();
        let mut expected: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        expected.sort_unstable();
        if declared != expected {
            let why = format!("its fields are {declared:?}, not {expected:?}");
            return Err(unfit(class, &why));
        }
        let slots = fields.iter().map(|(name, _)| slot(class, name));
        let slots: Vec<Bound<'_, PyAny>> = slots.collect::<PyResult<_>>()?;
        let Some(first) = slots.first() else {
            return Err(unfit(class, "it has no fields"));
        };
        // SAFETY: the type is alive.
        if unsafe { ffi::PyType_GetFlags(class.as_type_ptr()) } & ffi::Py_TPFLAGS_HAVE_GC == 0 {
            return Err(unfit(
                class,
                "its objects have no header for the garbage collector",
            ));
        }
        let set = setter(&first.get_type())?;
        let allocate = function(class, ffi::Py_tp_alloc)?;
        for ((name, leads), slot) in fields.iter().zip(&slots) {
            if *leads != Leads::Nowhere {
                let is_dictionary = *leads == Leads::IsDictionary;
                class.setattr(name, Revealing::new(slot.clone(), is_dictionary)?)?;
            }
        }
        Ok(Self {
            class: class.clone().unbind(),
            // SAFETY: these type slots, if not null, hold functions of these types
            // (docs.python.org/3/c-api/typeobj.html).
            allocate: unsafe { std::mem::transmute::<*mut c_void, ffi::allocfunc>(allocate) },
            set,
        })
    }

    /// The slot of a field.
    pub fn slot(&self, py: Python<'_>, field: &str) -> PyResult<Slot> {
        slot(self.class.bind(py), field).map(|slot| Slot(slot.unbind()))
    }

    /// An object without values, hidden from the garbage collector.
    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class.bind(py).as_type_ptr();
        // SAFETY: the class's own allocator; it returns a new reference to an object whose slots
        // are empty, or null with an exception set.
        let object = unsafe { Bound::from_owned_ptr_or_err(py, (self.allocate)(class, 0))? };
        hide(&object);
        Ok(object)
    }

    /// Sets a field of an object of the class.
    pub fn set(
        &self,
        object: &Bound<'_, PyAny>,
        Slot(slot): &Slot,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        set(self.set, slot.bind(object.py()), object, value)
    }
}

/// A class without an `__init__`, whose `__new__` is called directly.
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
        // SAFETY: the class's own constructor, called as type.__call__ does: with the class, a tuple
        // and no keywords; it returns a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, (self.new)(class, arguments, no_names)) }
    }
}

// No doc comment: it would become the documentation of the fields.
// A slot that leads to a dictionary. The caller who reads it may close a cycle through its object,
// so the garbage collector is then told of the object. Everything else is left to the slot.
#[pyclass(frozen, module = "backread._backread")]
struct Revealing {
    slot: Py<PyAny>,
    get: ffi::descrgetfunc,
    set: ffi::descrsetfunc,
    is_dictionary: bool,
    /// Whether the collector may run wherever an object is made, as before Python 3.12.
    collects_anywhere: bool,
}

impl Revealing {
    fn new(slot: Bound<'_, PyAny>, is_dictionary: bool) -> PyResult<Self> {
        let get = function(&slot.get_type(), ffi::Py_tp_descr_get)?;
        Ok(Self {
            // SAFETY: as in `Slotted::new`.
            get: unsafe { std::mem::transmute::<*mut c_void, ffi::descrgetfunc>(get) },
            set: setter(&slot.get_type())?,
            is_dictionary,
            collects_anywhere: slot.py().version_info() < (3, 12),
            slot: slot.unbind(),
        })
    }

    fn value<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        class: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the getter of the slot's own type; it checks that the object is of the slot's
        // class, and returns a new reference, or null with an exception set.
        unsafe {
            let value = (self.get)(self.slot.as_ptr(), object.as_ptr(), class.as_ptr());
            Bound::from_owned_ptr_or_err(object.py(), value)
        }
    }

    /// The value of a slot that had none: from now on the same dictionary for all who read it.
    fn filled<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        class: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = object.py();
        // A collection could run other code between the look and the setting.
        let _uncollected = self.collects_anywhere.then(|| Uncollected::new(py));
        let made = PyDict::new(py).into_any();
        with_critical_section(object, || match self.value(object, class) {
            Err(error) if error.is_instance_of::<PyAttributeError>(py) => {
                set(self.set, self.slot.bind(py), object, &made).map(|()| made)
            }
            value => value,
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
        let revealing = slf.get();
        let value = match revealing.value(object, class) {
            Err(_) if revealing.is_dictionary => revealing.filled(object, class)?,
            value => value?,
        };
        reveal(object);
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

    /// That of the slot: `dataclasses` takes anything else in a class for the default of a field.
    #[getter(__class__)]
    fn class<'py>(&self, py: Python<'py>) -> Bound<'py, PyType> {
        self.slot.bind(py).get_type()
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.slot.bind(py).getattr(name)
    }
}

/// Keeps the garbage collector from running while it is alive; if a collection was due, the next
/// allocation triggers it.
///
/// For many objects made at once without running other code: none of them is garbage yet.
pub struct Uncollected<'py> {
    attached: PhantomData<Python<'py>>,
    was_on: bool,
}

impl<'py> Uncollected<'py> {
    pub fn new(_: Python<'py>) -> Self {
        // SAFETY: this thread is attached to the interpreter as long as this value lives.
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

/// Hides a dict until [`reveal_dict`]. Only while no other code has it: a cycle through a hidden dict is
/// never collected.
pub fn hide_dict(object: &Bound<'_, PyAny>) {
    if object.is_exact_instance_of::<PyDict>() {
        hide(object);
    }
}

/// Undoes [`hide_dict`].
pub fn reveal_dict(object: &Bound<'_, PyAny>) {
    if object.is_exact_instance_of::<PyDict>() {
        reveal(object);
    }
}

/// Hides an object of a type that the garbage collector tracks.
fn hide(object: &Bound<'_, PyAny>) {
    // SAFETY: dicts have the collector's header, and `Slotted::new` checks for it; hiding an object
    // twice is allowed.
    unsafe { ffi::PyObject_GC_UnTrack(object.as_ptr().cast()) }
}

/// Undoes `hide`.
fn reveal(object: &Bound<'_, PyAny>) {
    with_critical_section(object, || {
        // SAFETY: as in `hide`; without a GIL, the critical section keeps other threads from tracking
        // the object between the check and the call.
        unsafe {
            if ffi::PyObject_GC_IsTracked(object.as_ptr()) == 0 {
                ffi::PyObject_GC_Track(object.as_ptr().cast());
            }
        }
    })
}

/// The slot of a field, also if an earlier call replaced it by a `Revealing`.
fn slot<'py>(class: &Bound<'py, PyType>, field: &str) -> PyResult<Bound<'py, PyAny>> {
    let found = class.getattr("__dict__")?.get_item(field)?;
    if let Ok(revealing) = found.cast::<Revealing>() {
        return Ok(revealing.get().slot.bind(class.py()).clone());
    }
    let slots = class
        .py()
        .import("types")?
        .getattr("MemberDescriptorType")?;
    if found.get_type().is(&slots) {
        Ok(found)
    } else {
        Err(unfit(class, &format!("its field {field} is no slot")))
    }
}

/// What sets the slots of that type.
fn setter(slots: &Bound<'_, PyType>) -> PyResult<ffi::descrsetfunc> {
    let set = function(slots, ffi::Py_tp_descr_set)?;
    // SAFETY: as in `Slotted::new`.
    Ok(unsafe { std::mem::transmute::<*mut c_void, ffi::descrsetfunc>(set) })
}

/// Sets a slot of an object by the setter of the slot's own type.
fn set(
    set: ffi::descrsetfunc,
    slot: &Bound<'_, PyAny>,
    object: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // SAFETY: it checks that the object is of the slot's class, and takes its own reference to the
    // value.
    match unsafe { set(slot.as_ptr(), object.as_ptr(), value.as_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(object.py())),
    }
}

/// The function in a slot of a type.
fn function(class: &Bound<'_, PyType>, place: c_int) -> PyResult<*mut c_void> {
    // SAFETY: the type is alive, and a number of CPython's typeslots.h.
    let function = unsafe { ffi::PyType_GetSlot(class.as_type_ptr(), place) };
    if function.is_null() {
        Err(unfit(class, &format!("its type slot {place} is empty")))
    } else {
        Ok(function)
    }
}

fn unfit(class: &Bound<'_, PyType>, why: &str) -> PyErr {
    PyTypeError::new_err(format!("{class:?} does not fit the native module: {why}"))
}
