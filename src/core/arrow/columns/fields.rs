//! A field of each kind as a column, and the columns of each kind of object.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, PrimitiveBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};

use super::column::{Categories, Column, Several};
use super::texts::Texts;
use crate::decode::json;
use crate::decode::rows::{self, Extra, Form, Kind, kind};
use crate::schema::schema;
use crate::timestamp::Timestamp;

/// A kind of field as a column.
trait KindColumn: Kind {
    type Column: Column;
    const NULLABLE: bool = true;

    /// Appends what several rows hold. A page's rows at once took 690 instructions a message for its
    /// columns; one row after the other took 1,050.
    fn extend<'r, F: Form + 'r>(
        column: &mut Self::Column,
        source: &F::Source,
        held: impl Several<&'r Self::Of<F>>,
    ) where
        Self::Of<F>: 'r;
}

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
    Text: Texts, |column, source, texts| column.extend::<F>(source, texts);
    Label: Texts, |column, source, texts| column.extend::<F>(source, texts);
    Category: Categories, |column, source, texts| {
        for text in texts {
            match text {
                Some(text) => column.append(&F::text(source, text)),
                None => column.append_null(),
            }
        }
    };
    Boolean: BooleanBuilder, |column, _source, held| {
        // Most pages have one value, or two in long runs.
        let held: Vec<Option<bool>> = held.copied().collect();
        for run in held.chunk_by(PartialEq::eq) {
            match run.first() {
                Some(Some(truth)) => column.append_n(run.len(), *truth),
                _ => column.append_nulls(run.len()),
            }
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
            pub fn extend<F: Form>(&mut self, source: &F::Source, rows: &[&rows::$name<F>]) {
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
        (
            F::text(source, key),
            json::rewritten(&F::text(source, json)),
        )
    });
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
