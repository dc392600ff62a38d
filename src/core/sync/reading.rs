//! Reads the list of users and, concurrently, message lists, as events.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;

use super::events::{Event, Rows};
use super::growing_end::{GrowingEnd, Grown, Step};
use super::known::{Cursor, GoingOn, HalfRead};
use super::list_shape::ListShape;
use super::plan::{Approach, Plan};
use super::progress::ProgressCounters;
use crate::core::api::List;
use crate::core::budget::Budget;
use crate::core::client::Client;
use crate::core::decode::page::Row;
use crate::core::error::{Error, ErrorKind};
use crate::core::list_state::{Hints, Kind, ListRow, ListState, ListedUser, requestable_id};
use crate::core::prefetch::{Mapped, Outlet, Sink};
use crate::core::report::{Certificate, WalkReport};
use crate::core::timestamp::Timestamp;
use crate::core::walk::crawl::{MOST_SIDE_BY_SIDE, is_gone};
use crate::core::walk::unread::UnreadLists;
use crate::core::walk::{SharedReport, WalkSettings, WalkedPage, resume_into, says_past_end};

/// Every page has a checkpoint.
const RESUMABLE: WalkSettings = WalkSettings {
    checkpoints: true,
    ..WalkSettings::WHOLE
};

/// What all parts of the reading share.
struct Context {
    client: Client,
    budget: Budget,
    plan: Mutex<Plan>,
    counters: Arc<ProgressCounters>,
    outlet: Outlet<Event>,
    unread: UnreadLists,
}

impl Context {
    fn plan<R>(&self, ask: impl FnOnce(&mut Plan) -> R) -> R {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = ask(&mut plan);
        self.counters.set_lists(plan.lists());
        answer
    }

    fn now(&self) -> Timestamp {
        Timestamp::by(self.client.clock())
    }
}

/// Reads all users, and the messages of all users whose lists are not done.
pub async fn read_all(
    client: Client,
    plan: Plan,
    counters: Arc<ProgressCounters>,
    outlet: Outlet<Event>,
) -> Result<(), Error> {
    let side_by_side = client.options().max_concurrency.clamp(1, MOST_SIDE_BY_SIDE);
    let context = Context {
        budget: client.budget(),
        client,
        plan: Mutex::new(plan),
        counters,
        outlet,
        unread: UnreadLists::default(),
    };
    let (queue, waiting) = mpsc::unbounded_channel();
    let find = find_users(&context, queue);
    let read = stream::unfold(waiting, async |mut waiting| {
        let user: ListedUser = waiting.recv().await?;
        Some((user, waiting))
    })
    .map(|user| read_list(&context, user))
    .buffer_unordered(side_by_side)
    .try_for_each(async |()| Ok(()));
    tokio::try_join!(find, read)?;
    context.unread.end()
}

/// Queues every user in the plan's order; it does not matter if the queue has no reader any more.
async fn find_users(
    context: &Context,
    queue: mpsc::UnboundedSender<ListedUser>,
) -> Result<(), Error> {
    let put = |user| {
        let _ = queue.send(user);
    };
    context.plan(Plan::half_read).into_iter().for_each(put);
    context.plan(Plan::unread).into_iter().for_each(put);
    match context.plan(Plan::take_users) {
        Some(users) => users
            .into_iter()
            .filter(|user| context.plan(|plan| plan.see(*user)))
            .for_each(put),
        None => sweep_users(context, &put).await?,
    }
    context.counters.set_users_known();
    context.plan(Plan::rest).into_iter().for_each(put);
    Ok(())
}

