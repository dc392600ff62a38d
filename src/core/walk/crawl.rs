//! All users' messages, many lists concurrently under the client's pace, as events.

use std::sync::Arc;

use indexmap::IndexSet;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use crate::api::{LARGEST_LIMIT, List, Natural};
use crate::budget::Budget;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::list_state::requestable_id;
use crate::prefetch::{Mapped, Sink};
use crate::report::WalkReport;
use crate::walk::unread::UnreadLists;
use crate::walk::{SharedReport, Start, WalkSettings, WalkedPage, walk_into};

// The most lists read at once, whatever `max_concurrency` says.
pub const MOST_SIDE_BY_SIDE: usize = 4_096;

// Users waiting to be read in addition to one per list being read: with a page of them, the next
// page is requested in time.
const USERS_AHEAD: usize = LARGEST_LIMIT as usize;

/// The users whose messages to read.
#[derive(Debug, Clone)]
pub enum Users {
    /// All that the list of users shows.
    Listed,
    /// These users; one that does not exist is an error.
    Given(IndexSet<Natural>),
    /// Users from an earlier walk's list; some may no longer exist.
    Planned(IndexSet<Natural>),
}

/// What a crawl finds, in an order that can be committed: a list's end follows its pages.
#[derive(Debug)]
pub enum Event {
    Users(WalkedPage),
    UsersEnded(Box<WalkReport>),
    Messages(WalkedPage),
    ListEnded {
        user_id: i64,
        end: ListEnd,
        report: Box<WalkReport>,
    },
}

/// How the reading of a message list ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListEnd {
    Read,
    /// It could not be read to its end; the report says why.
    Unread,
    /// The user was listed but no longer exists; the report counts what was read before.
    UserGone,
}

impl Event {
    /// The user whose list it is about.
    pub fn list_of(&self) -> Option<i64> {
        match self {
            Self::Users(_) | Self::UsersEnded(_) => None,
            Self::Messages(page) => page.user_id,
            Self::ListEnded { user_id, .. } => Some(*user_id),
        }
    }

    pub fn ends_list(&self) -> bool {
        matches!(self, Self::ListEnded { .. })
    }

    /// How much JSON it keeps in memory, in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Users(page) | Self::Messages(page) => page.size(),
            _ => 0,
        }
    }
}

/// Puts the messages of `users` into a sink, and pauses while its reader is behind.
pub async fn crawl_into(
    client: &Client,
    users: Users,
    settings: WalkSettings,
    sink: Arc<impl Sink<Event> + 'static>,
) -> Result<(), Error> {
    let crawl = Arc::new(Crawl {
        client: client.clone(),
        once_listed: !matches!(users, Users::Given(_)),
        settings,
        budget: client.budget(),
        sink,
        unread: UnreadLists::default(),
    });
    let side_by_side = client.options().max_concurrency.clamp(1, MOST_SIDE_BY_SIDE);
    let (queue, waiting) = mpsc::channel(side_by_side + USERS_AHEAD);
    let find = crawl.find_users(users, queue);
    let read = Arc::clone(&crawl).read_lists(waiting, side_by_side);
    tokio::try_join!(find, read)?;
    crawl.unread.end()
}

/// What all parts of a crawl share.
struct Crawl<S> {
    client: Client,
    /// The users existed at some time, so a missing one is not an error.
    once_listed: bool,
    settings: WalkSettings,
    budget: Budget,
    sink: Arc<S>,
    unread: UnreadLists,
}

/// Passes on the pages of the list of users, and queues the users whose messages can be requested.
struct UserPages<'a, S> {
    sink: &'a S,
    queue: mpsc::Sender<Natural>,
}

impl<S: Sink<Event>> Sink<WalkedPage> for UserPages<'_, S> {
    async fn put(&self, page: WalkedPage) -> bool {
        let ids: Vec<Natural> = page.rows.iter().filter_map(requestable_id).collect();
        if !self.sink.put(Event::Users(page)).await {
            return false;
        }
        for user_id in ids {
            if self.queue.send(user_id).await.is_err() {
                return false;
            }
        }
        true
    }
}

