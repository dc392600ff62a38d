//! Reads the list of users and, concurrently, message lists, as events.

use std::future::ready;
use std::sync::Mutex;

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;

use super::context::{Context, Event};
use super::list_reading::read_list;
use super::plan::{Next, Plan};
use crate::api::List;
use crate::budget::RunBudget;
use crate::client::Client;
use crate::error::Error;
use crate::list_state::{Hints, ListedUser, requestable_id};
use crate::prefetch::Sink;
use crate::report::Certificate;
use crate::walk::crawl::MOST_SIDE_BY_SIDE;
use crate::walk::{SharedReport, WalkedPage};

/// A list has at least this many requests to itself before a run's requests are spent, or lists that
/// take a few would each begin and none would end.
pub(super) const REQUESTS_A_LIST: u64 = 8;

/// Reads all users, and the messages of all users whose lists are not done, as far as the run's
/// budget goes.
pub async fn read_all(context: Context) -> Result<(), Error> {
    let (queue, mut waiting) = mpsc::unbounded_channel();
    let find = find_users(&context, queue);
    let read = stream::poll_fn(|task| waiting.poll_recv(task))
        .take_while(|_| ready(context.run.has_room(context.client.clock())))
        .map(|next| read_list(&context, next))
        .buffer_unordered(side_by_side(&context.client, &context.run))
        .try_for_each(async |()| Ok(()));
    tokio::try_join!(find, read)?;
    // Lists that are left, or were read in an earlier part of the run, may be readable.
    match context.run.was_spent() || context.plan.with(|plan| !plan.known.done.is_empty()) {
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
    let put_ready = || {
        for next in context.plan.with(Plan::take_ready) {
            let _ = queue.send(next);
        }
    };
    context.plan.with(Plan::begin);
    put_ready();
    if let Some(users) = context.plan.with(|plan| plan.known.users.take()) {
        context
            .plan
            .with(|plan| users.into_iter().for_each(|user| plan.see(user)));
    } else if context.plan.with(|plan| plan.known.given.is_none()) {
        let swept = sweep_users(context, &put_ready).await;
        if context.run.unless_spent(swept)?.is_none() {
            return Ok(());
        }
    }
    if let Some(audit) = context.plan.with(Plan::know_all_users) {
        context.outlet.put(Event::AuditDrawn(audit)).await;
    }
    put_ready();
    Ok(())
}

async fn sweep_users(
    context: &Context,
    put_ready: &(impl Fn() + Send + Sync),
) -> Result<(), Error> {
    let half_read = context.plan.with(|plan| plan.known.users_half_read.take());
    let half_read = half_read.unwrap_or_default();
    let resumed = half_read.walk.is_some();
    // Users committed before are not shown again.
    for user in ListedUser::all_known(half_read.held.iter().map(u64::cast_signed)) {
        context.plan.with(|plan| plan.see(user));
    }
    let see = |page: &mut WalkedPage| {
        context.plan.with(|plan| {
            plan.users_total = page.total;
            let forgotten = |id| plan.known.forgotten.contains(&id);
            page.rows.retain(|row| !row.id.is_some_and(forgotten));
            for row in &page.rows {
                if let Some(user_id) = requestable_id(row) {
                    let hints = Some(Hints::of(row));
                    plan.see(ListedUser { user_id, hints });
                }
            }
        });
        put_ready();
    };
    let (report, so_far) = (SharedReport::default(), Mutex::new(half_read));
    context.sweep(List::Users, &so_far, &report, see).await?;
    let report = Box::new(report.get());
    // Users who moved to pages that were read before the interruption were shown in none.
    if report.certificate == Certificate::Uncertified || resumed {
        context.plan.with(Plan::see_known);
    }
    context.outlet.put(Event::UsersEnded(report)).await;
    Ok(())
}
