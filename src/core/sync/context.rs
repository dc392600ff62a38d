//! What all parts of a run's reading share.

use std::sync::{Arc, Mutex, PoisonError};

use super::events::Event;
use super::plan::Plan;
use super::progress::ProgressCounters;
use crate::budget::{Budget, RunBudget};
use crate::client::{Client, Sent};
use crate::list_state::ListedUser;
use crate::prefetch::Outlet;
use crate::timestamp::Timestamp;
use crate::walk::WalkSettings;
use crate::walk::unread::UnreadLists;

/// Every page has a checkpoint.
pub const RESUMABLE: WalkSettings = WalkSettings {
    checkpoints: true,
    ends_unread: true,
    ..WalkSettings::WHOLE
};
/// What all parts of the reading share.
pub struct Context {
    pub client: Client,
    pub budget: Budget,
    pub run: Arc<RunBudget>,
    pub planned: Mutex<Plan>,
    pub counters: Arc<ProgressCounters>,
    pub outlet: Outlet<Event>,
    pub unread: UnreadLists,
}

/// A user whose list is next.
#[derive(Debug, Clone, Copy)]
pub struct Next {
    pub user: ListedUser,
    /// No sweep showed the user: their row is fetched first.
    pub fetched_first: bool,
}

impl Context {
    pub fn plan<R>(&self, ask: impl FnOnce(&mut Plan) -> R) -> R {
        let mut plan = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = ask(&mut plan);
        self.counters.set_lists(plan.lists());
        answer
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::by(self.client.clock())
    }
}

/// A full page that has fewer rows than requested shows how many the service returns at most.
pub fn note_page_rows(
    counters: &ProgressCounters,
    sent: &Sent,
    limit: Option<i64>,
    received: usize,
) {
    if let Some(limit) = limit.and_then(|limit| u64::try_from(limit).ok())
        && limit == received as u64
        && sent.requested_rows().is_some_and(|rows| limit < rows)
    {
        counters.note_page_rows(limit);
    }
}
