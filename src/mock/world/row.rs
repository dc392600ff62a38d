//! How the rows that the mock serves are written.
//!
//! JSON lines and added messages find the times in a row by the constants here. Edits and dialects
//! change whatever fields a row has. A test compares all of this with the OpenAPI document.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;

/// The fields that are timestamps,
pub const TIMES: [&str; 3] = ["created_at", "updated_at", "online_at"];
/// and those of a user that follow the last message.
pub const ACTIVITY: [&str; 2] = ["updated_at", "online_at"];

/// A value that can be written as JSON. Most of the mock's time goes into rows, and Serde takes twice
/// as long for them.
pub trait Json {
    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);
}

/// Appends an object, whose fields are sent in this order.
macro_rules! write_object {
    ($out:expr, $first:ident: $first_value:expr $(, $name:ident: $value:expr)* $(,)?) => {
        $out.extend_from_slice(concat!("{\"", stringify!($first), "\":").as_bytes());
        $first_value.write($out);
        $(
            $out.extend_from_slice(concat!(",\"", stringify!($name), "\":").as_bytes());
            $value.write($out);
        )*
        $out.push(b'}');
    };
}

pub(super) use write_object;

/// A text in pieces.
impl<const PIECES: usize> Json for [&str; PIECES] {
    fn write(&self, out: &mut Vec<u8>) {
        let special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
        out.push(b'"');
        let start = out.len();
        for piece in self {
            out.extend_from_slice(piece.as_bytes());
        }
        let written = out.iter().skip(start);
        // Without an early end, several bytes are compared at once.
        if written.fold(false, |found, byte| found | special(byte)) {
            out.truncate(start - 1);
            // A vector accepts everything.
            let _ = serde_json::to_writer(out, &self.concat());
        } else {
            out.push(b'"');
        }
    }
}

impl Json for &str {
    fn write(&self, out: &mut Vec<u8>) {
        [*self].write(out);
    }
}

impl Json for String {
    fn write(&self, out: &mut Vec<u8>) {
        [self.as_str()].write(out);
    }
}

impl Json for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        // A vector accepts everything.
        let _ = serde_json::to_writer(out, self);
    }
}

impl Json for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
}

/// A value that is JSON already.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'text>(pub &'text [u8]);

impl Json for Raw<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
    }
}

impl<Inner: Json> Json for Option<Inner> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(out),
            None => out.extend_from_slice(b"null"),
        }
    }
}

/// Milliseconds since 1970, sent as `2024-03-05T09:31:07.042Z`.
#[derive(Clone, Copy, Debug)]
pub struct Moment(pub u64);

impl Json for Moment {
    fn write(&self, out: &mut Vec<u8>) {
        const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
        let moment = Timestamp::from_millisecond(self.0 as i64).unwrap_or_default();
        out.push(b'"');
        // A vector accepts everything.
        let _ = PRINTER.print_timestamp(&moment, &mut *out);
        out.push(b'"');
    }
}

impl Moment {
    /// Reads a timestamp of RFC 3339, whatever its offset and precision; `None` before 1970.
    pub fn read(text: &str) -> Option<Self> {
        let moment: Timestamp = text.parse().ok()?;
        moment.as_millisecond().try_into().ok().map(Self)
    }
}
