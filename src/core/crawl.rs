//! Every user's messages, lists side by side under the client's pace.

use std::collections::HashSet;

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;

use super::budget::Budget;
use super::client::Client;
use super::error::{Error, ErrorKind};
use super::feed::{Feed, Outlet};
use super::interface::{List, Natural};
use super::page::Row;
use super::report::{Certificate, WalkReport};
use super::walk::{SharedReport, Walk, WalkSettings, WalkedPage, sweep_into};

// How errors name what a crawl reads.
const EVERY_LIST: &str = "/external/users/*/messages";

// More lists than this are never under way at once, whatever max_concurrency says.
const MOST_SIDE_BY_SIDE: usize = 4_096;

/// Whose messages to read.
#[derive(Debug, Clone)]
pub enum Users {
    /// All that the list of users shows.
    Listed,
    /// These; one that does not exist is an error.
    Given(Vec<Natural>),
}

/// What a crawl meets, in an order in which it can be committed: a list's end follows its pages.
#[derive(Debug)]
pub enum Event {
    Users(WalkedPage),
    UsersEnded(Box<WalkReport>),
    Messages(WalkedPage),
    ListEnded {
        user_id: i64,
        report: Box<WalkReport>,
    },
    /// The user was listed, but is gone.
    UserGone {
        user_id: i64,
        requests: u64,
    },
}

/// A crawl under way; `skip` says whose messages are not wanted.
pub fn crawl(
    client: Client,
    users: Users,
    settings: WalkSettings,
    skip: impl Fn(i64) -> bool + Send + Sync + 'static,
) -> Feed<Event> {
    Feed::new(move |outlet| async move {
        let budget = client.budget();
        let side_by_side = client.options().max_concurrency.clamp(1, MOST_SIDE_BY_SIDE);
        let (queue, waiting) = mpsc::channel(side_by_side);
        let listed = matches!(users, Users::Listed);
        let find = find_users(&client, users, &budget, &outlet, queue);
        let read = stream::unfold(waiting, async |mut waiting| {
            let user_id: Natural = waiting.recv().await?;
            Some((user_id, waiting))
        })
        .filter(|user_id| {
            let wanted = i64::try_from(user_id.get()).is_ok_and(|user_id| !skip(user_id));
            async move { wanted }
        })
        .map(|user_id| read_list(&client, user_id, listed, settings, &budget, &outlet))
        .buffer_unordered(side_by_side)
        .try_for_each(async |()| Ok(()));
        tokio::try_join!(find, read).map(|_| ())
    })
}

async fn find_users(
    client: &Client,
    users: Users,
    budget: &Budget,
    outlet: &Outlet<Event>,
    queue: mpsc::Sender<Natural>,
) -> Result<(), Error> {
    match users {
        Users::Given(given) => {
            let mut queued = HashSet::new();
            for user_id in given.into_iter().filter(|user_id| queued.insert(*user_id)) {
                if queue.send(user_id).await.is_err() {
                    break;
                }
            }
            Ok(())
        }
        Users::Listed => {
            let walk = Walk::new(client.clone(), List::Users, WalkSettings::WHOLE);
            while let Some(page) = walk.feed.next().await? {
                let ids: Vec<Natural> = page.rows.iter().filter_map(askable).collect();
                if !outlet.put(Event::Users(page)).await {
                    return Ok(());
                }
                for user_id in ids {
                    if queue.send(user_id).await.is_err() {
                        return Ok(());
                    }
                }
                // The walk has a deadline of its own; the crawl's began earlier.
                if budget.remaining().is_some_and(|left| left.is_zero()) {
                    break;
                }
            }
            outlet
                .put(Event::UsersEnded(Box::new(walk.report.get())))
                .await;
            Ok(())
        }
    }
}

/// The id that a user's messages can be asked for by; none if it is no whole number from 0.
fn askable(row: &Row) -> Option<Natural> {
    Natural::new("id", row.id?).ok()
}

