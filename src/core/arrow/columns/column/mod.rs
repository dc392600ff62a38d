//! The types of columns.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Int64Builder, ListBuilder, StringBuilder,
    StringDictionaryBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};

use crate::timestamp::Timestamp;

const UTC: &str = "UTC";
/// Texts of few values.
pub type Categories = StringDictionaryBuilder<Int32Type>;

/// One column of a schema, or several that belong together.
pub trait Column: Sized {
    fn empty() -> Self;

    /// Adds what the schema says of it.
    fn describe(name: &str, nullable: bool, fields: &mut Vec<Field>);

    /// Adds what was collected.
    fn finish_into(&mut self, arrays: &mut Vec<ArrayRef>) -> Result<(), ArrowError>;
}

macro_rules! columns {
    ($($builder:ty: $data_type:expr, $empty:expr, |$finished:ident| $next:expr;)*) => { $(
        impl Column for $builder {
            fn empty() -> Self {
                $empty
            }

            fn describe(name: &str, nullable: bool, fields: &mut Vec<Field>) {
                fields.push(Field::new(name, $data_type, nullable));
            }

            // The next batch gets about the room that this one needed, because growing it copies.
            fn finish_into(&mut self, arrays: &mut Vec<ArrayRef>) -> Result<(), ArrowError> {
                let $finished = self.finish();
                *self = $next;
                arrays.push(Arc::new($finished));
                Ok(())
            }
        }
    )* };
}

columns! {
    Int64Builder: DataType::Int64, Self::new(), |array| Self::with_capacity(array.len());
    StringBuilder: DataType::Utf8, Self::new(),
        |array| Self::with_capacity(array.len(), with_margin(array.value_data().len()));
    BooleanBuilder: DataType::Boolean, Self::new(), |array| Self::with_capacity(array.len());
    BinaryBuilder: DataType::Binary, Self::new(),
        |array| Self::with_capacity(array.len(), with_margin(array.value_data().len()));
    TimestampMicrosecondBuilder: instant(), Self::new().with_timezone(UTC),
        |array| Self::with_capacity(array.len()).with_timezone(UTC);
    Categories: DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        Self::new(), |_array| Self::new();
    ListBuilder<Int64Builder>: DataType::List(Arc::new(id_item())), Self::new(Int64Builder::new()).with_field(id_item()),
        |_array| Self::empty();
}

/// Bytes for texts that are somewhat longer.
fn with_margin(bytes: usize) -> usize {
    bytes + bytes / 8
}

pub fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
}

pub fn id_item() -> Field {
    Field::new("item", DataType::Int64, true)
}

pub fn append_instant(column: &mut TimestampMicrosecondBuilder, instant: Option<Timestamp>) {
    column.append_option(instant.map(Timestamp::microseconds));
}
