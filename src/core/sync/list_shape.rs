//! What a list's pages showed of its order: its ends, the end at which it grows, unread messages.

use serde::{Deserialize, Serialize};

use crate::decode::page::Row;
use crate::list_state::{ENDS, Ends, Grows};
use crate::timestamp::Timestamp;

/// The directions in which a sequence of values has gone.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Trend {
    rose: bool,
    fell: bool,
    unknown: bool,
    before: Option<i64>,
}

impl Trend {
    fn take(&mut self, value: Option<i64>) {
        match (self.before, value) {
            (Some(before), Some(value)) => {
                self.rose |= value > before;
                self.fell |= value < before;
            }
            (_, None) => self.unknown = true,
            (None, Some(_)) => {}
        }
        self.before = value;
    }

    fn grows(&self) -> Option<Grows> {
        match (self.rose, self.fell, self.unknown) {
            (true, false, false) => Some(Grows::End),
            (false, true, false) => Some(Grows::Start),
            _ => None,
        }
    }
}

/// Collected page by page; stored with the cursor.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ListShape {
    first: Vec<i64>,
    /// With their positions, ascending.
    last: Vec<(u64, i64)>,
    created: Trend,
    ids: Trend,
    at: Option<u64>,
    /// The lowest and the highest position of an unread message.
    unread: Option<(u64, u64)>,
}

impl ListShape {
    /// Takes new rows of a page that began at `offset`.
    pub fn take(&mut self, offset: u64, rows: &[Row]) {
        for row in rows {
            if let Some(id) = row.id {
                self.take_row(offset.saturating_add(row.index() as u64), id, row);
            }
        }
    }

    fn take_row(&mut self, position: u64, id: i64, row: &Row) {
        // In a row that cannot be read they are missing.
        let message = row.message().ok().map(|(_, message)| message);
        // A page from further back starts a separate sequence.
        if self.at.is_some_and(|at| position <= at) {
            (self.created.before, self.ids.before) = (None, None);
        }
        self.at = Some(position);
        let created_at = message.and_then(|message| message.created_at);
        self.created.take(created_at.map(Timestamp::microseconds));
        self.ids.take(Some(id));
        if let Ok(place) = usize::try_from(position)
            && place <= self.first.len()
            && place < ENDS
        {
            self.first.insert(place, id);
            self.first.truncate(ENDS);
        }
        let place = self.last.partition_point(|(held, _)| *held <= position);
        self.last.insert(place, (position, id));
        if self.last.len() > ENDS {
            self.last.remove(0);
        }
        let read_by = message.map(|message| [message.read_by_user, message.read_by_operator]);
        if read_by.is_some_and(|all| all.contains(&Some(false))) {
            let (lowest, highest) = self.unread.unwrap_or((position, position));
            self.unread = Some((lowest.min(position), highest.max(position)));
        }
    }

    /// At which end the list grows: by the messages' times or, if those do not tell, by their ids.
    pub fn grows(&self) -> Option<Grows> {
        self.created.grows().or_else(|| self.ids.grows())
    }

    /// The ends of a list of `rows` rows; `None` if its rows were not in order of age.
    pub fn ends(&self, rows: u64) -> Option<Ends> {
        let grows = self.grows()?;
        Some(Ends {
            grows,
            first_ids: self.first.clone(),
            last_ids: self.last_ids(),
            unread_from: self.unread_from(rows, grows),
        })
    }

    pub fn last_ids(&self) -> Vec<i64> {
        self.last.iter().map(|(_, id)| *id).collect()
    }

    /// The oldest unread message, as a position counted from the old end of a list of `rows` rows.
    pub fn unread_from(&self, rows: u64, grows: Grows) -> Option<u64> {
        let (lowest, highest) = self.unread?;
        match grows {
            Grows::Start => Some(rows.saturating_sub(1).saturating_sub(highest)),
            Grows::End => Some(lowest),
        }
    }
}
