//! Rows as Arrow record batches, under fixed schemas.

mod column;
mod fields;
mod read_back;
mod rows;
mod sync_tables;

use arrow_schema::ArrowError;

pub use self::read_back::{Rows, StoredList};
pub use self::rows::{MESSAGES, MessageColumns, USERS, UserColumns};
pub use self::sync_tables::{GONE, GoneColumns, LISTS, ListColumns, REJECTS, RejectColumns};
use crate::error::{Error, ErrorKind};

/// Converts the columns' own error, which no response can cause, to the core's.
pub fn columns_failure(error: ArrowError) -> Error {
    Error::new(ErrorKind::Transport(format!(
        "the rows cannot be put into columns: {error}"
    )))
}

/// A struct of columns, with their schema: from the name of each column, the type of its builder,
/// and whether it is nullable.
macro_rules! table {
    (
        $(#[$schema_doc:meta])* $schema:ident;
        $(#[$doc:meta])* $name:ident {
            $($column:ident: $builder:ty $(, $nullable:ident)?;)*
        }
    ) => {
        $(#[$schema_doc])*
        pub static $schema: LazyLock<SchemaRef> = LazyLock::new(|| {
            let mut fields = Vec::new();
            $(
                let nullable = !stringify!($($nullable)?).is_empty();
                <$builder as Column>::describe(stringify!($column), nullable, &mut fields);
            )*
            Arc::new(Schema::new(fields))
        });

        $(#[$doc])*
        pub struct $name {
            $($column: $builder,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($column: <$builder as Column>::empty(),)* }
            }
        }

        impl $name {
            pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
                let mut arrays = Vec::new();
                $(self.$column.finish_into(&mut arrays)?;)*
                RecordBatch::try_new(Arc::clone(&$schema), arrays)
            }
        }
    };
}
use table;