async fn read_list(
    client: &Client,
    user_id: Natural,
    listed: bool,
    settings: WalkSettings,
    budget: &Budget,
    outlet: &Outlet<Event>,
) -> Result<(), Error> {
    let report = SharedReport::new(WalkReport::not_read_yet());
    let list = List::Messages { user_id };
    let read = sweep_into(
        client,
        list,
        settings,
        budget,
        &report,
        outlet,
        Event::Messages,
    )
    .await;
    let id = user_id.get().try_into().unwrap_or(i64::MAX);
    match read {
        Ok(()) => {
            let report = Box::new(report.get());
            outlet
                .put(Event::ListEnded {
                    user_id: id,
                    report,
                })
                .await;
            Ok(())
        }
        Err(error) if listed && is_not_found(&error) => {
            let requests = error.attempts.len() as u64;
            outlet
                .put(Event::UserGone {
                    user_id: id,
                    requests,
                })
                .await;
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn is_not_found(error: &Error) -> bool {
    matches!(&error.kind, ErrorKind::Status(failure) if failure.status == 404)
}

/// Every user's messages as one walk, whose report sums up those of the lists.
pub fn all_messages(client: Client, users: Users, settings: WalkSettings) -> Walk {
    let report = SharedReport::new(WalkReport::not_read_yet());
    let shared = report.clone();
    let feed = Feed::new(move |outlet: Outlet<WalkedPage>| async move {
        let mut summary = Summary::new(matches!(users, Users::Listed));
        shared.set(summary.report.clone());
        let mut room = settings.max_items;
        let lists = WalkSettings {
            strict: false,
            ..settings
        };
        let crawl = crawl(client, users, lists, |_| false);
        let mut cut = room == Some(0);
        while !cut && let Some(event) = crawl.next().await? {
            let page = summary.take(event);
            shared.set(summary.report.clone());
            let Some(mut page) = page else { continue };
            if let Some(room) = &mut room {
                page.rows
                    .truncate(usize::try_from(*room).unwrap_or(usize::MAX));
                *room -= page.rows.len() as u64;
                cut = *room == 0;
            }
            if !outlet.put(page).await {
                return Ok(());
            }
        }
        let report = summary.end(cut, settings.max_items);
        shared.set(report.clone());
        if settings.strict && report.certificate == Certificate::Uncertified && !cut {
            let incomplete = Error::new(ErrorKind::Incomplete(Box::new(report)));
            return Err(incomplete.during(EVERY_LIST.to_owned(), Vec::new()));
        }
        Ok(())
    });
    Walk { feed, report }
}

/// The report of a crawl, made of those of its lists.
struct Summary {
    report: WalkReport,
    weakest: Certificate,
    users_gone: u64,
    users_unasked: usize,
    users_reason: Option<String>,
    all_totals_known: bool,
}

impl Summary {
    fn new(listed: bool) -> Self {
        Self {
            report: WalkReport {
                total_first: Some(0),
                total_last: Some(0),
                ..WalkReport::start()
            },
            weakest: Certificate::Snapshot,
            users_gone: 0,
            users_unasked: 0,
            users_reason: listed.then(|| "not read to its end".to_owned()),
            all_totals_known: true,
        }
    }

    fn take(&mut self, event: Event) -> Option<WalkedPage> {
        let report = &mut self.report;
        match event {
            Event::Users(page) => {
                let unasked = page.rows.iter().filter(|row| askable(row).is_none());
                self.users_unasked += unasked.count();
            }
            Event::Messages(page) => return Some(page),
            Event::UserGone { requests, .. } => {
                self.users_gone += 1;
                report.requests += requests;
            }
            Event::UsersEnded(users) => {
                report.requests += users.requests;
                report.repaired_text += users.repaired_text;
                self.users_reason = users.reason;
                self.weakest = self.weakest.min(users.certificate);
            }
            Event::ListEnded {
                user_id,
                report: list,
            } => {
                report.requests += list.requests;
                report.pages += list.pages;
                report.rows += list.rows;
                report.distinct += list.distinct;
                report.repeats += list.repeats;
                report.repaired_text += list.repaired_text;
                self.all_totals_known &= list.total_first.is_some() && list.total_last.is_some();
                report.total_first = add(report.total_first, list.total_first);
                report.total_last = add(report.total_last, list.total_last);
                *report
                    .lists_by_certificate
                    .entry(list.certificate.name())
                    .or_default() += 1;
                self.weakest = self.weakest.min(list.certificate);
                if list.certificate == Certificate::Uncertified {
                    report.uncertified_users.push(user_id);
                }
            }
        }
        None
    }

    fn end(mut self, cut: bool, max_items: Option<u64>) -> WalkReport {
        let report = &mut self.report;
        report.uncertified_users.sort_unstable();
        if !self.all_totals_known {
            (report.total_first, report.total_last) = (None, None);
        }
        let mut reasons = Vec::new();
        if cut {
            let most = max_items.unwrap_or_default();
            reasons.push(format!("stopped after max_items={most} rows, as asked"));
        }
        if let Some(reason) = &self.users_reason {
            reasons.push(format!("the list of users: {reason}"));
        }
        if !report.uncertified_users.is_empty() {
            let count = report.uncertified_users.len();
            reasons.push(format!("the messages of {count} users are uncertified"));
        }
        if self.users_gone > 0 {
            reasons.push(format!(
                "{} users were gone when their messages were asked for",
                self.users_gone
            ));
        }
        if self.users_unasked > 0 {
            let count = self.users_unasked;
            reasons.push(format!(
                "{count} users have no usable id, so their messages cannot be asked for"
            ));
            self.weakest = Certificate::Uncertified;
        }
        if cut || self.weakest == Certificate::Uncertified {
            report.doubt(reasons.join("; "));
        } else {
            report.certify(self.weakest);
        }
        report.end();
        self.report
    }
}

fn add(sum: Option<i64>, more: Option<i64>) -> Option<i64> {
    Some(sum?.saturating_add(more.unwrap_or(0)))
}
