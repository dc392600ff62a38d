//! Worlds as JSON lines: each line a user as the service sends it, with an additional key
//! `messages`.

use std::io::{self, BufRead, Write};

use serde_json::value::RawValue;
use thiserror::Error;

use super::json_object::{self, Entries, write_compact};
use super::jsonl_rows::{FixedRows, FixedRowsBuilder, JsonlRows, UserMessages};
use super::schema::{self, MESSAGE, USER};
use super::{MAX_LIST, MAX_USERS, View, World};
use crate::chunks::Chunks;

const MESSAGES: &str = "messages";

/// Ids stay below this, so that rows added later have room above.
const MAX_ID: u64 = 1 << 63;

/// Why lines are not a world.
#[derive(Debug, Error)]
pub enum JsonlError {
    #[error("line {line}: {problem}")]
    Line { line: u64, problem: String },
    #[error("the lines cannot be read: {0}")]
    Read(#[from] io::Error),
}

/// A world that is being read line by line.
#[derive(Debug, Default)]
pub struct JsonlReader {
    lines: u64,
    users: FixedRowsBuilder,
    messages: Vec<UserMessages>,
}

impl JsonlReader {
    /// Reads one line; an empty one adds nothing.
    ///
    /// # Errors
    /// `Line` for a line that is not an object with an integer id, or that has a row twice.
    pub fn line(&mut self, line: &[u8]) -> Result<(), JsonlError> {
        self.lines += 1;
        // Some programs start every file with a byte order mark.
        let mark = "\u{feff}".as_bytes();
        let line = match self.lines {
            1 => line.strip_prefix(mark).unwrap_or(line),
            _ => line,
        };
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        self.user(line).map_err(|problem| JsonlError::Line {
            line: self.lines,
            problem,
        })
    }

    /// The world with all lines, in their order.
    #[must_use]
    pub fn finish(self) -> World {
        World::fixed(JsonlRows {
            users: self.users.finish(),
            messages: self.messages,
        })
    }

    fn user(&mut self, line: &[u8]) -> Result<(), String> {
        let Entries(mut entries) = Entries::read(line).map_err(|error| reason(&error))?;
        // A user may also have a field of that name; the list comes after it.
        let messages = entries
            .iter()
            .rposition(|(key, _)| json_object::is_name(key, MESSAGES))
            .map(|place| entries.remove(place).1);
        let entries = Entries(entries);
        let id = read_id(&entries)?;
        let mut last = latest(&entries, schema::times(USER));
        let rows = match messages {
            Some(messages) => read_messages(messages, &mut last)
                .map_err(|problem| format!("user {id}: {problem}"))?,
            None => FixedRows::default(),
        };
        if self.users.len() == MAX_USERS {
            return Err(format!("a world holds {MAX_USERS} users at most"));
        }
        if !self.users.push(id, entries.to_text()) {
            return Err(format!("there is a user {id} already"));
        }
        self.messages.push(UserMessages { rows, last });
        Ok(())
    }
}

impl World {
    /// Reads a world from JSON lines: the users in their order, each as the service sends it, with
    /// an additional key `messages` that has the list of messages. Rows are preserved byte for
    /// byte, except for whitespace between tokens. Rows added later are generated, with ids above
    /// all of these.
    ///
    /// # Errors
    /// `Line` for a line that is not an object with an integer id, or that has a row twice; `Read`
    /// if the reader fails.
    pub fn from_jsonl(mut reader: impl BufRead) -> Result<Self, JsonlError> {
        let mut lines = JsonlReader::default();
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            lines.line(&line)?;
            line.clear();
        }
        Ok(lines.finish())
    }

    /// Writes the current world as JSON lines, in bounded memory.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn to_jsonl(&self, out: &mut impl Write) -> io::Result<()> {
        let view = self.view();
        for position in 0..view.total_users() {
            write_line(&view, position, out)?;
        }
        Ok(())
    }
}

fn write_line(view: &View, position: u64, out: &mut impl Write) -> io::Result<()> {
    const PAGE: usize = 512;
    let user = view.user_row(position).zip(view.user_id_at(position));
    let Some((row, user_id)) = user else {
        return Ok(());
    };
    out.write_all(row.strip_suffix(b"}").unwrap_or(&row))?;
    out.write_all(b",\"messages\":[")?;
    for offset in (0..view.total_messages(user_id).unwrap_or(0)).step_by(PAGE) {
        let mut page = Chunks::default();
        view.write_messages(user_id, offset, PAGE, &mut page);
        if offset > 0 {
            out.write_all(b",")?;
        }
        for piece in page {
            out.write_all(&piece)?;
        }
    }
    out.write_all(b"]}\n")
}

fn read_messages(list: &RawValue, last: &mut Option<u64>) -> Result<FixedRows, String> {
    let rows: Vec<&RawValue> = serde_json::from_str(list.get())
        .map_err(|_| format!("{MESSAGES} must be an array of objects"))?;
    if rows.len() as u64 > MAX_LIST {
        return Err(format!(
            "{} messages are too many; {MAX_LIST} is the most",
            rows.len()
        ));
    }
    let mut messages = FixedRowsBuilder::default();
    for (number, row) in rows.into_iter().enumerate() {
        let at = |problem: String| format!("messages[{number}]: {problem}");
        let fields = Entries::read(row.get().as_bytes()).map_err(|error| at(reason(&error)))?;
        let id = read_id(&fields).map_err(at)?;
        *last = latest(&fields, schema::times(MESSAGE)).max(*last);
        let mut text = Vec::with_capacity(row.get().len());
        write_compact(row.get(), &mut text);
        if !messages.push(id, text) {
            return Err(at(format!("there is a message {id} already")));
        }
    }
    Ok(messages.finish())
}

fn read_id(row: &Entries<'_>) -> Result<u64, String> {
    let id = row.get("id").ok_or("has no id")?.get();
    let number = id.parse().ok().filter(|number| *number < MAX_ID);
    number.ok_or_else(|| format!("id must be an integer from 0 to 2^63 - 1, not {id}"))
}

fn latest(row: &Entries<'_>, names: impl Iterator<Item = &'static str>) -> Option<u64> {
    names.filter_map(|name| row.moment(name)).max()
}

/// The JSON parser's message without its line number: to the parser, each line is the first.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(what, _)| what);
    if error.is_data() {
        return what.to_owned();
    }
    format!("{what} (column {})", error.column())
}