async fn sweep_users(context: &Context, put: &(impl Fn(ListedUser) + Sync)) -> Result<(), Error> {
    let see = |user: ListedUser| {
        if context.plan(|plan| plan.see(user)) {
            put(user);
        }
    };
    let half_read = context.plan(Plan::take_users_half_read);
    let going_on = half_read.and_then(HalfRead::go_on);
    // Users committed before are not shown again.
    for id in going_on.iter().flat_map(|going_on| &going_on.resume.held) {
        if let Some(user_id) = i64::try_from(id).ok().and(Some(id.into())) {
            see(ListedUser {
                user_id,
                hints: None,
            });
        }
    }
    let report = SharedReport::new(WalkReport::not_read_yet());
    let convert = |page: WalkedPage| {
        context.counters.set_users_total(page.total);
        note_page_rows(&context.counters, page.limit, page.rows.len());
        for row in &page.rows {
            if let Some(user_id) = requestable_id(row) {
                see(ListedUser {
                    user_id,
                    hints: Some(Hints::of(row)),
                });
            }
        }
        let cursor = page
            .checkpoint
            .and_then(|walk| Cursor::new(*walk, ListShape::default(), None).to_text())
            .map(|cursor| (cursor, report.get().started_at));
        Event::Users(Rows {
            user_id: None,
            rows: page.rows,
            cursor,
        })
    };
    let (client, budget, sink) = (&context.client, &context.budget, &context.outlet);
    let sink = Mapped { sink, convert };
    let from = going_on.map(|going_on| going_on.resume);
    resume_into(client, List::Users, RESUMABLE, from, budget, &report, &sink).await?;
    let report = Box::new(report.get());
    context.outlet.put(Event::UsersEnded(report)).await;
    Ok(())
}

/// A full page shows how many rows the service returns at most.
fn note_page_rows(counters: &ProgressCounters, limit: Option<i64>, received: usize) {
    if let Some(limit) = limit.and_then(|limit| u64::try_from(limit).ok())
        && limit == received as u64
    {
        counters.note_page_rows(limit);
    }
}

/// A list being read.
struct ListReading<'a> {
    context: &'a Context,
    user: ListedUser,
    hints: Hints,
    report: SharedReport,
    /// Requests sent at the growing end, and below, when the first was sent.
    end_requests: u64,
    began: Option<Timestamp>,
}

async fn read_list(context: &Context, user: ListedUser) -> Result<(), Error> {
    let page_rows = context.counters.page_rows();
    let approach = context.plan(|plan| plan.approach(user.id(), page_rows));
    let mut reading = ListReading {
        context,
        user,
        hints: user.hints.unwrap_or_default(),
        report: SharedReport::new(WalkReport::not_read_yet()),
        end_requests: 0,
        began: None,
    };
    let read = match approach {
        Approach::Whole => reading.sweep(None).await,
        Approach::GoOn(going_on) => reading.sweep(Some(*going_on)).await,
        Approach::GrowingEnd(end) => match reading.grow(*end).await {
            Ok(None) => reading.sweep(None).await,
            other => other,
        },
    };
    let row = match read {
        Ok(Some(row)) => row,
        // There is no reader any more.
        Ok(None) => return Ok(()),
        Err(error) if error.status() == Some(404) => match reading.not_found().await {
            Ok(row) => row,
            Err(error) => reading.give_up(error).await?,
        },
        Err(error) => reading.give_up(error).await?,
    };
    if row.state.kind != Kind::Unread {
        context.unread.note_read();
    }
    context.outlet.put(Event::ListEnded(Box::new(row))).await;
    Ok(())
}

