//! What to read next and how: lists that were partly read or failed, then users with new messages,
//! those with the newest first, then those read longest ago. Only a quick run skips users: those
//! that did not move.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::mem::take;
use std::time::Duration;

use super::growing_end::GrowingEnd;
use super::known::{Audit, HalfRead, Known, Mode};
use crate::api::Natural;
use crate::list_state::{Hints, Kind, ListState, ListedUser};
use crate::report::Certificate;
use crate::timestamp::Timestamp;

/// How to read one list.
#[derive(Debug)]
pub enum Approach {
    /// From start to end, which takes one request for most lists.
    Whole,
    /// From where this run stopped.
    GoOn(Box<HalfRead>),
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
    /// How many of the lists that failed last time come before users with news; the others come
    /// last, or a run with a small budget would read nothing else.
    pub most_unread_first: u64,
    /// The seed of an audit's random order.
    pub seed: u64,
    /// A list that grew by more pages is swept: only a sweep goes on where a spent budget ended it.
    pub most_end_pages: u64,
}

/// What a list is compared with once it is read.
#[derive(Debug, Clone, Copy)]
pub struct LastReading {
    pub hints: Hints,
    pub rows: u64,
    pub kind: Kind,
}

/// The reading order of a run, as far as its users are known.
#[derive(Debug)]
pub struct Plan {
    terms: Terms,
    known: Known,
    /// All users are found before the first list is read.
    in_order: bool,
    /// Users that are queued or were already read.
    placed: HashSet<i64>,
    /// Users with new messages, with their newest hint, if all users come first.
    news: Vec<(Option<Timestamp>, ListedUser)>,
    /// Users without new messages, with the time when they were last read.
    later: Vec<(Option<Timestamp>, ListedUser)>,
    /// Users whose lists a quick run may skip.
    skipped: Vec<ListedUser>,
    /// Those of them that it reads all the same.
    audited: HashSet<i64>,
    /// Users whose lists could not be read the last time.
    unread: HashSet<i64>,
    /// Those of them that come last.
    unread_later: Vec<ListedUser>,
    to_read: u64,
}

impl Plan {
    pub fn new(mut known: Known, terms: Terms) -> Self {
        known.done.retain(|id| !known.forgotten.contains(id));
        Self {
            terms,
            in_order: terms.all_users_first || known.users.is_some(),
            placed: known.done.union(&known.forgotten).copied().collect(),
            known,
            news: Vec::new(),
            later: Vec::new(),
            skipped: Vec::new(),
            audited: HashSet::new(),
            unread: HashSet::new(),
            unread_later: Vec::new(),
            to_read: 0,
        }
    }

    /// Lists that this run will read or has read.
    pub fn lists(&self) -> u64 {
        self.known.done.len() as u64 + self.to_read
    }

    /// Lists that were finished before this part of the run.
    pub fn lists_done(&self) -> u64 {
        self.known.done.len() as u64
    }

    /// Whether all users are found before the first list is read.
    pub fn finds_all_users_first(&self) -> bool {
        self.in_order
    }

    /// Whether nothing of this user may be read or stored.
    pub fn is_forgotten(&self, user_id: i64) -> bool {
        self.known.forgotten.contains(&user_id)
    }

    /// Takes the users that alone are to be read, each once; `None` if all users are to be read.
    pub fn take_given(&mut self) -> Option<Vec<ListedUser>> {
        let given = self.known.given.take()?.into_iter();
        let hints = None;
        let listed = given.map(|user_id| ListedUser { user_id, hints });
        Some(listed.filter(|user| self.place(*user)).collect())
    }

    /// Notes that a user has no list to read.
    pub fn leave_out(&mut self) {
        self.to_read = self.to_read.saturating_sub(1);
    }

    /// Takes the users of this run's finished sweep; later calls return `None`.
    pub fn take_users(&mut self) -> Option<Vec<ListedUser>> {
        self.known.users.take()
    }

    /// Takes the partly read list of users; later calls return `None`.
    pub fn take_users_half_read(&mut self) -> Option<HalfRead> {
        self.known.users_half_read.take()
    }

    /// The users whose lists were partly read: they come first.
    pub fn half_read(&mut self) -> Vec<ListedUser> {
        let mut half_read: Vec<ListedUser> = self
            .known
            .half_read
            .keys()
            .filter_map(|id| {
                Some(ListedUser {
                    user_id: Natural::new("id", *id).ok()?,
                    hints: None,
                })
            })
            .collect();
        half_read.sort_unstable_by_key(|user| user.user_id);
        half_read.retain(|user| self.place(*user));
        half_read
    }

