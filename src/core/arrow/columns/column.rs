//! The types of columns.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Int32Builder, Int64Builder, ListBuilder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, StringArray};
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};
use hashbrown::HashMap;

use crate::timestamp::Timestamp;

const UTC: &str = "UTC";
/// Up to this many values are compared one by one, which is faster than hashing.
const FEW: usize = 4;

/// One column of a schema, or several that belong together.
pub trait Column: Sized {
    fn empty() -> Self;

    /// Adds what the schema says of it.
    fn describe(name: &str, nullable: bool, fields: &mut Vec<Field>);

    /// Adds what was collected.
    fn finish_into(&mut self, arrays: &mut Vec<ArrayRef>) -> Result<(), ArrowError>;
}

/// Values that can be gone through more than once.
pub trait Several<T>: ExactSizeIterator<Item = T> + Clone {}

impl<T, I: ExactSizeIterator<Item = T> + Clone> Several<T> for I {}

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
    ListBuilder<Int64Builder>: DataType::List(Arc::new(id_item())), Self::new(Int64Builder::new()).with_field(id_item()),
        |_array| Self::empty();
}

/// Bytes for texts that are somewhat longer.
pub(super) fn with_margin(bytes: usize) -> usize {
    bytes + bytes / 8
}

/// Texts of few values.
#[derive(Default)]
pub struct Categories {
    keys: Int32Builder,
    /// In the order of their keys.
    values: Vec<String>,
    /// The keys of the values, once they are too many to go through.
    known: HashMap<String, i32>,
    overflow: Option<ArrowError>,
}

impl Categories {
    /// More values than the dictionary can hold fail at the end.
    pub fn append(&mut self, text: &str) {
        let few = self.values.iter().take(FEW);
        let key = match few.zip(0..).find(|(value, _)| *value == text) {
            Some((_, key)) => Some(key),
            None => self.known.get(text).copied(),
        };
        let key = key.unwrap_or_else(|| self.add(text));
        self.keys.append_value(key);
    }

    fn add(&mut self, text: &str) -> i32 {
        let key = i32::try_from(self.values.len()).unwrap_or_else(|_| {
            self.overflow = Some(ArrowError::DictionaryKeyOverflowError);
            0
        });
        if self.values.len() >= FEW {
            self.known.insert(text.to_owned(), key);
        }
        self.values.push(text.to_owned());
        key
    }

    pub fn append_null(&mut self) {
        self.keys.append_null();
    }
}

impl Column for Categories {
    fn empty() -> Self {
        Self::default()
    }

    fn describe(name: &str, nullable: bool, fields: &mut Vec<Field>) {
        let data_type = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        fields.push(Field::new(name, data_type, nullable));
    }

    fn finish_into(&mut self, arrays: &mut Vec<ArrayRef>) -> Result<(), ArrowError> {
        let keys = self.keys.finish();
        self.keys = Int32Builder::with_capacity(keys.len());
        self.known.clear();
        let values = StringArray::from_iter_values(self.values.drain(..));
        arrays.push(Arc::new(DictionaryArray::try_new(keys, Arc::new(values))?));
        self.overflow.take().map_or(Ok(()), Err)
    }
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
