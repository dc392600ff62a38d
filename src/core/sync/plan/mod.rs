//! What to read next and how: lists that were partly read, then users with new messages, those with
//! the newest first, then those read longest ago. Only a quick run skips users: those
//! that did not move.

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::mem::take;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::growing_end::GrowingEnd;
use super::known::{Audit, HalfRead, Known, Mode};
use crate::api::LARGEST_LIMIT;
use crate::list_state::{Kind, ListState, ListedUser};
use crate::lock;
use crate::report::Certificate;
use crate::timestamp::Timestamp;

/// How to read one list.
#[derive(Debug)]
pub enum Approach {
    /// From its start, which takes one request for most lists, or from where this run stopped.
    Sweep(Option<Box<HalfRead>>),
    /// At its growing end; the whole list if that does not match.
    GrowingEnd(Box<GrowingEnd>),
}

/// The options of a run.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub mode: Mode,
    /// Lists swept longer ago are swept again, some of them earlier, so that they do not all fall
    /// due at once.
    pub max_staleness: Option<Duration>,
    pub now: Timestamp,
    /// No list is read before all users are known, so that the order is that of all of them;
    /// otherwise users with news are read as the sweep shows them.
    pub all_users_first: bool,
    /// The seed of an audit's random order.
    pub seed: u64,
    /// A list that grew by more pages is swept: only a sweep goes on where a spent budget ended it.
    pub most_end_pages: u64,
}

/// Why a list is read, in the order in which lists are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// The caller named the user, whom no sweep showed: their row is fetched first.
    Given,
    /// This run has partly read it.
    HalfRead,
    /// There is news of the user, with the newest hint.
    News(Reverse<Option<Timestamp>>),
    /// A quick run drew it, in this place.
    Audited(u64),
    /// Nothing is new since it was read, or it could not be read then.
    Later(Option<Timestamp>),
}

/// A user whose list is next.
#[derive(Debug, Clone, Copy)]
pub struct Next {
    pub user: ListedUser,
    pub turn: Turn,
}

/// The reading order of a run, as far as its users are known.
#[derive(Debug)]
pub struct Plan {
    terms: Terms,
    pub known: Known,
    /// How many users there are, as the service last said.
    pub users_total: Option<i64>,
    all_users_known: bool,
    /// Lists emitted to their end, in this run or before it was resumed.
    pub lists_done: u64,
    /// The largest page that the service was seen to return.
    pub page_rows: u64,
    /// All users are found before the first list is read.
    in_order: bool,
    /// Users that are queued or were already read.
    placed: HashSet<i64>,
    ready: Vec<Next>,
    /// Those that come once all users are known.
    waiting: Vec<Next>,
    /// Users whose lists a quick run may skip.
    skipped: Vec<ListedUser>,
    to_read: u64,
}

impl Plan {
    pub fn new(mut known: Known, terms: Terms) -> Self {
        known.done.retain(|id| !known.forgotten.contains(id));
        let largest_page = known.largest_page.map(|limit| limit.get());
        Self {
            terms,
            users_total: None,
            all_users_known: false,
            lists_done: known.done.len() as u64,
            page_rows: largest_page.unwrap_or(LARGEST_LIMIT).into(),
            in_order: terms.all_users_first || known.users.is_some(),
            placed: known.done.union(&known.forgotten).copied().collect(),
            known,
            ready: Vec::new(),
            waiting: Vec::new(),
            skipped: Vec::new(),
            to_read: 0,
        }
    }

    /// Lists that this run will read or has read; an estimate until all users are known.
    pub fn lists(&self) -> Option<u64> {
        let lists = self.known.done.len() as u64 + self.to_read;
        let estimate = self.users_total.and_then(|total| u64::try_from(total).ok());
        match self.all_users_known {
            true => Some(lists),
            false => estimate.map(|estimate| estimate.max(lists)),
        }
    }

    /// Records the limit that a full page reports.
    pub fn note_page_rows(&mut self, applied: u64) {
        self.page_rows = self.page_rows.min(applied.max(1));
    }

    /// Notes that a user has no list to read.
    pub fn leave_out(&mut self) {
        self.to_read = self.to_read.saturating_sub(1);
    }

    /// Queues what is read before all users are known: the given users or, where there are none, the
    /// lists that were partly read.
    pub fn begin(&mut self) {
        if let Some(given) = &self.known.given {
            for user_id in given.clone() {
                let hints = None;
                self.put(Turn::Given, ListedUser { user_id, hints });
            }
            return;
        }
        let half_read = self.known.half_read.keys().copied();
        for user in ListedUser::all_known(half_read) {
            self.put(Turn::HalfRead, user);
        }
    }

