//! Manual changes of a world; everything else stays generated. Copies share what is not changed
//! further: a journal holds thousands of instants of a constantly changing world.

use std::time::Duration;

use roaring::RoaringBitmap;
use rpds::RedBlackTreeMapSync;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::draw::Digest;
use crate::switch::switch_enum;

/// How long after a change the hints move with [`Hints::Lag`].
const LAG: Duration = Duration::from_secs(300);

/// Named fields of one row, set to given values.
pub type Fields = Map<String, Value>;

switch_enum! {
    /// What a user's `updated_at` and `online_at` do when messages are added, edited or removed.
    Hints {
        /// They move at once.
        Follow = "follow",
        /// They move five minutes later.
        Lag = "lag",
        /// They stay.
        Never = "never",
    }
}

/// The changes of a user's messages that the user's `updated_at` and `online_at` show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Messages added after the generated ones.
    pub added: u64,
    /// How often messages were edited or removed.
    pub edited: u64,
}

/// The changes of one list. Numbers of rows are below 2^31.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListChanges {
    /// How many rows were added after the initial ones.
    pub added: u64,
    pub removed: RoaringBitmap,
    /// Fields that were set, by row.
    pub fields: RedBlackTreeMapSync<u64, Fields>,
}

impl ListChanges {
    fn digest(&self, digest: &mut Digest) {
        for number in [self.added, self.removed.len(), self.fields.size() as u64] {
            digest.number(number);
        }
        for row in &self.removed {
            digest.number(u64::from(row));
        }
        for (row, fields) in &self.fields {
            digest.number(*row);
            digest.number(fields.len() as u64);
            for (name, value) in fields {
                digest.text(name);
                digest.text(&value.to_string());
            }
        }
    }
}

/// The changes of one user's messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageChanges {
    pub list: ListChanges,
    /// How often messages were edited or removed.
    pub edited: u64,
    /// What the hints show,
    shown: Activity,
    /// and what they will show from a later time on.
    due: Option<(Instant, Activity)>,
}

impl MessageChanges {
    /// Moves the hints after a change.
    pub fn announce(&mut self, hints: Hints, now: Instant) {
        let done = Activity {
            added: self.list.added,
            edited: self.edited,
        };
        match hints {
            Hints::Follow => (self.shown, self.due) = (done, None),
            Hints::Lag => {
                self.shown = self.activity(now);
                let waiting = self.due.filter(|(at, _)| *at > now);
                let at = waiting.map_or_else(|| now + LAG, |(at, _)| at);
                self.due = Some((at, done));
            }
            Hints::Never => {}
        }
    }

    /// Whether the hints moved, or will.
    pub fn moves_hints(&self) -> bool {
        self.shown != Activity::default() || self.due.is_some()
    }

    /// What the hints show at a time.
    pub fn activity(&self, now: Instant) -> Activity {
        let due = self.due.filter(|(at, _)| *at <= now);
        due.map_or(self.shown, |(_, activity)| activity)
    }

    fn digest(&self, digest: &mut Digest) {
        self.list.digest(digest);
        let due = self.due.map_or(self.shown, |(_, activity)| activity);
        digest.number(self.edited);
        for Activity { added, edited } in [self.shown, due] {
            digest.number(added);
            digest.number(edited);
        }
    }
}

/// All changes of a world.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    pub users: ListChanges,
    /// By the user's row.
    pub messages: RedBlackTreeMapSync<u64, MessageChanges>,
}

impl Changes {
    /// Adds all changes to a fingerprint.
    pub fn digest(&self, digest: &mut Digest) {
        self.users.digest(digest);
        for (index, changes) in &self.messages {
            digest.number(*index);
            changes.digest(digest);
        }
    }
}