impl ListReading<'_> {
    /// Reads the growing end; `None` if that does not show the whole list.
    async fn grow(&mut self, mut end: GrowingEnd) -> Result<Option<ListRow>, Error> {
        let context = self.context;
        let user_id = self.user.user_id;
        let began = *self.began.insert(context.now());
        loop {
            let (offset, limit) = end.request();
            let list = List::Messages { user_id };
            let read = context.client.page(list, offset, limit, &context.budget);
            let read = match read.await {
                Ok(read) => read,
                // The list may have ended before the offset: a sweep will tell.
                Err(error) if (offset > 0 && says_past_end(&error)) || is_too_large(&error) => {
                    self.end_requests += error.attempts.len() as u64;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            self.end_requests += read.sent.attempts.len() as u64;
            note_page_rows(&context.counters, read.value.limit, read.value.rows.len());
            let repeated = end.repeated();
            let step = end.take(&read.value);
            let rows: Vec<Row> = read.value.rows.into_iter().skip(repeated).collect();
            if !rows.is_empty() {
                let rows = Rows {
                    user_id: Some(self.user.id()),
                    rows,
                    cursor: None,
                };
                context.outlet.put(Event::Messages(rows)).await;
            }
            match step {
                Step::Request => {}
                Step::Misfit(_) => return Ok(None),
                Step::Fits(grown) => return Ok(Some(self.grown(end.held(), *grown, began))),
            }
        }
    }

    fn grown(&self, held: &ListState, grown: Grown, began: Timestamp) -> ListRow {
        ListRow {
            user_id: self.user.id(),
            state: ListState {
                rows: grown.rows,
                total: i64::try_from(grown.rows).ok(),
                certificate: Certificate::Counted,
                started_at: Some(began),
                ended_at: Some(self.context.now()),
                kind: Kind::End,
                swept_at: held.swept_at,
                grows: held.grows,
                first_ids: grown.first_ids,
                last_ids: grown.last_ids,
                unread_from: grown.unread_from,
                hints: self.user.hints.unwrap_or(held.hints),
            },
            requests: self.end_requests,
            reason: None,
        }
    }

    /// Reads the list to its end; `None` if there is no reader any more.
    async fn sweep(&mut self, going_on: Option<GoingOn>) -> Result<Option<ListRow>, Error> {
        let context = self.context;
        let (resume, shape) = match going_on {
            None => (None, ListShape::default()),
            Some(going_on) => {
                self.hints = self.user.hints.or(going_on.hints).unwrap_or_default();
                (Some(going_on.resume), going_on.shape)
            }
        };
        let shape = Mutex::new(shape);
        let (user_id, report, hints) = (self.user.id(), self.report.clone(), self.hints);
        let convert = |page: WalkedPage| {
            note_page_rows(&context.counters, page.limit, page.rows.len());
            let mut shape = shape.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(offset) = page.offset.and_then(|offset| u64::try_from(offset).ok()) {
                shape.take(offset, &page.rows);
            }
            let cursor = page
                .checkpoint
                .and_then(|walk| Cursor::new(*walk, shape.clone(), Some(hints)).to_text())
                .map(|cursor| (cursor, report.get().started_at));
            Event::Messages(Rows {
                user_id: Some(user_id),
                rows: page.rows,
                cursor,
            })
        };
        let list = List::Messages {
            user_id: self.user.user_id,
        };
        let (client, budget, sink) = (&context.client, &context.budget, &context.outlet);
        let sink = Mapped { sink, convert };
        resume_into(client, list, RESUMABLE, resume, budget, &self.report, &sink).await?;
        let shape = shape.into_inner().unwrap_or_else(PoisonError::into_inner);
        let report = self.report.get();
        if report.ended_at.is_none() {
            return Ok(None);
        }
        let mut row = self.row(&report, Kind::Whole);
        row.state.grows = shape.grows();
        row.state.first_ids = shape.first_ids();
        row.state.last_ids = shape.last_ids();
        row.state.unread_from = shape.unread_from(report.distinct, row.state.grows);
        Ok(Some(row))
    }

    /// Gives up an unreadable list: it stays as it was, and is read first in the next run.
    async fn give_up(&self, error: Error) -> Result<ListRow, Error> {
        let context = self.context;
        let again = context.plan(|plan| plan.was_unread(self.user.id()));
        let given_up = context
            .unread
            .give_up(&context.client, &context.budget, error, again);
        let reason = given_up.await?;
        let mut report = self.report.get();
        report.doubt(reason);
        report.end(context.now());
        Ok(self.row(&report, Kind::Unread))
    }

    /// The messages were not found: either the user is gone, or the list is in doubt.
    async fn not_found(&self) -> Result<ListRow, Error> {
        let context = self.context;
        let gone = is_gone(&context.client, self.user.user_id, &context.budget).await?;
        let mut report = self.report.get();
        let (kind, reason) = match gone {
            true => (
                Kind::Gone,
                "the user was gone when the messages were requested",
            ),
            false => (
                Kind::Whole,
                "its messages were not found (404), although the user exists",
            ),
        };
        report.doubt(reason.to_owned());
        report.end(context.now());
        Ok(self.row(&report, kind))
    }

    fn row(&self, report: &WalkReport, kind: Kind) -> ListRow {
        let mut state = ListState::of(report, kind, self.hints);
        state.started_at = self.began.or(state.started_at);
        ListRow {
            user_id: self.user.id(),
            state,
            requests: self.end_requests + report.requests,
            reason: report.reason.clone(),
        }
    }
}

fn is_too_large(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::ResponseTooLarge { .. })
}
