//! Worlds from and to JSON lines: files, bytes, and iterables of lines.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::arguments::json_text;

use backread_mock::world::{JsonlError, JsonlReader, World};

fn raised(error: JsonlError) -> PyErr {
    match error {
        JsonlError::Line { .. } => PyValueError::new_err(error.to_string()),
        JsonlError::Read(error) => error.into(),
    }
}

/// Reads a world from the file at a path (`str` or `os.PathLike`), from bytes, or from lines.
pub fn read(source: &Bound<'_, PyAny>) -> PyResult<World> {
    if let Ok(text) = source.cast::<PyBytes>() {
        return World::from_jsonl(text.as_bytes()).map_err(raised);
    }
    if source.is_instance_of::<PyString>() || source.hasattr("__fspath__")? {
        let path: PathBuf = source.extract()?;
        return source.py().detach(|| read_file(&path));
    }
    let mut lines = JsonlReader::default();
    for line in source.try_iter()? {
        let line = line?;
        if let Ok(line) = line.cast::<PyString>() {
            let text = line.to_str().map_err(|error| {
                let text = format!("lines: a str is not Unicode text: {error}");
                PyValueError::new_err(text)
            })?;
            lines.line(text.as_bytes()).map_err(raised)?;
        } else if let Ok(line) = line.extract::<PyBackedBytes>() {
            lines.line(&line).map_err(raised)?;
        } else if line.is_instance_of::<PyDict>() {
            lines.line(json_text(&line)?.as_bytes()).map_err(raised)?;
        } else {
            let kind = line.get_type().name()?;
            let text =
                format!("lines: each must be a dict, or JSON text as str or bytes, not {kind}");
            return Err(PyTypeError::new_err(text));
        }
    }
    Ok(lines.finish())
}

fn read_file(path: &Path) -> PyResult<World> {
    if path.to_string_lossy().trim_start().starts_with('{') {
        return Err(PyValueError::new_err(
            "lines: a str is the path of a file, but this is JSON; use text.encode() instead",
        ));
    }
    let file = File::open(path).map_err(|error| file_error(&error, path))?;
    World::from_jsonl(BufReader::with_capacity(1 << 20, file)).map_err(|error| match error {
        JsonlError::Line { .. } => PyValueError::new_err(format!("{}: {error}", path.display())),
        JsonlError::Read(error) => file_error(&error, path),
    })
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
