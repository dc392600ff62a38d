//! What the mirror passes back: rows of its tables, read by column name.

use std::any::type_name;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::ArrowError;

use crate::api::{Natural, Resource};
use crate::list_state::{Grows, Hints, Kind, ListState, ListedUser};
use crate::page_digest::Digest;
use crate::report::Certificate;
use crate::timestamp::Timestamp;

/// A batch of a table, in the types that DuckDB gives its columns.
pub struct Rows<'a>(pub &'a RecordBatch);

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

    /// Whatever the column's time zone, its numbers count from the epoch in UTC.
    fn instants(&self, name: &str) -> Result<Instants, ArrowError> {
        self.column(name).map(Instants)
    }

    fn digests(&self, name: &str) -> Result<Digests, ArrowError> {
        self.column(name).map(Digests)
    }

    fn id_lists(&self, name: &str) -> Result<Vec<Vec<i64>>, ArrowError> {
        let column: ListArray = self.column(name)?;
        let ids = |list: Option<ArrayRef>| -> Vec<i64> {
            list.iter()
                .filter_map(|ids| ids.as_primitive_opt::<Int64Type>())
                .flat_map(|ids| ids.iter().flatten())
                .collect()
        };
        Ok(column.iter().map(ids).collect())
    }

    /// The values of a numeric column.
    pub fn ids(&self, name: &str) -> Result<Vec<Option<i64>>, ArrowError> {
        Ok(self.numbers(name)?.0.iter().collect())
    }

    /// The rows of `lists`, each with its user's id.
    pub fn lists(&self) -> Result<Vec<(i64, ListState)>, ArrowError> {
        let user_id = self.numbers("user_id")?;
        let (rows, total) = (self.numbers("rows")?, self.numbers("total")?);
        let (certificate, kind) = (self.texts("certificate")?, self.texts("kind")?);
        let (started_at, ended_at) = (self.instants("started_at")?, self.instants("ended_at")?);
        let (swept_at, grows) = (self.instants("swept_at")?, self.texts("grows")?);
        let (first_ids, last_ids) = (self.id_lists("first_ids")?, self.id_lists("last_ids")?);
        let unread_from = self.numbers("unread_from")?;
        let updated_at = self.instants("user_updated_at")?;
        let online_at = self.instants("user_online_at")?;
        let digest = self.digests("digest")?;
        let mut lists = Vec::with_capacity(self.0.num_rows());
        for (row, (first_ids, last_ids)) in first_ids.into_iter().zip(last_ids).enumerate() {
            let Some(user_id) = user_id.get(row) else {
                continue;
            };
            let state = ListState {
                rows: rows.natural(row).unwrap_or_default(),
                total: total.get(row),
                certificate: certificate
                    .get(row)
                    .and_then(Certificate::named)
                    .unwrap_or(Certificate::Uncertified),
                started_at: started_at.get(row),
                ended_at: ended_at.get(row),
                kind: kind.get(row).and_then(Kind::named).unwrap_or(Kind::Whole),
                swept_at: swept_at.get(row),
                grows: grows.get(row).and_then(Grows::named),
                first_ids,
                last_ids,
                unread_from: unread_from.natural(row),
                hints: Hints {
                    updated_at: updated_at.get(row),
                    online_at: online_at.get(row),
                },
                digest: digest.get(row),
            };
            lists.push((user_id, state));
        }
        Ok(lists)
    }

    /// The rows of `cursors`: the list's user, and the resume point.
    pub fn cursors(&self) -> Result<Vec<(Option<i64>, String)>, ArrowError> {
        let (user_id, checkpoint) = (self.numbers("user_id")?, self.texts("checkpoint")?);
        let cursor = |row| Some((user_id.get(row), checkpoint.get(row)?.to_owned()));
        Ok((0..self.0.num_rows()).filter_map(cursor).collect())
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

    fn natural(&self, row: usize) -> Option<u64> {
        self.get(row).and_then(|number| u64::try_from(number).ok())
    }
}

struct Texts(StringArray);

impl Texts {
    fn get(&self, row: usize) -> Option<&str> {
        self.0.is_valid(row).then(|| self.0.value(row))
    }
}

struct Digests(BinaryArray);

impl Digests {
    fn get(&self, row: usize) -> Option<Digest> {
        self.0
            .is_valid(row)
            .then(|| Digest::from_slice(self.0.value(row)))?
    }
}

struct Instants(TimestampMicrosecondArray);

impl Instants {
    fn get(&self, row: usize) -> Option<Timestamp> {
        let microseconds = self.0.is_valid(row).then(|| self.0.value(row))?;
        Timestamp::from_microseconds(microseconds)
    }
}
