//! Passes on the events of a crawl in the order of its users, although their lists are read side by
//! side: what comes before its turn waits.

use std::collections::{HashMap, VecDeque};

use tokio::sync::{Mutex, MutexGuard, Notify};

use super::crawl::{Event, Users};
use super::room::{Held, Room};
use crate::list_state::requestable_id;
use crate::prefetch::Sink;

/// A sink in front of another one, which gets the events user by user.
pub struct InTurn<S> {
    pub inner: S,
    /// Locked while events are passed on.
    turns: Mutex<Turns>,
    /// Notified when it is another user's turn.
    moved: Notify,
    /// For what waits: once it is full, only the list whose turn it is goes on.
    room: Room,
}

#[derive(Default)]
struct Turns {
    /// The users whose lists have not been passed on to their end.
    users: VecDeque<i64>,
    early: HashMap<i64, Vec<(Event, Held)>>,
}

impl<S> InTurn<S> {
    pub fn new(inner: S, users: &Users) -> Self {
        let mut turns = Turns::default();
        if let Users::Given(ids) | Users::Planned(ids) = users {
            turns.users.extend(ids.iter().map(|id| id.signed()));
        }
        Self {
            inner,
            turns: Mutex::new(turns),
            moved: Notify::new(),
            room: Room::default(),
        }
    }
}

impl<S: Sink<Event>> Sink<Event> for InTurn<S> {
    async fn put(&self, event: Event) -> bool {
        let Some(user_id) = event.list_of() else {
            if let Event::Users(page) = &event {
                let ids = page.rows.iter().filter(|row| requestable_id(row).is_some());
                self.turns
                    .lock()
                    .await
                    .users
                    .extend(ids.filter_map(|row| row.id));
            }
            return self.inner.put(event).await;
        };
        let mut held = None;
        loop {
            let moved = self.moved.notified();
            let mut turns = self.turns.lock().await;
            if turns.users.front() == Some(&user_id) {
                return self.pass_on(turns, event).await;
            }
            if let Some(held) = held.take() {
                turns.early.entry(user_id).or_default().push((event, held));
                return true;
            }
            drop(turns);
            tokio::select! {
                room = self.room.take(event.size()) => held = Some(room),
                () = moved => {}
            }
        }
    }
}

impl<S: Sink<Event>> InTurn<S> {
    /// Passes on an event of the list whose turn it is; if it ends, also what waits of the next ones.
    async fn pass_on(&self, mut turns: MutexGuard<'_, Turns>, event: Event) -> bool {
        let mut ended = event.ends_list();
        let mut read = self.inner.put(event).await;
        while read && ended {
            self.moved.notify_waiters();
            turns.users.pop_front();
            let next = turns.users.front().copied();
            let early = next.and_then(|next| turns.early.remove(&next));
            ended = false;
            for (event, held) in early.into_iter().flatten() {
                drop(held);
                ended = event.ends_list();
                read = read && self.inner.put(event).await;
            }
        }
        read
    }
}
