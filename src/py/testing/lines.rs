//! Worlds from and to JSON lines.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use backread_mock::world::{JsonlReader, World};

/// Reads a world from the file at a path, from bytes, or from lines.
pub fn read(source: &Bound<'_, PyAny>) -> PyResult<World> {
    let module = source.py().import("backread.testing.jsonl")?;
    let given = module.call_method1("lines_of", (source,))?;
    let (name, lines): (String, Bound<'_, PyAny>) = given.extract()?;
    let mut world = JsonlReader::default();
    for line in lines.try_iter()? {
        let line: PyBackedBytes = line?.extract()?;
        let added = world.line(&line);
        added.map_err(|problem| PyValueError::new_err(format!("{name}{problem}")))?;
    }
    Ok(world.finish())
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
