//! The members of an object as the fields of a row. A value of a type that is not its field's goes to
//! `extra`; of members with one key the last one wins.

use std::ops::Range;

use super::verdict::{DEEPEST, Unreadable, Verdict, is_too_deep};
use crate::decode::json::cursor::{Cursor, Span};
use crate::decode::rows::{Message, Sender, User, UserAttribute};
use crate::schema::schema;
use crate::timestamp::Timestamp;

/// The fields of each object, by their places in its table.
pub(super) mod field {
    use crate::schema::schema;

    macro_rules! objects {
        ($(
            $(#[$doc:meta])*
            $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
        )*) => { $(
            #[derive(Debug, Clone, Copy)]
            #[allow(non_camel_case_types)]
            pub enum $name { $($field,)* }
        )* };
    }
    schema!(objects);
}

/// All fields of a table.
pub(super) const ALL: u32 = u32::MAX;
/// A conversation has its user and a few operators.
const SENDERS: usize = 8;
/// Bytes that tell most senders apart: `{"id":` and an id.
const SENDER_START: usize = 16;

/// The documented fields that an object has, by their places in its table.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Seen {
    fields: u32,
    /// Those whose value, the last one if there are several, has another type.
    odd: u32,
    /// A later value of a field has replaced one that is still in `extra`.
    replaced: bool,
}

impl Seen {
    /// Whether the field is there, with a value of its type.
    #[inline(always)]
    pub fn has(self, field: usize) -> bool {
        self.fields & !self.odd & (1 << field) != 0
    }

    pub fn odd_values(self) -> u64 {
        self.odd.count_ones().into()
    }

    /// Whether there are no others than these.
    pub fn is_within(self, fields: u32) -> bool {
        self.fields & !fields == 0
    }

    /// Whether this documented field was not seen before; notes it then.
    #[inline(always)]
    fn is_new(&mut self, field: usize, documented: u32) -> bool {
        let new = (documented & !self.fields) & (1 << field) != 0;
        if new {
            self.fields |= 1 << field;
        }
        new
    }
}

/// What the rows of one text share.
pub(super) struct Parts<'a> {
    pub json: &'a str,
    /// The odd values in the attributes of the last user.
    pub odd_in_attributes: u64,
    /// The fields of the last sender, and where it begins.
    pub sender_fields: Seen,
    pub sender_at: Cursor<'a>,
    senders: KnownSenders<'a, (Sender, Seen)>,
    /// Whether a value in an `extra` is long enough to be nested too deep.
    has_long_extra: bool,
}

impl<'a> Parts<'a> {
    pub fn new(json: &'a str, cursor: Cursor<'a>) -> Self {
        Self {
            json,
            odd_in_attributes: 0,
            sender_fields: Seen::default(),
            sender_at: cursor,
            senders: KnownSenders::default(),
            has_long_extra: false,
        }
    }

    /// Any value, for an `extra`.
    fn extra(&mut self, cursor: &mut Cursor<'a>) -> Option<Span> {
        let value = cursor.value()?;
        self.has_long_extra |= value.to() - value.from() > DEEPEST;
        Some(value)
    }

    #[inline(always)]
    pub fn verdict(&self, slice: Range<usize>, id: Option<i64>, odd_values: u64) -> Verdict {
        let too_deep = self.has_long_extra && self.json.get(slice).is_some_and(is_too_deep);
        match id {
            None => Verdict::not_read(Unreadable::NoId),
            Some(_) if too_deep => Verdict {
                id,
                ..Verdict::not_read(Unreadable::TooDeep)
            },
            Some(_) => Verdict {
                id,
                unreadable: None,
                odd_values,
            },
        }
    }
}

/// The value of a field; `None` if it is of another type, or no JSON.
trait Field: Sized + Default {
    fn scan<'a>(cursor: &mut Cursor<'a>, parts: &mut Parts<'a>) -> Option<Self>;
}

/// A row's id, the only field that may not be null.
impl Field for i64 {
    #[inline(always)]
    fn scan<'a>(cursor: &mut Cursor<'a>, _: &mut Parts<'a>) -> Option<Self> {
        cursor.integer()
    }
}

impl<T: Present> Field for Option<T> {
    #[inline(always)]
    fn scan<'a>(cursor: &mut Cursor<'a>, parts: &mut Parts<'a>) -> Option<Self> {
        if cursor.null() {
            Some(None)
        } else {
            T::scan_present(cursor, parts).map(Some)
        }
    }
}

/// The value of a field where it is not null.
trait Present: Sized {
    fn scan_present<'a>(cursor: &mut Cursor<'a>, parts: &mut Parts<'a>) -> Option<Self>;
}

macro_rules! by_cursor {
    ($($type:ty: $method:ident;)*) => { $(
        impl Present for $type {
            #[inline(always)]
            fn scan_present<'a>(cursor: &mut Cursor<'a>, _: &mut Parts<'a>) -> Option<Self> {
                cursor.$method()
            }
        }
    )* };
}
by_cursor! { i64: integer; bool: boolean; Span: string; }

impl Present for Timestamp {
    #[inline(always)]
    fn scan_present<'a>(cursor: &mut Cursor<'a>, parts: &mut Parts<'a>) -> Option<Self> {
        let mut likely = *cursor;
        if let Some(instant) = likely.short_string().and_then(Self::documented) {
            *cursor = likely;
            return Some(instant);
        }
        Self::parse(&cursor.string()?.text(parts.json))
    }
}

