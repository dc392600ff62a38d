//! Manual changes of a world; everything else stays generated.

use std::sync::Arc;
use tokio::time::Instant;

use serde_json::{Map, Value};

use super::draw::Digest;
use super::hints::{Hints, LAG};
use super::remaining_rows::RemovedRows;
use super::sorted::Sorted;

/// Named fields of one row, set to given values.
pub type Fields = Map<String, Value>;

/// The changes of a user's messages that the user's `updated_at` and `online_at` show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Messages added after the generated ones.
    pub added: u64,
    /// How often messages were edited or removed.
    pub edited: u64,
}

/// The changes to one user.
#[derive(Clone, Debug, Default)]
pub struct UserChange {
    /// All changes of messages.
    pub done: Activity,
    /// Those that the hints show,
    shown: Activity,
    /// and those that they will show from a later time on.
    due: Option<(Instant, Activity)>,
    /// Removed messages, by position.
    pub removed: RemovedRows,
    pub fields: Fields,
    /// Fields of messages, by position.
    pub messages: Sorted<Arc<Fields>>,
}

impl UserChange {
    /// Whether the user's own row was changed.
    pub fn changes_row(&self) -> bool {
        self.shown != Activity::default() || self.due.is_some() || !self.fields.is_empty()
    }

    fn is_empty(&self) -> bool {
        !self.changes_row()
            && self.done == Activity::default()
            && self.removed.len() == 0
            && self.messages.is_empty()
    }

    /// Notes that messages were changed.
    pub fn announce(&mut self, hints: Hints, now: Instant) {
        match hints {
            Hints::Follow => (self.shown, self.due) = (self.done, None),
            Hints::Lag => {
                self.shown = self.activity(now);
                let waiting = self.due.filter(|(at, _)| *at > now);
                let at = waiting.map_or_else(|| now + LAG, |(at, _)| at);
                self.due = Some((at, self.done));
            }
            Hints::Never => {}
        }
    }

    /// What the hints show at a time.
    pub fn activity(&self, now: Instant) -> Activity {
        let due = self.due.filter(|(at, _)| *at <= now);
        due.map_or(self.shown, |(_, activity)| activity)
    }
}

/// All changes of a world. A copy shares whatever is not changed further.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    pub added_users: u64,
    pub removed_users: RemovedRows,
    pub users: Sorted<Arc<UserChange>>,
    /// The difference between the number of messages and the generated number.
    pub message_delta: i64,
}

impl Overlay {
    /// Changes something about one user.
    pub fn update(&mut self, index: u64, change: impl FnOnce(&mut UserChange)) {
        self.users.update(index, |user| change(Arc::make_mut(user)));
    }

    /// Adds all changes to a fingerprint; a world without changes adds the same as a new one.
    pub fn digest(&self, digest: &mut Digest) {
        digest.number(self.added_users);
        self.removed_users.digest(digest);
        for (index, change) in self.users.iter().filter(|(_, change)| !change.is_empty()) {
            digest.number(index);
            let due = change.due.map_or(change.shown, |(_, activity)| activity);
            for Activity { added, edited } in [change.done, change.shown, due] {
                digest.number(added);
                digest.number(edited);
            }
            change.removed.digest(digest);
            digest_fields(&change.fields, digest);
            digest.number(change.messages.len() as u64);
            for (position, fields) in change.messages.iter() {
                digest.number(position);
                digest_fields(fields, digest);
            }
        }
    }
}

fn digest_fields(fields: &Fields, digest: &mut Digest) {
    digest.number(fields.len() as u64);
    for (name, value) in fields {
        digest.text(name);
        digest.text(&value.to_string());
    }
}
