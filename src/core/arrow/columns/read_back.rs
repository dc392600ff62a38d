//! What the mirror passes back: rows of its tables, read by column name.

use std::any::type_name;

use arrow_array::{
    Array, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::ArrowError;

use crate::api::{Natural, Resource};
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
    fn column<A: Array + Clone + 'static>(&self, name: &str) -> Result<A, ArrowError> {
        let column = self
            .0
            .column_by_name(name)
            .ok_or_else(|| ArrowError::SchemaError(format!("there is no column {name}")))?;
        column.as_any().downcast_ref().cloned().ok_or_else(|| {
            ArrowError::SchemaError(format!(
                "the column {name} is {}, not {}",
                column.data_type(),
                type_name::<A>()
            ))
        })
    }

    fn numbers(&self, name: &str) -> Result<Numbers, ArrowError> {
        self.column(name).map(Numbers)
    }

    fn texts(&self, name: &str) -> Result<Texts, ArrowError> {
        self.column(name).map(Texts)
    }

    fn flags(&self, name: &str) -> Result<BooleanArray, ArrowError> {
        self.column(name)
    }

    /// Whatever the column's time zone, its numbers count from the epoch in UTC.
    fn instants(&self, name: &str) -> Result<Instants, ArrowError> {
        self.column(name).map(Instants)
    }

    /// The values of a numeric column.
    pub fn ids(&self, name: &str) -> Result<Vec<Option<i64>>, ArrowError> {
        Ok(self.numbers(name)?.0.iter().collect())
    }

    /// The rows of `lists`.
    pub fn lists(&self) -> Result<Vec<StoredList>, ArrowError> {
        let (user_id, kind) = (self.numbers("user_id")?, self.texts("kind")?);
        let (checked_at, swept_at) = (self.instants("checked_at")?, self.instants("swept_at")?);
        let state = self.texts("state")?;
        let of_this_run = self.flags("of_this_run")?;
        let list = |row| {
            Some(StoredList {
                user_id: user_id.get(row)?,
                kind: kind.get(row).and_then(Kind::named).unwrap_or_default(),
                checked_at: checked_at.get(row),
                swept_at: swept_at.get(row),
                state: state.get(row).map(str::to_owned),
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
                user_id: Natural::new("id", id.get(row)?).ok()?,
                hints: Some(Hints {
                    updated_at: updated_at.get(row),
                    online_at: online_at.get(row),
                }),
            })
        };
        Ok((0..self.0.num_rows()).filter_map(user).collect())
    }

    /// Rows by resource, user and id; an unknown resource is an error.
    pub fn keys(&self) -> Result<Vec<(Resource, Option<i64>, i64)>, ArrowError> {
        let (resource, user_id) = (self.texts("resource")?, self.numbers("user_id")?);
        let id = self.numbers("id")?;
        let key = |row| {
            let name = resource.get(row).unwrap_or_default();
            let resource = [Resource::Users, Resource::Messages]
                .into_iter()
                .find(|resource| resource.key() == name)
                .ok_or_else(|| ArrowError::SchemaError(format!("no such resource: {name:?}")))?;
            Ok(id.get(row).map(|id| (resource, user_id.get(row), id)))
        };
        (0..self.0.num_rows())
            .filter_map(|row| key(row).transpose())
            .collect()
    }
}

struct Numbers(Int64Array);

impl Numbers {
    fn get(&self, row: usize) -> Option<i64> {
        self.0.is_valid(row).then(|| self.0.value(row))
    }
}

struct Texts(StringArray);

impl Texts {
    fn get(&self, row: usize) -> Option<&str> {
        self.0.is_valid(row).then(|| self.0.value(row))
    }
}

struct Instants(TimestampMicrosecondArray);

impl Instants {
    fn get(&self, row: usize) -> Option<Timestamp> {
        let microseconds = self.0.is_valid(row).then(|| self.0.value(row))?;
        Timestamp::from_microseconds(microseconds)
    }
}
