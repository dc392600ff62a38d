//! A field of each kind as a column, and the columns of each kind of object.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};

use super::column::{Categories, Column};
use crate::decode::json;
use crate::decode::json::cursor::Span;
use crate::decode::rows::{self, Extra, Kind, kind};
use crate::schema::{self, schema};
use crate::timestamp::Timestamp;

/// A kind of field as a column.
trait KindColumn: Kind {
    type Column: Column;

    /// Appends what several rows hold. A page's rows at once take two thirds of the instructions of
    /// one row after the other.
    fn extend<'r>(
        column: &mut Self::Column,
        page: &str,
        held: impl ExactSizeIterator<Item = &'r Self::Of>,
    ) where
        Self::Of: 'r;
}

macro_rules! columns_of {
    ($($kind:ident: $column:ty, |$to:ident, $page:ident, $held:ident| $extend:expr;)*) => { $(
        impl KindColumn for kind::$kind {
            type Column = $column;

            #[inline]
            fn extend<'r>(
                $to: &mut $column,
                $page: &str,
                $held: impl ExactSizeIterator<Item = &'r Self::Of>,
            ) where
                Self::Of: 'r,
            {
                $extend
            }
        }
    )* };
}

columns_of! {
    Id: Int64Builder, |column, _page, ids| column.extend(ids.map(|id| Some(*id)));
    Integer: Int64Builder, |column, _page, numbers| column.extend(numbers.copied());
    Text: StringBuilder, |column, page, spans| column.extend(texts(page, spans));
    Label: StringBuilder, |column, page, spans| column.extend(texts(page, spans));
    Category: Categories, |column, page, spans| column.extend(texts(page, spans));
    Boolean: BooleanBuilder, |column, _page, held| column.extend(held.copied());
    Timestamp: TimestampMicrosecondBuilder, |column, _page, instants| {
        column.extend(instants.map(|at| at.map(Timestamp::microseconds)));
    };
    Attributes: AttributeLists, |column, page, lists| {
        lists.for_each(|list| column.append(page, list.as_deref()));
    };
    Sender: Sender, |column, page, senders| {
        let no_sender = rows::Sender::default();
        let senders: Vec<_> = senders.map(|sender| sender.as_ref().unwrap_or(&no_sender)).collect();
        column.extend(page, &senders);
    };
}

fn texts<'a, 'r>(
    page: &'a str,
    spans: impl Iterator<Item = &'r Option<Span>>,
) -> impl Iterator<Item = Option<Cow<'a, str>>> {
    spans.map(|span| span.map(|span| span.text(page)))
}

macro_rules! objects {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => { $(
        /// The columns of one kind of object.
        pub struct $name {
            $($field: <kind::$kind as KindColumn>::Column,)*
            extra: StringBuilder,
        }

        impl $name {
            pub fn extend(&mut self, page: &str, rows: &[&rows::$name]) {
                $(kind::$kind::extend(
                    &mut self.$field,
                    page,
                    rows.iter().map(|row| &row.$field),
                );)*
                if rows.iter().all(|row| row.extra.is_empty()) {
                    return self.extra.append_nulls(rows.len());
                }
                for row in rows {
                    self.extra.append_option(extra_json(page, &row.extra));
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
                    schema::Kind::$kind != schema::Kind::Id,
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
fn extra_json(page: &str, extra: &Extra) -> Option<String> {
    if extra.is_empty() {
        return None;
    }
    let members = extra.iter();
    let members = members.map(|(key, value)| (key.text(page), json::rewritten(&value.text(page))));
    Some(json::object(members))
}

/// A column of lists of attributes.
struct AttributeLists {
    attributes: UserAttribute,
    lengths: Vec<usize>,
    present: NullBufferBuilder,
}

impl AttributeLists {
    #[inline]
    fn append(&mut self, page: &str, list: Option<&[rows::UserAttribute]>) {
        self.present.append(list.is_some());
        let list = list.unwrap_or_default();
        self.lengths.push(list.len());
        if !list.is_empty() {
            self.attributes
                .extend(page, &list.iter().collect::<Vec<_>>());
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
