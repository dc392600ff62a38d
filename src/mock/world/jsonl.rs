//! Worlds as JSON lines: each line a user as the service sends it, with an additional key
//! `messages`.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::value::RawValue;

use super::block::{Block, BlockBuilder};
use super::changes::Fields;
use super::draw::Digest;
use super::json_object::{Entries, compact};
use super::rows::Rows;
use super::{MAX_LIST, MAX_USERS, World};
use crate::chunks::Chunks;

const MESSAGES: &str = "messages";

/// Ids stay below this, so that rows added later have room above.
const MAX_ID: u64 = 1 << 63;

/// The rows of one list, byte for byte, found by id and by place.
#[derive(Debug, Default)]
pub struct GivenRows {
    pub ids: Vec<u64>,
    places: HashMap<u64, u64>,
    pub block: Block,
}

impl GivenRows {
    pub const fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    pub fn place(&self, id: u64) -> Option<u64> {
        self.places.get(&id).copied()
    }

    /// Adds an id, whose row follows in the block; false if it exists already.
    fn add(&mut self, id: u64) -> bool {
        let is_new = self.places.insert(id, self.len()).is_none();
        self.ids.push(id);
        is_new
    }
}

/// The messages of one user.
#[derive(Debug, Default)]
pub struct GivenMessages {
    pub rows: GivenRows,
    /// The latest time in the user or a message, in milliseconds since 1970.
    pub last: Option<u64>,
}

/// Users, in their order, each with messages.
#[derive(Debug, Default)]
pub struct Given {
    pub users: GivenRows,
    pub messages: Vec<GivenMessages>,
}

impl Given {
    /// The given rows of a list.
    pub fn list(&self, owner: Option<u64>) -> Option<&GivenRows> {
        match owner {
            None => Some(&self.users),
            Some(index) => self.messages.get(index as usize).map(|given| &given.rows),
        }
    }

    /// Adds all rows to a fingerprint.
    pub fn digest(&self, digest: &mut Digest) {
        digest.bytes(self.users.block.text());
        for GivenMessages { rows, .. } in &self.messages {
            digest.bytes(rows.block.text());
        }
    }
}

/// A world that is being read line by line.
#[derive(Debug, Default)]
pub struct JsonlReader {
    lines: u64,
    given: Given,
    users: BlockBuilder,
}

impl JsonlReader {
    /// Reads one line; an empty one adds nothing. After an error, the reader is of no more use.
    ///
    /// # Errors
    /// The number of the line, and why it is not an object with an integer id or has a row twice.
    pub fn line(&mut self, line: &[u8]) -> Result<(), String> {
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
        let number = self.lines;
        self.user(line)
            .map_err(|problem| format!("line {number}: {problem}"))
    }

    /// The world with all lines, in their order.
    pub fn finish(mut self) -> World {
        self.given.users.block = self.users.finish();
        World::over(Rows::given(self.given))
    }

    fn user(&mut self, line: &[u8]) -> Result<(), String> {
        let mut fields = Entries::read(line).map_err(|error| reason(&error))?;
        // A user may also have a field of that name; the list comes after it.
        let messages = fields.find(MESSAGES).map(|place| fields.0.remove(place).1);
        let id = read_id(&fields)?;
        let mut given = match messages {
            Some(list) => read_messages(list).map_err(|problem| format!("user {id}: {problem}"))?,
            None => GivenMessages::default(),
        };
        given.last = given.last.max(fields.latest());
        if self.given.users.len() == MAX_USERS {
            return Err(format!("a world holds {MAX_USERS} users at most"));
        }
        if !self.given.users.add(id) {
            return Err(format!("there is a user {id} already"));
        }
        self.given.messages.push(given);
        let row = compact(&fields.with_fields(&Fields::new()));
        self.users.push(|out| out.extend(row));
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
    /// As [`JsonlReader::line`].
    pub fn from_jsonl(text: &[u8]) -> Result<Self, String> {
        let mut lines = JsonlReader::default();
        for line in text.split(|byte| *byte == b'\n') {
            lines.line(line)?;
        }
        Ok(lines.finish())
    }

    /// Writes the current world as JSON lines, in bounded memory.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn to_jsonl(&self, out: &mut impl Write) -> io::Result<()> {
        const PAGE: usize = 512;
        let view = self.view();
        for index in view.users().rows() {
            let row = view.users().text(index);
            out.write_all(row.strip_suffix(b"}").unwrap_or(&row))?;
            out.write_all(b",\"messages\":[")?;
            let messages = view.messages(index);
            for offset in (0..messages.total()).step_by(PAGE) {
                let mut page = Chunks::from(if offset > 0 { "," } else { "" });
                messages.write(offset, PAGE as u64, &mut page);
                out.write_all(&page.to_vec())?;
            }
            out.write_all(b"]}\n")?;
        }
        Ok(())
    }
}

fn read_messages(list: &RawValue) -> Result<GivenMessages, String> {
    let rows: Vec<&RawValue> = serde_json::from_str(list.get())
        .map_err(|_| format!("{MESSAGES} must be an array of objects"))?;
    if rows.len() as u64 > MAX_LIST {
        let count = rows.len();
        return Err(format!(
            "{count} messages are too many; {MAX_LIST} is the most"
        ));
    }
    let mut given = GivenMessages::default();
    let mut block = BlockBuilder::default();
    for (number, row) in rows.into_iter().enumerate() {
        let at = |problem: String| format!("messages[{number}]: {problem}");
        let fields = Entries::read(row.get().as_bytes()).map_err(|error| at(reason(&error)))?;
        let id = read_id(&fields).map_err(at)?;
        given.last = given.last.max(fields.latest());
        if !given.rows.add(id) {
            return Err(at(format!("there is a message {id} already")));
        }
        block.push(|out| out.extend(compact(row.get().as_bytes())));
    }
    given.rows.block = block.finish();
    Ok(given)
}

fn read_id(row: &Entries<'_>) -> Result<u64, String> {
    let id = row.get("id").ok_or("has no id")?.get();
    let number = id.parse().ok().filter(|number| *number < MAX_ID);
    number.ok_or_else(|| format!("id must be an integer from 0 to 2^63 - 1, not {id}"))
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
