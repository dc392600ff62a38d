//! Reads the list of users and, concurrently, message lists, as events.

use std::future::ready;
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;

use super::context::{Context, Next, RESUMABLE, note_page_rows};
use super::events::{Event, Held, Rows};
use super::known::Cursor;
use super::list_reading::read_list;
use super::list_shape::ListShape;
use super::plan::Plan;
use super::progress::ProgressCounters;
use crate::api::List;
use crate::budget::RunBudget;
use crate::client::Client;
use crate::error::Error;
use crate::list_state::{Hints, ListedUser, requestable_id};
use crate::prefetch::{Mapped, Outlet, Sink};
use crate::report::Certificate;
use crate::walk::crawl::MOST_SIDE_BY_SIDE;
use crate::walk::unread::UnreadLists;
use crate::walk::{SharedReport, WalkedPage, walk_into};

/// A list has at least this many requests to itself before a run's requests are spent, or lists that
/// take a few would each begin and none would end.
pub(super) const REQUESTS_A_LIST: u64 = 8;

/// Reads all users, and the messages of all users whose lists are not done, as far as the run's
/// budget goes.
pub async fn read_all(
    client: Client,
    run: Arc<RunBudget>,
    plan: Plan,
    counters: Arc<ProgressCounters>,
    outlet: Outlet<Event>,
) -> Result<(), Error> {
    let side_by_side = side_by_side(&client, &run);
    let context = Context {
        budget: client.budget().within(Arc::clone(&run)),
        client,
        run,
        planned: Mutex::new(plan),
        counters,
        outlet,
        unread: UnreadLists::default(),
    };
    let (queue, waiting) = mpsc::unbounded_channel();
    let find = find_users(&context, queue);
    let read = stream::unfold(waiting, async |mut waiting| {
        let next: Next = waiting.recv().await?;
        Some((next, waiting))
    })
    .take_while(|_| ready(context.run.has_room(context.client.clock())))
    .map(|next| read_list(&context, next))
    .buffer_unordered(side_by_side)
    .try_for_each(async |()| Ok(()));
    tokio::try_join!(find, read)?;
    // Lists that are left, or were read in an earlier part of the run, may be readable.
    match context.run.was_spent() || context.plan(|plan| plan.lists_done() > 0) {
        true => Ok(()),
        false => context.unread.end(),
    }
}

/// How many lists are read at once.
fn side_by_side(client: &Client, run: &RunBudget) -> usize {
    let few = run.most_requests().map(|most| most / REQUESTS_A_LIST);
    let few = few.and_then(|few| usize::try_from(few).ok());
    let most = MOST_SIDE_BY_SIDE.min(few.unwrap_or(MOST_SIDE_BY_SIDE));
    client.options().max_concurrency.clamp(1, most.max(1))
}

/// Queues every user in the plan's order; it does not matter if the queue has no reader any more.
async fn find_users(context: &Context, queue: mpsc::UnboundedSender<Next>) -> Result<(), Error> {
    let put = |user, fetched_first| {
        let _ = queue.send(Next {
            user,
            fetched_first,
        });
    };
    let put_listed = |user| put(user, false);
    if let Some(given) = context.plan(Plan::take_given) {
        context.counters.set_users_known();
        given.into_iter().for_each(|user| put(user, true));
        return Ok(());
    }
    let in_order = context.plan(|plan| plan.finds_all_users_first());
    let half_read = context.plan(Plan::half_read);
    let begun = half_read.into_iter().chain(context.plan(Plan::unread));
    let mut begun: Vec<ListedUser> = begun.collect();
    if !in_order {
        begun.drain(..).for_each(put_listed);
    }
    match context.plan(Plan::take_users) {
        Some(users) => {
            for user in users {
                context.plan(|plan| plan.see(user));
            }
        }
        None => match sweep_users(context, &put_listed).await {
            Err(error) if error.is_budget_spent() => {
                context.run.note_end(error);
                return Ok(());
            }
            swept => swept?,
        },
    }
    context.counters.set_users_known();
    let mut audited = Vec::new();
    if let Some((audit, drawn)) = context.plan(Plan::draw_audit) {
        audited = drawn;
        context.outlet.put(Event::AuditDrawn(audit)).await;
    }
    let rest = context.plan(|plan| plan.rest(audited));
    begun.into_iter().chain(rest).for_each(put_listed);
    Ok(())
}

async fn sweep_users(context: &Context, put: &(impl Fn(ListedUser) + Sync)) -> Result<(), Error> {
    let see = |user: ListedUser| {
        if context.plan(|plan| plan.see(user)) {
            put(user);
        }
    };
    let half_read = context.plan(Plan::take_users_half_read);
    let resume = half_read.map(|half_read| half_read.resume().0);
    let resumed = resume.is_some();
    // Users committed before are not shown again.
    for id in resume.iter().flat_map(|resume| &resume.held) {
        if let Some(user_id) = i64::try_from(id).ok().and(Some(id.into())) {
            see(ListedUser {
                user_id,
                hints: None,
            });
        }
    }
    let report = SharedReport::default();
    let convert = |mut page: WalkedPage| {
        context.counters.set_users_total(page.total);
        note_page_rows(&context.counters, &page.sent, page.limit, page.rows.len());
        let forgotten = |id: i64| context.plan(|plan| plan.is_forgotten(id));
        page.rows.retain(|row| !row.id.is_some_and(forgotten));
        for row in &page.rows {
            if let Some(user_id) = requestable_id(row) {
                see(ListedUser {
                    user_id,
                    hints: Some(Hints::of(row)),
                });
            }
        }
        let cursor = page.checkpoint.map(|walk| {
            Box::new(Cursor {
                walk: *walk,
                shape: ListShape::default(),
                hints: None,
            })
        });
        Event::Users(Rows {
            user_id: None,
            rows: page.rows,
            cursor,
            held: Held::by(&report.get()),
        })
    };
    let (client, budget, sink) = (&context.client, &context.budget, &context.outlet);
    let sink = Mapped { sink, convert };
    let from = resume.into();
    walk_into(client, List::Users, RESUMABLE, from, budget, &report, &sink).await?;
    let report = Box::new(report.get());
    // Users who moved to pages that were read before the interruption were shown in none.
    if report.certificate == Certificate::Uncertified || resumed {
        context.plan(Plan::see_known);
    }
    context.outlet.put(Event::UsersEnded(report)).await;
    Ok(())
}
