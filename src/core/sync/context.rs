//! What all parts of a run's reading share, and what they find.

use std::mem::take;
use std::sync::{Arc, Mutex};

use super::known::{Audit, HalfRead};
use super::plan::SharedPlan;
use crate::api::{List, RowKey};
use crate::budget::{Budget, RunBudget};
use crate::client::{Client, Sent};
use crate::decode::page::Row;
use crate::error::Error;
use crate::list_state::{Kind, ListRow, ListState};
use crate::lock;
use crate::prefetch::{Mapped, Outlet};
use crate::report::WalkReport;
use crate::timestamp::Timestamp;
use crate::walk::unread::UnreadLists;
use crate::walk::{Resume, SharedReport, WalkSettings, WalkedPage, walk_into};

/// Every page has a checkpoint.
const RESUMABLE: WalkSettings = WalkSettings {
    checkpoints: true,
    ends_unread: true,
    ..WalkSettings::WHOLE
};

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

/// What all parts of the reading share.
pub struct Context {
    pub client: Client,
    pub budget: Budget,
    pub run: Arc<RunBudget>,
    pub plan: SharedPlan,
    pub outlet: Outlet<Event>,
    pub unread: UnreadLists,
}

impl Context {
    pub fn now(&self) -> Timestamp {
        Timestamp::by(self.client.clock())
    }

    /// A full page that has fewer rows than requested shows how many the service returns at most.
    pub fn note_page_rows(&self, sent: &Sent, limit: Option<i64>, received: usize) {
        if let Some(limit) = limit.and_then(|limit| u64::try_from(limit).ok())
            && limit == received as u64
            && sent.requested_rows().is_some_and(|rows| limit < rows)
        {
            self.plan.with(|plan| plan.note_page_rows(limit));
        }
    }

    /// Reads a list from where it was left to its end, and shows each page to `see`; notes in `so_far`
    /// where to resume it. The report has no end if there is no reader any more.
    pub async fn sweep(
        &self,
        list: List,
        so_far: &Mutex<HalfRead>,
        report: &SharedReport,
        see: impl Fn(&mut WalkedPage) + Send + Sync,
    ) -> Result<(), Error> {
        let user_id = match list {
            List::Users => None,
            List::Messages { user_id } => Some(user_id.signed()),
        };
        let resume = {
            let mut so_far = lock(so_far);
            let held = take(&mut so_far.held);
            let walk = so_far.walk.clone();
            walk.map(|checkpoint| Resume { checkpoint, held })
        };
        let convert = |mut page: WalkedPage| {
            self.note_page_rows(&page.sent, page.limit, page.rows.len());
            see(&mut page);
            let mut so_far = lock(so_far);
            if let Some(offset) = page.offset.and_then(|offset| u64::try_from(offset).ok())
                && user_id.is_some()
            {
                so_far.shape.take(offset, &page.rows);
            }
            let progress = page.checkpoint.map(|walk| {
                so_far.walk = Some(*walk);
                let mut report = report.get();
                report.doubt("it is not read to its end yet".to_owned());
                let state = ListState::of(&report, Kind::Partial, so_far.hints);
                Box::new(ListProgress {
                    list: ListRow::of(user_id.unwrap_or_default(), &report, state),
                    half_read: Some(so_far.clone()),
                })
            });
            Event::Rows(ReadRows {
                user_id,
                rows: page.rows,
                progress,
            })
        };
        let (client, budget, sink) = (&self.client, &self.budget, &self.outlet);
        let sink = Mapped { sink, convert };
        walk_into(
            client,
            list,
            RESUMABLE,
            resume.into(),
            budget,
            report,
            &sink,
        )
        .await
    }
}