impl<S: Sink<Event> + 'static> Crawl<S> {
    async fn find_users(&self, users: Users, queue: mpsc::Sender<Natural>) -> Result<(), Error> {
        match users {
            Users::Given(given) | Users::Planned(given) => {
                for user_id in given {
                    if queue.send(user_id).await.is_err() {
                        break;
                    }
                }
            }
            Users::Listed => {
                let sink: &S = &self.sink;
                let report = SharedReport::default();
                let (client, budget) = (&self.client, &self.budget);
                let pages = UserPages { sink, queue };
                let whole = WalkSettings {
                    ends_unread: true,
                    ..WalkSettings::WHOLE
                };
                let start = Start::Beginning;
                walk_into(client, List::Users, whole, start, budget, &report, &pages).await?;
                sink.put(Event::UsersEnded(Box::new(report.get()))).await;
            }
        }
        Ok(())
    }

    /// Reads the lists of users as they arrive, a bounded number side by side. A task reads one list
    /// after the other: a task for each list took 4 % more instructions with lists of one message.
    async fn read_lists(
        self: Arc<Self>,
        users: mpsc::Receiver<Natural>,
        side_by_side: usize,
    ) -> Result<(), Error> {
        let users = Arc::new(Mutex::new(users));
        // Dropping this future aborts the running tasks.
        let mut readers = JoinSet::new();
        let mut more = true;
        while more || !readers.is_empty() {
            tokio::select! {
                user = next(&users), if more && readers.len() < side_by_side => match user {
                    Some(first) => {
                        let (crawl, users) = (Arc::clone(&self), Arc::clone(&users));
                        readers.spawn(Box::pin(async move {
                            let mut user_id = Some(first);
                            while let Some(id) = user_id {
                                crawl.read_list(id).await?;
                                user_id = next(&users).await;
                            }
                            Ok(())
                        }));
                    }
                    None => more = false,
                },
                Some(ended) = readers.join_next() => {
                    ended.unwrap_or_else(|_| Err(Error::new(ErrorKind::Aborted)))?;
                }
            }
        }
        Ok(())
    }

    async fn read_list(&self, user_id: Natural) -> Result<(), Error> {
        let (client, budget) = (&self.client, &self.budget);
        let shared = SharedReport::default();
        let pages = Mapped {
            sink: self.sink.as_ref(),
            convert: Event::Messages,
        };
        let list = List::Messages { user_id };
        let walked = walk_into(
            client,
            list,
            self.settings,
            Start::Beginning,
            budget,
            &shared,
            &pages,
        )
        .await;
        let mut report = Box::new(shared.get());
        let ended = match walked {
            // The caller named a user who does not exist.
            Err(error) if error.is_not_found() && !self.once_listed => return Err(error),
            Err(error) if error.is_not_found() => match is_gone(client, user_id, budget).await {
                Ok(true) => Ok(ListEnd::UserGone),
                Ok(false) => Ok(ListEnd::Unread),
                Err(error) => Err(error),
            },
            walked => walked.map(|()| ListEnd::Read),
        };
        let end = match ended {
            Ok(end) => {
                self.unread.note_read();
                if end == ListEnd::Unread {
                    let reason = "its messages were not found, although the user exists";
                    report.doubt(reason.to_owned());
                }
                end
            }
            Err(error) => {
                report.doubt(self.unread.give_up(client, budget, error, false).await?);
                ListEnd::Unread
            }
        };
        let user_id = user_id.signed();
        let ended = Event::ListEnded {
            user_id,
            end,
            report,
        };
        self.sink.put(ended).await;
        Ok(())
    }
}

/// The next user; waiting tasks get one in the order in which they began to wait.
async fn next(users: &Mutex<mpsc::Receiver<Natural>>) -> Option<Natural> {
    users.lock().await.recv().await
}

/// Checks whether a user whose messages were not found is gone; if not, the list is in doubt.
pub async fn is_gone(client: &Client, user_id: Natural, budget: &Budget) -> Result<bool, Error> {
    let mut is_sure = false;
    loop {
        match client.get(List::Users, user_id, budget).await {
            Ok(_) => return Ok(false),
            Err(error) if error.is_not_found() => {
                if is_sure || client.is_missing(&error, budget).await? {
                    return Ok(true);
                }
                is_sure = true;
            }
            Err(error) => return Err(error),
        }
    }
}
