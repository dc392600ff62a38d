//! Users and messages as columns, appended from what the scan found or from what serde_json read.

use std::sync::{Arc, LazyLock};

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, PrimitiveBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, ListArray, RecordBatch, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};

use super::column::{Categories, Column};
use super::table;
use crate::core::decode::json::{self, Fault};
use crate::core::decode::model;
use crate::core::decode::page::Row;
use crate::core::decode::rows::{self, Extra, Form, Kind, kind};
use crate::core::privacy::Privacy;
use crate::core::schema::schema;
use crate::core::timestamp::Timestamp;

table! {
    /// One row per user; `extra` is the JSON of the fields that the interface does not name.
    USERS;
    /// Collects users into a batch of `USERS`.
    UserColumns {
        user: User;
    }
}

table! {
    /// One row per message, with its user's id; the sender's fields are flattened.
    MESSAGES;
    /// Collects messages into a batch of `MESSAGES`.
    MessageColumns {
        user_id: Int64Builder;
        message: Message;
    }
}

impl UserColumns {
    pub fn append(&mut self, user: &model::User<'_>) {
        self.user.extend(&(), &[user]);
    }

    /// Appends a user from its page, without what `privacy` keeps out; fails if the row cannot
    /// become a record.
    pub fn append_row(&mut self, row: &Row, privacy: Option<&Privacy>) -> Result<(), Fault> {
        match (privacy, row.scanned_user()) {
            (Some(privacy), _) => self.append(&privacy.user(row)?),
            (None, Some((page, user))) => self.user.extend(page, &[user]),
            (None, None) => self.append(&row.user()?),
        }
        Ok(())
    }

    /// Appends the rows of one page if the scan found all of them; otherwise appends none and
    /// returns false.
    pub fn append_scanned(&mut self, rows: &[Row]) -> bool {
        let Some((page, users)) = scanned(rows, Row::scanned_user) else {
            return false;
        };
        self.user.extend(page, &users);
        true
    }
}

impl MessageColumns {
    pub fn append(&mut self, user_id: i64, message: &model::Message<'_>) {
        self.user_id.append_value(user_id);
        self.message.extend(&(), &[message]);
    }

    /// Appends a message from its page, without what `privacy` keeps out; fails if the row cannot
    /// become a record.
    pub fn append_row(
        &mut self,
        user_id: i64,
        row: &Row,
        privacy: Option<&Privacy>,
    ) -> Result<(), Fault> {
        match (privacy, row.scanned_message()) {
            (Some(privacy), _) => self.append(user_id, &privacy.message(row)?),
            (None, Some((page, message))) => {
                self.user_id.append_value(user_id);
                self.message.extend(page, &[message]);
            }
            (None, None) => self.append(user_id, &row.message()?),
        }
        Ok(())
    }

    /// Appends the rows of one page if the scan found all of them; otherwise appends none and
    /// returns false.
    pub fn append_scanned(&mut self, user_id: i64, rows: &[Row]) -> bool {
        let Some((page, messages)) = scanned(rows, Row::scanned_message) else {
            return false;
        };
        self.user_id.append_value_n(user_id, messages.len());
        self.message.extend(page, &messages);
        true
    }
}

/// What the scan found of rows of one page; `None` unless it found all of them.
fn scanned<'a, T>(
    rows: &'a [Row],
    found: impl Fn(&'a Row) -> Option<(&'a str, &'a T)>,
) -> Option<(&'a str, Vec<&'a T>)> {
    let (page, _) = found(rows.first()?)?;
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let (text, each) = found(row)?;
        std::ptr::eq(text, page).then(|| all.push(each))?;
    }
    Some((page, all))
}

/// A kind of field as a column.
trait KindColumn: Kind {
    type Column: Column;
    const NULLABLE: bool = true;

    /// Appends what several rows hold. A page's rows at once take 690 instructions a message for its
    /// columns; one row after the other took 1,050.
    fn extend<'r, F: Form + 'r>(
        column: &mut Self::Column,
        source: &F::Source,
        held: impl Several<&'r Self::Of<F>>,
    ) where
        Self::Of<F>: 'r;
}

/// Values that can be gone through more than once.
trait Several<T>: ExactSizeIterator<Item = T> + Clone {}

impl<T, I: ExactSizeIterator<Item = T> + Clone> Several<T> for I {}

macro_rules! columns_of {
    ($($kind:ident: $column:ty, |$to:ident, $source:ident, $held:ident| $extend:expr;)*) => { $(
        impl KindColumn for kind::$kind {
            type Column = $column;

            #[inline]
            fn extend<'r, F: Form + 'r>(
                $to: &mut $column,
                $source: &F::Source,
                $held: impl Several<&'r Self::Of<F>>,
            ) where
                Self::Of<F>: 'r,
            {
                $extend
            }
        }
    )* };
}