impl Present for Vec<UserAttribute> {
    #[inline]
    fn scan_present<'a>(cursor: &mut Cursor<'a>, parts: &mut Parts<'a>) -> Option<Self> {
        let mut attributes = Self::new();
        let mut odd_values = 0;
        cursor.array(|cursor| {
            let mut attribute = UserAttribute::default();
            odd_values += attribute.scan(cursor, parts, ALL)?.odd_values();
            attributes.push(attribute);
            Some(())
        })?;
        parts.odd_in_attributes = odd_values;
        Some(attributes)
    }
}

impl Present for Sender {
    #[inline(always)]
    fn scan_present<'a>(cursor: &mut Cursor<'a>, parts: &mut Parts<'a>) -> Option<Self> {
        parts.sender_at = *cursor;
        if let Some((known, fields)) = parts.senders.next(cursor) {
            parts.sender_fields = fields;
            return Some(known);
        }
        let before = cursor.at();
        let mut sender = Self::default();
        let fields = sender.scan(cursor, parts, ALL)?;
        parts.sender_fields = fields;
        // Unknown fields are a list, which costs more to copy.
        if sender.extra.is_empty() {
            let text = parts.json.get(before..cursor.at())?;
            parts.senders.keep(text, (sender.clone(), fields));
        }
        Some(sender)
    }
}

macro_rules! scans {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => { $(
        impl $name {
            /// Reads an object; fields that are not `documented` are unknown ones. `None` if it is
            /// none.
            #[inline(always)]
            pub(super) fn scan<'a>(
                &mut self,
                cursor: &mut Cursor<'a>,
                parts: &mut Parts<'a>,
                documented: u32,
            ) -> Option<Seen> {
                let seen = self.members(cursor, parts, documented)?;
                if seen.replaced {
                    self.extra.retain(|(key, _)| {
                        let name = key.text(parts.json);
                        let typed = documented & seen.fields & !seen.odd;
                        !($(name == stringify!($field)
                            && typed & (1 << field::$name::$field as usize) != 0)||*)
                    });
                }
                Some(seen)
            }

            #[inline(always)]
            fn members<'a>(
                &mut self,
                cursor: &mut Cursor<'a>,
                parts: &mut Parts<'a>,
                documented: u32,
            ) -> Option<Seen> {
                let mut seen = Seen::default();
                if !cursor.opens_object()? {
                    return Some(seen);
                }
                // Most objects have their members in the order of the table and of the types of their
                // fields: trying the keys in that order takes 1,200 instructions a message less.
                loop {
                    let before = *cursor;
                    $(
                        let member = *cursor;
                        if cursor.passes_key(concat!("\"", stringify!($field), "\":").as_bytes()) {
                            let place = field::$name::$field as usize;
                            let is_new = seen.is_new(place, documented);
                            match is_new.then(|| Field::scan(cursor, parts)).flatten() {
                                Some(value) => self.$field = value,
                                None => {
                                    (*cursor, seen) =
                                        self.member(member, parts, documented, seen)?;
                                }
                            }
                            if cursor.closes_object()? {
                                return Some(seen);
                            }
                        }
                    )*
                    if cursor.at() == before.at() {
                        (*cursor, seen) = self.member(before, parts, documented, seen)?;
                        if cursor.closes_object()? {
                            return Some(seen);
                        }
                    }
                }
            }

            /// Reads any member: a known field, perhaps repeated or with a value of another type, or
            /// an unknown one. By value, so that the caller's cursor can stay in registers.
            #[cold]
            #[inline(never)]
            fn member<'a>(
                &mut self,
                mut cursor: Cursor<'a>,
                parts: &mut Parts<'a>,
                documented: u32,
                mut seen: Seen,
            ) -> Option<(Cursor<'a>, Seen)> {
                let key = cursor.key()?;
                let name = key.text(parts.json);
                $(
                    let bit = 1 << field::$name::$field as usize;
                    if name == stringify!($field) && documented & bit != 0 {
                        seen.fields |= bit;
                        let before = cursor;
                        match Field::scan(&mut cursor, parts) {
                            Some(value) => {
                                self.$field = value;
                                seen.replaced |= seen.odd & bit != 0;
                                seen.odd &= !bit;
                            }
                            None => {
                                cursor = before;
                                self.$field = Default::default();
                                seen.odd |= bit;
                                self.extra.push((key, parts.extra(&mut cursor)?));
                            }
                        }
                        return Some((cursor, seen));
                    }
                )*
                self.extra.push((key, parts.extra(&mut cursor)?));
                Some((cursor, seen))
            }
        }
    )* };
}
schema!(scans);

/// Senders that recur in a page: what was scanned of one is copied where its text comes again, which
/// takes 400 instructions a message less.
#[derive(Default)]
struct KnownSenders<'a, S> {
    places: [Option<Known<'a, S>>; SENDERS],
    next: usize,
}

struct Known<'a, S> {
    start: [u8; SENDER_START],
    text: &'a str,
    scanned: S,
}

impl<'a, S: Clone> KnownSenders<'a, S> {
    /// What was scanned of the text that is next, which is consumed.
    #[inline(always)]
    fn next(&self, cursor: &mut Cursor<'_>) -> Option<S> {
        let start = cursor.chunk()?;
        let mut places = self.places.iter().flatten();
        let known =
            places.find(|known| known.start == *start && cursor.passes(known.text.as_bytes()))?;
        Some(known.scanned.clone())
    }

    /// Keeps what was scanned of `text`, in the place of the one that was kept first.
    #[inline]
    fn keep(&mut self, text: &'a str, scanned: S) {
        if let Some(start) = text.as_bytes().first_chunk()
            && let Some(place) = self.places.get_mut(self.next)
        {
            *place = Some(Known {
                start: *start,
                text,
                scanned,
            });
            self.next = (self.next + 1) % SENDERS;
        }
    }
}