    /// The users whose lists could not be read the last time: they come next, those that were tried
    /// longest ago first.
    pub fn unread(&mut self) -> Vec<ListedUser> {
        let lists = self.known.lists.iter();
        let mut unread: Vec<(Option<Timestamp>, ListedUser)> = lists
            .filter(|(_, held)| held.kind == Kind::Unread)
            .filter_map(|(id, held)| {
                let user = ListedUser {
                    user_id: Natural::new("id", *id).ok()?,
                    hints: Some(held.hints),
                };
                Some((held.checked_at, user))
            })
            .collect();
        unread.sort_unstable_by_key(|(tried_at, user)| (*tried_at, user.user_id));
        unread.retain(|(_, user)| self.place(*user));
        self.unread = unread.iter().map(|(_, user)| user.id()).collect();
        let mut unread: Vec<ListedUser> = unread.into_iter().map(|(_, user)| user).collect();
        let most = usize::try_from(self.terms.most_unread_first).unwrap_or(usize::MAX);
        self.unread_later = unread.split_off(unread.len().min(most));
        unread
    }

    /// Whether a user's list could not be read the last time either.
    pub fn was_unread(&self, user_id: i64) -> bool {
        self.unread.contains(&user_id)
    }

    /// Takes a listed user; true if it is to be read now, otherwise `rest` will return it.
    pub fn see(&mut self, user: ListedUser) -> bool {
        if !self.place(user) {
            return false;
        }
        let held = self.known.lists.get(&user.id());
        let news = held.is_none_or(|held| user.hints.is_some_and(|hints| hints != held.hints));
        if let Some(held) = held
            && self.may_skip(user, held)
        {
            self.skipped.push(user);
            return false;
        }
        if !news {
            self.later
                .push((held.and_then(|held| held.checked_at), user));
            return false;
        }
        if self.in_order {
            let newest = user
                .hints
                .and_then(|hints| hints.updated_at.max(hints.online_at));
            self.news.push((newest, user));
            return false;
        }
        true
    }

    /// Takes the users whose lists are known as if they were listed: a row that could not be read may
    /// be of one of them.
    pub fn see_known(&mut self) {
        let lists = self.known.lists.iter();
        let mut known: Vec<i64> = lists
            .filter(|(_, held)| held.kind != Kind::Gone)
            .map(|(id, _)| *id)
            .collect();
        known.sort_unstable();
        for user_id in known
            .into_iter()
            .filter_map(|id| Natural::new("id", id).ok())
        {
            self.see(ListedUser {
                user_id,
                hints: None,
            });
        }
    }

    /// Draws the audit from the lists that a quick run may skip; `None` in another run. The first
    /// users of `rest` are those with news, and these are the next.
    /// A resumed run keeps its sample.
    pub fn draw_audit(&mut self) -> Option<(Audit, Vec<ListedUser>)> {
        if self.terms.mode != Mode::Quick {
            return None;
        }
        let skipped = take(&mut self.skipped);
        let before = skipped.len() as u64;
        let (audit, drawn) = Audit::draw(self.known.audit, self.terms.seed, skipped);
        self.to_read -= before - drawn.len() as u64;
        self.audited = drawn.iter().map(|user| user.id()).collect();
        Some((audit, drawn))
    }

    /// Whether the list is part of the audit.
    pub fn is_audited(&self, user_id: i64) -> bool {
        self.audited.contains(&user_id)
    }

    /// The list as its last reading left it, if that was certified and the user had hints.
    pub fn last_reading(&self, user_id: i64) -> Option<LastReading> {
        let held = self.known.lists.get(&user_id)?;
        let ListState {
            hints, rows, kind, ..
        } = *held;
        (held.is_certified() && hints.any()).then_some(LastReading { hints, rows, kind })
    }

    /// The deferred users: those with news, the newest first, then `audited`, then those read
    /// longest ago.
    pub fn rest(&mut self, audited: Vec<ListedUser>) -> Vec<ListedUser> {
        let (mut news, mut later) = (take(&mut self.news), take(&mut self.later));
        news.sort_unstable_by_key(|(newest, user)| (Reverse(*newest), user.user_id));
        later.sort_unstable_by_key(|(looked_at, user)| (*looked_at, user.user_id));
        let news = news.into_iter().map(|(_, user)| user);
        let later = later.into_iter().map(|(_, user)| user);
        news.chain(audited)
            .chain(later)
            .chain(take(&mut self.unread_later))
            .collect()
    }

    fn place(&mut self, user: ListedUser) -> bool {
        let placed = self.placed.insert(user.id());
        self.to_read += u64::from(placed);
        placed
    }

    /// How to read a user's list, decided once; `page_rows` is the service's largest page.
    pub fn approach(&mut self, user_id: i64, page_rows: u64) -> Approach {
        if let Some(half_read) = self.known.half_read.remove(&user_id) {
            return Approach::GoOn(Box::new(half_read));
        }
        let held = self.known.lists.remove(&user_id);
        held.filter(|held| self.may_read_end(user_id, held, page_rows))
            .and_then(|held| GrowingEnd::new(held, page_rows, self.terms.most_end_pages))
            .map_or(Approach::Whole, |end| Approach::GrowingEnd(Box::new(end)))
    }

    fn may_read_end(&self, user_id: i64, held: &ListState, page_rows: u64) -> bool {
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
            && held.rows >= page_rows
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