columns_of! {
    Integer: Int64Builder, |column, _source, numbers| extend_numbers(column, numbers.copied());
    Text: StringBuilder, |column, source, texts| extend_texts::<F>(column, source, texts);
    Label: StringBuilder, |column, source, texts| extend_texts::<F>(column, source, texts);
    Category: Categories, |column, source, texts| for text in texts {
        match text {
            Some(text) => column.append(&F::text(source, text)),
            None => column.append_null(),
        }
    };
    Boolean: BooleanBuilder, |column, _source, held| {
        let values: Vec<bool> = held.clone().map(|truth| truth.unwrap_or_default()).collect();
        if held.clone().all(Option::is_some) {
            column.append_slice(&values);
        } else {
            held.for_each(|truth| column.append_option(*truth));
        }
    };
    Timestamp: TimestampMicrosecondBuilder, |column, _source, instants| {
        extend_numbers(column, instants.map(|at| at.map(Timestamp::microseconds)));
    };
    Attributes: AttributeLists, |column, source, lists| {
        for list in lists {
            column.append::<F>(source, list.as_deref());
        }
    };
    Sender: Sender, |column, source, senders| {
        let no_sender = rows::Sender::<F>::default();
        let senders: Vec<_> = senders.map(|sender| sender.as_ref().unwrap_or(&no_sender)).collect();
        column.extend(source, &senders);
    };
}

impl KindColumn for kind::Id {
    type Column = Int64Builder;
    const NULLABLE: bool = false;

    #[inline]
    fn extend<'r, F: Form + 'r>(
        column: &mut Int64Builder,
        _: &F::Source,
        ids: impl Several<&'r i64>,
    ) {
        column.append_slice(&ids.copied().collect::<Vec<i64>>());
    }
}

/// Most columns have no null, or nothing else, in the rows of a page.
#[inline]
fn extend_numbers<T: ArrowPrimitiveType>(
    column: &mut PrimitiveBuilder<T>,
    numbers: impl Several<Option<T::Native>>,
) {
    if numbers.clone().all(|number| number.is_some()) {
        let values: Vec<T::Native> = numbers.map(Option::unwrap_or_default).collect();
        column.append_slice(&values);
    } else {
        numbers.for_each(|number| column.append_option(number));
    }
}

#[inline]
fn extend_texts<'r, F: Form + 'r>(
    column: &mut StringBuilder,
    source: &F::Source,
    texts: impl Several<&'r Option<F::Text>>,
) where
    F::Text: 'r,
{
    if texts.clone().all(Option::is_none) {
        return column.append_nulls(texts.len());
    }
    for text in texts {
        match text {
            Some(text) => column.append_value(F::text(source, text)),
            None => column.append_null(),
        }
    }
}

macro_rules! objects {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => { $(
        /// The columns of one kind of object.
        struct $name {
            $($field: <kind::$kind as KindColumn>::Column,)*
            extra: StringBuilder,
        }

        impl $name {
            fn extend<F: Form>(&mut self, source: &F::Source, rows: &[&rows::$name<F>]) {
                $(kind::$kind::extend::<F>(
                    &mut self.$field,
                    source,
                    rows.iter().map(|row| &row.$field),
                );)*
                if rows.iter().all(|row| row.extra.is_empty()) {
                    return self.extra.append_nulls(rows.len());
                }
                for row in rows {
                    self.extra.append_option(extra_json::<F>(source, &row.extra));
                }
            }
        }

        impl Column for $name {
            fn empty() -> Self {
                Self {
                    $($field: Column::empty(),)*
                    extra: Column::empty(),
                }
            }

            /// A sender's columns have its name in front of theirs.
            fn describe(name: &str, _: bool, fields: &mut Vec<Field>) {
                let named = |field: &str| match name {
                    "sender" => format!("sender_{field}"),
                    _ => field.to_owned(),
                };
                $(<kind::$kind as KindColumn>::Column::describe(
                    &named(stringify!($field)),
                    <kind::$kind as KindColumn>::NULLABLE,
                    fields,
                );)*
                StringBuilder::describe(&named("extra"), true, fields);
            }

            fn finish_into(&mut self, arrays: &mut Vec<ArrayRef>) -> Result<(), ArrowError> {
                $(self.$field.finish_into(arrays)?;)*
                self.extra.finish_into(arrays)
            }
        }
    )* };
}
schema!(objects);

#[inline]
fn extra_json<F: Form>(source: &F::Source, extra: &Extra<F>) -> Option<String> {
    if extra.is_empty() {
        return None;
    }
    let members = extra.iter().map(|(key, json)| {
        let value = json::parse(&F::text(source, json))?;
        Ok((F::text(source, key).into_owned(), value))
    });
    let object = members.collect::<Result<model::Extra, Fault>>().ok()?;
    serde_json::to_string(&object).ok()
}

