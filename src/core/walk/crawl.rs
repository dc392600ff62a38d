//! All users' messages, many lists concurrently under the client's pace, as events.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::core::api::{List, Natural};
use crate::core::budget::Budget;
use crate::core::client::Client;
use crate::core::error::{Error, ErrorKind};
use crate::core::list_state::askable;
use crate::core::prefetch::{Outlet, Prefetch};
use crate::core::report::WalkReport;
use crate::core::walk::unread::UnreadLists;
use crate::core::walk::{SharedReport, Walk, WalkSettings, WalkedPage, sweep_into};

// The most lists read at once, whatever `max_concurrency` says.
pub const MOST_SIDE_BY_SIDE: usize = 4_096;

// Pages buffered for the reader, in addition to one in each list's task.
const PAGES_AHEAD: usize = 32;

/// The users whose messages to read.
#[derive(Debug, Clone)]
pub enum Users {
    /// All that the list of users shows.
    Listed,
    /// These; one that does not exist is an error.
    Given(Vec<Natural>),
    /// These, from an earlier walk's list of users; they may be gone by now.
    Planned(Vec<Natural>),
}

/// What a crawl finds, in an order that can be committed: a list's end follows its pages.
#[derive(Debug)]
pub enum Event {
    Users(WalkedPage),
    UsersEnded(Box<WalkReport>),
    Messages(WalkedPage),
    ListEnded {
        user_id: i64,
        report: Box<WalkReport>,
    },
    /// The list could not be read to its end; the report says why.
    ListUnread {
        user_id: i64,
        report: Box<WalkReport>,
    },
    /// The user was listed but no longer exists; the report counts what was read before.
    UserGone {
        user_id: i64,
        report: Box<WalkReport>,
    },
}

/// A running crawl. It buffers a bounded number of pages and pauses while its reader is behind.
pub fn crawl(client: Client, users: Users, settings: WalkSettings) -> Prefetch<Event> {
    Prefetch::with_room(PAGES_AHEAD, move |outlet| async move {
        let budget = client.budget();
        let side_by_side = client.options().max_concurrency.clamp(1, MOST_SIDE_BY_SIDE);
        let (queue, waiting) = mpsc::channel(side_by_side);
        let once_listed = !matches!(users, Users::Given(_));
        let find = find_users(&client, users, &budget, &outlet, queue);
        let lists = Lists {
            client: client.clone(),
            once_listed,
            settings,
            budget,
            outlet: outlet.clone(),
            unread: Arc::default(),
        };
        let unread = Arc::clone(&lists.unread);
        let read = lists.read(waiting, side_by_side);
        tokio::try_join!(find, read)?;
        unread.end()
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
        Users::Given(given) | Users::Planned(given) => {
            let mut queued = HashSet::new();
            for user_id in given.into_iter().filter(|user_id| queued.insert(*user_id)) {
                if queue.send(user_id).await.is_err() {
                    break;
                }
            }
            Ok(())
        }
        Users::Listed => {
            let whole = WalkSettings::WHOLE;
            let walk = Walk::within(Some(*budget), client.clone(), List::Users, whole);
            while let Some(page) = walk.prefetch.next().await? {
                let ids: Vec<Natural> = page.rows.iter().filter_map(askable).collect();
                if !outlet.put(Event::Users(page)).await {
                    return Ok(());
                }
                for user_id in ids {
                    if queue.send(user_id).await.is_err() {
                        return Ok(());
                    }
                }
            }
            outlet
                .put(Event::UsersEnded(Box::new(walk.report.get())))
                .await;
            Ok(())
        }
    }
}

/// How to read the message lists.
#[derive(Clone)]
struct Lists {
    client: Client,
    /// The users existed at some time, so a missing one is not an error.
    once_listed: bool,
    settings: WalkSettings,
    budget: Budget,
    outlet: Outlet<Event>,
    unread: Arc<UnreadLists>,
}

impl Lists {
    /// Reads the lists of users as they arrive, each in its own task, a bounded number at a time.
    async fn read(
        self,
        mut users: mpsc::Receiver<Natural>,
        side_by_side: usize,
    ) -> Result<(), Error> {
        // Dropping this future aborts the running tasks.
        let mut under_way = JoinSet::new();
        let mut more = true;
        while more || !under_way.is_empty() {
            tokio::select! {
                user_id = users.recv(), if more && under_way.len() < side_by_side => match user_id {
                    Some(user_id) => {
                        under_way.spawn(self.clone().read_list(user_id));
                    }
                    None => more = false,
                },
                Some(ended) = under_way.join_next() => {
                    ended.unwrap_or_else(|_| Err(Error::new(ErrorKind::Aborted)))?;
                }
            }
        }
        Ok(())
    }

    async fn read_list(self, user_id: Natural) -> Result<(), Error> {
        let Self {
            client,
            once_listed,
            settings,
            budget,
            outlet,
            unread,
        } = &self;
        let report = SharedReport::new(WalkReport::not_read_yet());
        let list = List::Messages { user_id };
        let wrap = Event::Messages;
        let read = sweep_into(client, list, *settings, budget, &report, outlet, wrap).await;
        let mut reason = None;
        let not_found = match read {
            Ok(()) => false,
            Err(error) if error.status() == Some(404) => {
                // For a user whom the caller named, this is the caller's error.
                if !*once_listed {
                    return Err(error);
                }
                true
            }
            Err(error) => {
                reason = Some(unread.give_up(client, budget, error, false).await?);
                false
            }
        };
        let gone = match not_found {
            false => false,
            true => match is_gone(client, user_id, budget).await {
                Ok(gone) => gone,
                Err(error) => {
                    reason = Some(unread.give_up(client, budget, error, false).await?);
                    false
                }
            },
        };
        let user_id = user_id.get().try_into().unwrap_or(i64::MAX);
        let mut report = Box::new(report.get());
        if let Some(reason) = reason {
            report.doubt(reason);
            let event = Event::ListUnread { user_id, report };
            outlet.put(event).await;
            return Ok(());
        }
        unread.note_read();
        if not_found && !gone {
            report.doubt("its messages were not found (404), though the user is there".to_owned());
        }
        let event = match gone {
            true => Event::UserGone { user_id, report },
            false => Event::ListEnded { user_id, report },
        };
        outlet.put(event).await;
        Ok(())
    }
}

/// Checks whether a user whose messages were not found is gone; if not, the list is in doubt.
pub async fn is_gone(client: &Client, user_id: Natural, budget: &Budget) -> Result<bool, Error> {
    match client.user_within(user_id, budget).await {
        Ok(_) => Ok(false),
        Err(error) if error.status() == Some(404) => Ok(true),
        Err(error) => Err(error),
    }
}
