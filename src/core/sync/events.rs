//! What a run of the mirror's reading finds.

use super::known::{Audit, Cursor};
use crate::api::Resource;
use crate::decode::page::Row;
use crate::list_state::ListRow;
use crate::report::WalkReport;
use crate::timestamp::Timestamp;

/// What a run finds, in an order that can be committed: a list's end follows its rows.
#[derive(Debug)]
pub enum Event {
    Users(Rows),
    UsersEnded(Box<WalkReport>),
    /// A quick run has drawn its sample.
    AuditDrawn(Audit),
    Messages(Rows),
    ListEnded(Box<ListRow>),
    /// A row that was fetched by its id.
    RowFound {
        user_id: Option<i64>,
        row: Row,
    },
    /// No row has that id any more.
    RowGone(RowKey),
}

/// The rows of one response.
#[derive(Debug)]
pub struct Rows {
    /// The user whose messages these are; `None` for users.
    pub user_id: Option<i64>,
    pub rows: Vec<Row>,
    /// Where to resume the list after these rows.
    pub cursor: Option<Box<Cursor>>,
    /// The list as it is held with these rows.
    pub held: Held,
}

/// How much of a list that is being read is held.
#[derive(Debug, Clone, Copy, Default)]
pub struct Held {
    pub rows: u64,
    pub total: Option<i64>,
    pub checked_at: Option<Timestamp>,
}

impl Held {
    pub fn by(report: &WalkReport) -> Self {
        Self {
            rows: report.distinct,
            total: report.total_last,
            checked_at: report.started_at,
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