    /// Takes a listed user.
    pub fn see(&mut self, user: ListedUser) {
        let held = self.known.lists.get(&user.id());
        if held.is_some_and(|held| self.may_skip(user, held)) {
            if self.placed.insert(user.id()) {
                self.skipped.push(user);
            }
            return;
        }
        let turn = match held {
            // Its turn comes like that of others, or a small budget would go to lists that fail.
            Some(held)
                if held.kind == Kind::Unread
                    || user.hints.is_none_or(|hints| hints == held.hints) =>
            {
                Turn::Later(held.checked_at)
            }
            _ => Turn::News(Reverse(
                user.hints
                    .and_then(|hints| hints.updated_at.max(hints.online_at)),
            )),
        };
        self.put(turn, user);
    }

    /// Takes the users whose lists are known as if they were listed: a row that could not be read may
    /// be of one of them.
    pub fn see_known(&mut self) {
        let lists = self.known.lists.iter();
        let known = lists.filter(|(_, held)| held.kind != Kind::Gone);
        for user in ListedUser::all_known(known.map(|(id, _)| *id)) {
            self.see(user);
        }
    }

    /// Ends the search for users, so that all others are ready. In a quick run, draws the audit from
    /// the lists that may be skipped; a resumed run keeps its sample.
    pub fn know_all_users(&mut self) -> Option<Audit> {
        self.all_users_known = true;
        self.ready.append(&mut self.waiting);
        if self.terms.mode != Mode::Quick || self.known.given.is_some() {
            return None;
        }
        let skipped = take(&mut self.skipped);
        let (audit, drawn) = Audit::draw(self.known.audit, self.terms.seed, skipped);
        self.to_read += audit.drawn;
        let drawn = drawn.into_iter().map(|(place, user)| Next {
            user,
            turn: Turn::Audited(place),
        });
        self.ready.extend(drawn);
        Some(audit)
    }

    /// Takes the users whose turn has come, in order.
    pub fn take_ready(&mut self) -> Vec<Next> {
        let mut ready = take(&mut self.ready);
        ready.sort_unstable_by_key(|next| (next.turn, next.user.user_id));
        ready
    }

    /// Queues a user, once.
    fn put(&mut self, turn: Turn, user: ListedUser) {
        if !self.placed.insert(user.id()) {
            return;
        }
        self.to_read += 1;
        let waits = self.in_order || turn > Turn::Audited(0);
        match waits {
            true => self.waiting.push(Next { user, turn }),
            false => self.ready.push(Next { user, turn }),
        }
    }

    /// How to read a user's list, decided once, and the list as its last reading left it.
    pub fn approach(&mut self, user_id: i64) -> (Approach, Option<ListState>) {
        let held = self.known.lists.remove(&user_id);
        let before = held.clone();
        let half_read = self.known.half_read.remove(&user_id).map(Box::new);
        let end = held
            .filter(|held| half_read.is_none() && self.may_read_end(user_id, held))
            .and_then(|held| GrowingEnd::new(held, self.page_rows, self.terms.most_end_pages));
        let approach = match end {
            Some(end) => Approach::GrowingEnd(Box::new(end)),
            None => Approach::Sweep(half_read),
        };
        (approach, before)
    }

    fn may_read_end(&self, user_id: i64, held: &ListState) -> bool {
        // A linked list may have fewer or more rows than the service's, so their number proves
        // nothing.
        let exact = matches!(
            held.certificate,
            Certificate::Snapshot | Certificate::Counted
        );
        self.terms.mode != Mode::Full
            && exact
            && held.kind != Kind::Gone
            // One request reads a shorter list whole, which shows edits and read flags.
            && held.rows >= self.page_rows
            && !self.is_stale(user_id, held)
    }

    /// Whether the hints say that the list is as its last reading left it.
    fn may_skip(&self, user: ListedUser, held: &ListState) -> bool {
        self.terms.mode == Mode::Quick
            && held.hints.any()
            && user.hints == Some(held.hints)
            && held.is_certified()
            && !self.is_stale(user.id(), held)
    }

    fn is_stale(&self, user_id: i64, held: &ListState) -> bool {
        let Some(max_staleness) = self.terms.max_staleness else {
            return false;
        };
        let Some(swept_at) = held.swept_at else {
            return true;
        };
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(user_id);
        let share = 0.5 + hash as f64 / u64::MAX as f64 / 2.0;
        let age = self.terms.now.microseconds() - swept_at.microseconds();
        // A list read in the future: the clock was set back since.
        age < 0 || age as f64 >= max_staleness.as_micros() as f64 * share
    }
}

/// The plan, which all parts of a run change.
#[derive(Debug, Clone)]
pub struct SharedPlan(Arc<Mutex<Plan>>);

impl SharedPlan {
    pub fn new(plan: Plan) -> Self {
        Self(Arc::new(Mutex::new(plan)))
    }

    pub fn with<R>(&self, ask: impl FnOnce(&mut Plan) -> R) -> R {
        ask(&mut lock(&self.0))
    }
}
