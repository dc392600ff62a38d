//! Worlds from and to JSON lines: files, bytes, and iterables of lines.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::arguments::json_text;

use backread_mock::world::{JsonlReader, World};

/// Reads a world from the file at a path (`str` or `os.PathLike`), from bytes, or from lines.
pub fn read(source: &Bound<'_, PyAny>) -> PyResult<World> {
    if let Ok(text) = source.cast::<PyBytes>() {
        return World::from_jsonl(text.as_bytes()).map_err(PyValueError::new_err);
    }
    if !source.is_instance_of::<PyString>() && !source.hasattr("__fspath__")? {
        return read_lines(source, "");
    }
    let path = source.str()?.to_string();
    if path.trim_start().starts_with('{') {
        return Err(PyValueError::new_err(
            "lines: a str is the path of a file, but this is JSON; use text.encode() instead",
        ));
    }
    let builtins = source.py().import("builtins")?;
    let file = builtins.call_method1("open", (source, "rb"))?;
    let world = read_lines(&file, &format!("{path}: "));
    file.call_method0("close")?;
    world
}

/// Reads a world line by line; problems with a line begin with `name`.
fn read_lines(source: &Bound<'_, PyAny>, name: &str) -> PyResult<World> {
    let refused = |problem| PyValueError::new_err(format!("{name}{problem}"));
    let mut lines = JsonlReader::default();
    for line in source.try_iter()? {
        let line = line?;
        if let Ok(line) = line.cast::<PyString>() {
            let text = line
                .to_str()
                .map_err(|error| refused(format!("lines: a str is not Unicode text: {error}")))?;
            lines.line(text.as_bytes()).map_err(refused)?;
        } else if let Ok(line) = line.extract::<PyBackedBytes>() {
            lines.line(&line).map_err(refused)?;
        } else if line.is_instance_of::<PyDict>() {
            lines.line(json_text(&line)?.as_bytes()).map_err(refused)?;
        } else {
            let kind = line.get_type().name()?;
            let text =
                format!("lines: each must be a dict, or JSON text as str or bytes, not {kind}");
            return Err(PyTypeError::new_err(text));
        }
    }
    Ok(lines.finish())
}

/// Writes a world to a file, atomically.
pub fn write_file(world: &World, path: &Path) -> PyResult<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{:016x}.part", fastrand::u64(..)));
    let part = path.with_file_name(name);
    let written = write_through(world, &part).and_then(|()| fs::rename(&part, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&part);
        file_error(&error, path)
    })
}

fn write_through(world: &World, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    world.to_jsonl(&mut file)?;
    file.flush()
}

/// The world as text.
pub fn text(world: &World) -> PyResult<String> {
    let mut text = Vec::new();
    world.to_jsonl(&mut text)?;
    Ok(String::from_utf8(text)?)
}

fn file_error(error: &io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        // Given a number, Python picks the subclass and adds the path to the message.
        Some(number) => {
            let text = error.to_string();
            let reason = text
                .rsplit_once(" (os error")
                .map_or(&*text, |(text, _)| text);
            PyOSError::new_err((number, reason.to_owned(), path.to_path_buf()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}
