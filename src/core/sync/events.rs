//! What a run of the mirror's reading finds.

use super::known::{Audit, HalfRead};
use crate::api::Resource;
use crate::decode::page::Row;
use crate::list_state::ListRow;
use crate::report::WalkReport;

/// What a run finds, in an order that can be committed: a list's end follows its rows.
#[derive(Debug)]
pub enum Event {
    Rows(ReadRows),
    /// No row has that id any more.
    RowGone(RowKey),
    ListEnded(Box<ListProgress>),
    UsersEnded(Box<WalkReport>),
    /// A quick run has drawn its sample.
    AuditDrawn(Audit),
}

/// The rows of one response.
#[derive(Debug)]
pub struct ReadRows {
    /// The user whose messages these are; `None` for a page of users.
    pub user_id: Option<i64>,
    pub rows: Vec<Row>,
    /// The list as it is held with these rows, if it can be resumed after them.
    pub progress: Option<Box<ListProgress>>,
}

/// A list as far as it is read, and where to resume it, if it can be.
#[derive(Debug)]
pub struct ListProgress {
    pub list: ListRow,
    pub half_read: Option<HalfRead>,
}

impl Event {
    /// How many messages it brings.
    pub fn messages(&self) -> usize {
        match self {
            Self::Rows(page) if page.user_id.is_some() => page.rows.len(),
            _ => 0,
        }
    }
}

/// The key of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey {
    pub resource: Resource,
    /// The user whose message it is; for a user, their own id or `None`.
    pub user_id: Option<i64>,
    pub id: i64,
}