/// A column of lists of attributes.
struct AttributeLists {
    attributes: UserAttribute,
    lengths: Vec<usize>,
    present: NullBufferBuilder,
}

impl AttributeLists {
    #[inline]
    fn append<F: Form>(&mut self, source: &F::Source, list: Option<&[rows::UserAttribute<F>]>) {
        self.present.append(list.is_some());
        let list = list.unwrap_or_default();
        self.lengths.push(list.len());
        if !list.is_empty() {
            self.attributes
                .extend(source, &list.iter().collect::<Vec<_>>());
        }
    }

    fn item() -> Field {
        let mut fields = Vec::new();
        UserAttribute::describe("", true, &mut fields);
        Field::new("item", DataType::Struct(Fields::from(fields)), true)
    }
}

impl Column for AttributeLists {
    fn empty() -> Self {
        Self {
            attributes: Column::empty(),
            lengths: Vec::new(),
            present: NullBufferBuilder::new(0),
        }
    }

    fn describe(name: &str, nullable: bool, fields: &mut Vec<Field>) {
        let data_type = DataType::List(Arc::new(Self::item()));
        fields.push(Field::new(name, data_type, nullable));
    }

    fn finish_into(&mut self, arrays: &mut Vec<ArrayRef>) -> Result<(), ArrowError> {
        let mut columns = Vec::new();
        self.attributes.finish_into(&mut columns)?;
        let item = Self::item();
        let DataType::Struct(fields) = item.data_type().clone() else {
            return Ok(());
        };
        let structs = StructArray::try_new(fields, columns, None)?;
        let offsets = OffsetBuffer::from_lengths(std::mem::take(&mut self.lengths));
        let present = self.present.finish();
        let lists = ListArray::try_new(Arc::new(item), offsets, Arc::new(structs), present)?;
        arrays.push(Arc::new(lists));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use bytes::Bytes;

    use super::*;
    use crate::core::api::Resource;
    use crate::core::decode::json::Text;
    use crate::core::decode::page::Page;

    #[test]
    fn a_row_has_the_same_columns_as_scanned_and_as_read() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/page");
        let (mut users, mut users_read) = (UserColumns::default(), UserColumns::default());
        let (mut messages, mut messages_read) =
            (MessageColumns::default(), MessageColumns::default());
        let (mut users_by_page, mut messages_by_page) =
            (UserColumns::default(), MessageColumns::default());
        let mut scanned = [0, 0];
        let mut whole_pages = 0;
        for file in fs::read_dir(corpus).unwrap() {
            let body = Text::repair(Bytes::from(fs::read(file.unwrap().path()).unwrap()));
            let rows = |resource| {
                let page = Page::read(body.clone(), resource).map(|page| page.rows);
                let mut rows = page.unwrap_or_default();
                rows.retain(|row| row.unreadable.is_none());
                rows
            };
            let of_users = rows(Resource::Users);
            for row in &of_users {
                scanned[0] += usize::from(row.scanned_user().is_some());
                users.append_row(row, None).unwrap();
                users_read.append(&row.user().unwrap());
            }
            if users_by_page.append_scanned(&of_users) {
                whole_pages += 1;
            } else {
                of_users
                    .iter()
                    .for_each(|row| users_by_page.append_row(row, None).unwrap());
            }
            let of_messages = rows(Resource::Messages);
            for row in &of_messages {
                scanned[1] += usize::from(row.scanned_message().is_some());
                messages.append_row(42, row, None).unwrap();
                messages_read.append(42, &row.message().unwrap());
            }
            if messages_by_page.append_scanned(42, &of_messages) {
                whole_pages += 1;
            } else {
                of_messages
                    .iter()
                    .for_each(|row| messages_by_page.append_row(42, row, None).unwrap());
            }
        }
        assert!(scanned.iter().all(|rows| *rows > 15), "{scanned:?}");
        assert!(whole_pages > 15, "{whole_pages}");
        let users = users.finish().unwrap();
        assert_eq!(users, users_read.finish().unwrap());
        assert_eq!(users, users_by_page.finish().unwrap());
        let messages = messages.finish().unwrap();
        assert_eq!(messages, messages_read.finish().unwrap());
        assert_eq!(messages, messages_by_page.finish().unwrap());
    }

    #[test]
    fn the_columns_of_a_message_are_its_fields_and_its_senders() {
        let names: Vec<&str> = MESSAGES
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let expected = "user_id id body read_by_user read_by_operator created_at file_url \
            auto_invitation sender_type sender_id sender_name sender_email sender_forename \
            sender_surname sender_picture_thumb_url sender_extra extra";
        assert_eq!(names.join(" "), expected);
        let required = MESSAGES
            .fields()
            .iter()
            .filter(|field| !field.is_nullable());
        assert_eq!(
            required.map(|field| field.name()).collect::<Vec<_>>(),
            ["user_id", "id"]
        );
    }
}
