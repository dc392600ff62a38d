//! One instant of a world: its lists, which rows they have, and how these are written.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::WorldError;
use super::changes::{Activity, Changes, ListChanges};
use super::json_object::with_fields;
use super::rows::Rows;
use crate::chunks::Chunks;

/// A read-only view of one instant of a world. Cheap to copy; later changes of the world do not
/// show.
#[derive(Clone, Debug)]
pub struct View {
    pub(super) rows: Arc<Rows>,
    pub(super) changes: Arc<Changes>,
    /// The time by the world's clock, which decides what the hints show.
    pub(super) now: Instant,
}

impl View {
    /// Whether the other view is of the same instant, with no change in between. Views of copies of
    /// a world are the same until one of them is changed.
    pub fn same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rows, &other.rows) && Arc::ptr_eq(&self.changes, &other.changes)
    }

    /// The messages of a user, or all users.
    ///
    /// # Errors
    /// `NoUser`.
    pub fn list(&self, user: Option<u64>) -> Result<List<'_>, WorldError> {
        match user {
            None => Ok(self.users()),
            Some(user_id) => {
                let index = self.users().row(user_id);
                let index = index.ok_or(WorldError::NoUser { user_id })?;
                Ok(self.messages(index))
            }
        }
    }

    /// All users.
    pub fn users(&self) -> List<'_> {
        self.list_of(None, Some(&self.changes.users))
    }

    /// The messages of the user in row `index`.
    pub(super) fn messages(&self, index: u64) -> List<'_> {
        let changes = self.changes.messages.get(&index);
        self.list_of(Some(index), changes.map(|messages| &messages.list))
    }

    /// A user or a message as the service sends it.
    ///
    /// # Errors
    /// `NoUser`, `NoMessage`.
    pub fn read(&self, user: Option<u64>, id: u64) -> Result<Bytes, WorldError> {
        let (list, row) = self.place(user, id)?;
        Ok(list.text(row))
    }

    /// The list and the row of an existing user or message.
    pub(super) fn place(&self, user: Option<u64>, id: u64) -> Result<(List<'_>, u64), WorldError> {
        let list = self.list(user)?;
        let row = list.row(id).ok_or(match user {
            None => WorldError::NoUser { user_id: id },
            Some(user_id) => WorldError::NoMessage {
                user_id,
                message_id: id,
            },
        })?;
        Ok((list, row))
    }

    fn list_of<'view>(
        &'view self,
        owner: Option<u64>,
        changes: Option<&'view ListChanges>,
    ) -> List<'view> {
        let length = self.rows.length(owner);
        List {
            view: self,
            owner,
            changes,
            end: length + changes.map_or(0, |changes| changes.added),
        }
    }
}

/// All users at one instant, or all messages of one user: the rows `0..end` without those that were
/// removed.
#[derive(Clone, Copy, Debug)]
pub struct List<'view> {
    view: &'view View,
    /// The row of the user whose messages these are.
    pub(super) owner: Option<u64>,
    changes: Option<&'view ListChanges>,
    pub(super) end: u64,
}

impl<'view> List<'view> {
    /// How many rows there are.
    pub fn total(self) -> u64 {
        self.end - self.changes.map_or(0, |changes| changes.removed.len())
    }

    /// All ids, in order.
    pub fn ids(self) -> Vec<u64> {
        let rows = self.rows();
        rows.map(|row| self.view.rows.id(self.owner, row)).collect()
    }

    /// The id at a position.
    pub fn id_at(self, position: u64) -> Option<u64> {
        let row = self.row_at(position)?;
        Some(self.view.rows.id(self.owner, row))
    }

    /// The position of a row.
    pub fn position(self, id: u64) -> Option<u64> {
        let row = self.row(id)?;
        Some(row - self.removed_before(row))
    }

    /// The row at a position, as the service sends it.
    pub fn at(self, position: u64) -> Option<Bytes> {
        Some(self.text(self.row_at(position)?))
    }

    /// Adds up to `limit` rows from `offset` on, with commas between them.
    pub fn write(self, offset: u64, limit: u64, out: &mut Chunks) {
        let (mut position, end) = (offset, self.total().min(offset.saturating_add(limit)));
        let mut reached = None;
        while position < end
            && let Some(start) = self.row_at(position)
        {
            if position > offset {
                out.push(Bytes::from_static(b","));
            }
            let run = start..self.run_end(start, end - position);
            if run.is_empty() {
                out.push(self.text(start));
                position += 1;
                continue;
            }
            let (rows, block) = reached
                .take_if(|(rows, _): &mut (Range<u64>, _)| rows.contains(&run.start))
                .unwrap_or_else(|| self.view.rows.block(self.owner, run.clone()));
            let stop = run.end.min(rows.end);
            out.push(block.rows(run.start - rows.start..stop - rows.start));
            position += stop - run.start;
            reached = Some((rows, block));
        }
    }

    /// All rows, in order.
    pub(super) fn rows(self) -> impl Iterator<Item = u64> {
        let removed = self.changes.map(|changes| &changes.removed);
        let is_left = move |row: &u64| removed.is_none_or(|removed| !removed.contains(*row as u32));
        (0..self.end).filter(is_left)
    }

    /// The text of a row.
    pub(super) fn text(self, row: u64) -> Bytes {
        let messages = match self.owner {
            None => self.view.changes.messages.get(&row),
            Some(_) => None,
        };
        let activity =
            messages.map_or_else(Activity::default, |changes| changes.activity(self.view.now));
        let text = self.view.rows.text(self.owner, row, activity);
        match self.changes.and_then(|changes| changes.fields.get(&row)) {
            Some(fields) => Bytes::from(with_fields(&text, fields)),
            None => text,
        }
    }

    /// The row with this id.
    fn row(self, id: u64) -> Option<u64> {
        let row = self.view.rows.row(self.owner, id)?;
        let is_removed = |changes: &ListChanges| changes.removed.contains(row as u32);
        (row < self.end && !self.changes.is_some_and(is_removed)).then_some(row)
    }

    /// The row at a position.
    fn row_at(self, position: u64) -> Option<u64> {
        let removed = self.changes.map(|changes| &changes.removed);
        let Some(removed) = removed.filter(|removed| !removed.is_empty()) else {
            return (position < self.end).then_some(position);
        };
        // How many removed rows come before it.
        let (mut low, mut high) = (0, removed.len() as u32);
        while low < high {
            let middle = low.midpoint(high);
            let row = removed.select(middle).map_or(0, u64::from);
            if row - u64::from(middle) <= position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let row = position + u64::from(low);
        (row < self.end).then_some(row)
    }

    fn removed_before(self, row: u64) -> u64 {
        self.changes
            .map_or(0, |changes| changes.removed.rank(row as u32))
    }

    /// Where a run of at most `limit` unchanged consecutive rows ends; `start` if that row is changed.
    fn run_end(self, start: u64, limit: u64) -> u64 {
        let end = self.end.min(start.saturating_add(limit));
        let Some(changes) = self.changes else {
            return end;
        };
        let removed = changes.removed.range(start as u32..end as u32).next();
        let end = removed.map_or(end, u64::from);
        let edited = changes.fields.range(start..end).next();
        let end = edited.map_or(end, |(row, _)| *row);
        if self.owner.is_some() {
            return end;
        }
        let mut active = self.view.changes.messages.range(start..end);
        let active = active.find(|(_, messages)| messages.moves_hints());
        active.map_or(end, |(row, _)| *row)
    }
}
