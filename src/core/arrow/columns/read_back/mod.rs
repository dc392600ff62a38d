//! What the mirror passes back: rows of its tables, read by column name.

#[cfg(test)]
mod tests;

use std::any::type_name;

use arrow_array::{
    Array, ArrayAccessor, BooleanArray, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::ArrowError;

use crate::api::{Natural, Resource, RowKey};
use crate::list_state::{Hints, Kind, ListedUser};
use crate::timestamp::Timestamp;

/// A batch of a table, in the types that DuckDB gives its columns.
pub struct Rows<'a>(pub &'a RecordBatch);

/// What the mirror stored of a list.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredList {
    pub user_id: i64,
    pub kind: Kind,
    pub checked_at: Option<Timestamp>,
    pub swept_at: Option<Timestamp>,
    pub state: Option<String>,
    /// The run that goes on has read it.
    pub of_this_run: bool,
}

impl Rows<'_> {
    fn column<A: Array + 'static>(&self, name: &str) -> Result<&A, ArrowError> {
        let column = self
            .0
            .column_by_name(name)
            .ok_or_else(|| ArrowError::SchemaError(format!("there is no column {name}")))?;
        column.as_any().downcast_ref().ok_or_else(|| {
            ArrowError::SchemaError(format!(
                "the column {name} is {}, not {}",
                column.data_type(),
                type_name::<A>()
            ))
        })
    }

    fn numbers(&self, name: &str) -> Result<&Int64Array, ArrowError> {
        self.column(name)
    }

    fn texts(&self, name: &str) -> Result<&StringArray, ArrowError> {
        self.column(name)
    }

    /// The moment in each row. Whatever the column's time zone, its numbers count from the epoch in
    /// UTC.
    fn instants(&self, name: &str) -> Result<impl Fn(usize) -> Option<Timestamp>, ArrowError> {
        let column: &TimestampMicrosecondArray = self.column(name)?;
        Ok(move |row| Timestamp::from_microseconds(at(column, row)?))
    }

    /// The values of a numeric column.
    pub fn ids(&self, name: &str) -> Result<Vec<Option<i64>>, ArrowError> {
        Ok(self.numbers(name)?.iter().collect())
    }

    /// The rows of `lists`.
    pub fn lists(&self) -> Result<Vec<StoredList>, ArrowError> {
        let (user_id, kind) = (self.numbers("user_id")?, self.texts("kind")?);
        let (checked_at, swept_at) = (self.instants("checked_at")?, self.instants("swept_at")?);
        let state = self.texts("state")?;
        let of_this_run: &BooleanArray = self.column("of_this_run")?;
        let list = |row| {
            Some(StoredList {
                user_id: at(user_id, row)?,
                kind: at(kind, row).and_then(Kind::named).unwrap_or_default(),
                checked_at: checked_at(row),
                swept_at: swept_at(row),
                state: at(state, row).map(str::to_owned),
                of_this_run: of_this_run.value(row),
            })
        };
        Ok((0..self.0.num_rows()).filter_map(list).collect())
    }

    /// Users with their hints, without those whose messages cannot be requested.
    pub fn users(&self) -> Result<Vec<ListedUser>, ArrowError> {
        let id = self.numbers("id")?;
        let updated_at = self.instants("updated_at")?;
        let online_at = self.instants("online_at")?;
        let user = |row| {
            Some(ListedUser {
                user_id: Natural::new("id", at(id, row)?).ok()?,
                hints: Some(Hints {
                    updated_at: updated_at(row),
                    online_at: online_at(row),
                }),
            })
        };
        Ok((0..self.0.num_rows()).filter_map(user).collect())
    }

    /// The keys of rows; an unknown resource is an error.
    pub fn keys(&self) -> Result<Vec<RowKey>, ArrowError> {
        let (resource, user_id) = (self.texts("resource")?, self.numbers("user_id")?);
        let id = self.numbers("id")?;
        let key = |row| {
            let name = at(resource, row).unwrap_or_default();
            let resource = [Resource::Users, Resource::Messages]
                .into_iter()
                .find(|resource| resource.key() == name)
                .ok_or_else(|| ArrowError::SchemaError(format!("no such resource: {name:?}")))?;
            Ok(at(id, row).map(|id| RowKey {
                resource,
                user_id: at(user_id, row),
                id,
            }))
        };
        (0..self.0.num_rows())
            .filter_map(|row| key(row).transpose())
            .collect()
    }
}

/// The value of a row; `None` if it is null.
fn at<A: ArrayAccessor>(column: A, row: usize) -> Option<A::Item> {
    column.is_valid(row).then(|| column.value(row))
}
