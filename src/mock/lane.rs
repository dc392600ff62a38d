//! A lane: a world, the behaviour of the service that serves it, and the requests it got.

use std::sync::{Arc, Mutex};

use super::audit::{self, Audit, AuditError};
use super::dialect::Dialect;
use super::drift::Drifts;
use super::journal::{CAPACITY, Journal};
use super::lock;
use super::routes::{Attempts, Route};
use super::world::{View, World};
use crate::dialect::row_mutation::RowMutation;
use crate::faults::rate::{Bucket, Rate};
use crate::faults::rule::Rule;
use crate::faults::rules::Rules;
use backread_clock::Clock;

/// How a lane answers at first; everything except the journal's length can be changed later.
#[derive(Clone, Debug)]
pub struct LaneOptions {
    /// The seed for all randomness in the lane; `None` for the world's seed.
    pub seed: Option<u64>,
    pub dialect: Dialect,
    pub rate: Option<Rate>,
    pub rules: Vec<Rule>,
    /// The journal's capacity, in requests.
    pub journal: usize,
}

impl Default for LaneOptions {
    fn default() -> Self {
        Self {
            seed: None,
            dialect: Dialect::DOCUMENTED,
            rate: None,
            rules: Vec::new(),
            journal: CAPACITY,
        }
    }
}

/// One lane of a server.
#[derive(Debug)]
pub struct Lane {
    /// The lane's name in the inspector.
    pub name: String,
    /// The secret that its requests carry.
    pub secret: String,
    pub(super) media_type: String,
    pub world: Arc<World>,
    pub seed: u64,
    dialect: Mutex<Dialect>,
    pub(super) bucket: Mutex<Option<Bucket>>,
    pub(super) attempts: Attempts,
    /// The world when the lane began.
    pub(super) began: View,
    /// The world before the first request, or when the journal was cleared.
    before: Mutex<View>,
    pub rules: Rules,
    pub drifts: Drifts,
    pub clock: Clock,
    pub journal: Journal,
}

impl Lane {
    /// A lane that uses the machine's clock until it is switched.
    pub fn new(
        name: String,
        secret: String,
        vendor: &str,
        world: Arc<World>,
        options: LaneOptions,
    ) -> Self {
        let clock = Clock::switchable();
        let rules = Rules::default();
        rules.add(options.rules);
        let began = world.view();
        world.set_hints(options.dialect.hints, clock.clone());
        Self {
            name,
            secret,
            media_type: media_type(vendor),
            before: Mutex::new(began.clone()),
            began,
            seed: options.seed.unwrap_or(world.seed()),
            world,
            dialect: Mutex::new(options.dialect),
            bucket: Mutex::new(options.rate.map(|rate| Bucket::new(rate, clock.now()))),
            attempts: Attempts::default(),
            rules,
            drifts: Drifts::default(),
            clock,
            journal: Journal::new(options.journal),
        }
    }

    pub fn dialect(&self) -> Dialect {
        *lock(&self.dialect)
    }

    /// Switches to another dialect, from the next request on.
    pub fn set_dialect(&self, dialect: Dialect) {
        self.world.set_hints(dialect.hints, self.clock.clone());
        *lock(&self.dialect) = dialect;
    }

    pub fn rate(&self) -> Option<Rate> {
        lock(&self.bucket).map(|bucket| bucket.rate)
    }

    /// Limits the rate from now on, starting with a full bucket; `None` for no limit.
    pub fn set_rate(&self, rate: Option<Rate>) {
        *lock(&self.bucket) = rate.map(|rate| Bucket::new(rate, self.clock.now()));
    }

    /// Clears journal, counts and attempts; audits start from now.
    pub fn forget(&self) {
        self.journal.clear();
        self.attempts.clear();
        *lock(&self.before) = self.world.view();
    }

    /// Compares the ids that a reader has, as they were sent, with the rows that existed: the users,
    /// or the messages of `user`.
    ///
    /// # Errors
    /// `NoUser` for the messages of a user who never existed; `Forgotten` if the journal has
    /// dropped entries for later ones.
    pub fn audit(&self, user: Option<u64>, held: &[u64]) -> Result<Audit, AuditError> {
        let mutation = self.mutation();
        // The world's own ids of users are also accepted.
        let own = |id| mutation.own_id(id).unwrap_or(id);
        let user = user.map(own);
        let route = user.map_or(Route::Users, |_| Route::Messages);
        let (mut entries, forgotten) = self.journal.since(0, usize::MAX);
        if forgotten {
            let kept = entries.len();
            return Err(AuditError::Forgotten { kept });
        }
        entries.retain(|entry| entry.target.route == route && entry.target.user.map(own) == user);
        let first = entries.iter().find_map(|entry| entry.served.as_ref());
        let before = first.map_or_else(|| lock(&self.before).clone(), |served| served.view.clone());
        let now = self.world.view();
        if now.list(user).or_else(|_| before.list(user)).is_err() {
            let user_id = user.unwrap_or(0);
            return Err(AuditError::NoUser { user_id });
        }
        let (mut known, mut never_sent) = (Vec::new(), Vec::new());
        for id in held {
            match mutation.own_id(*id) {
                Some(own) => known.push(own),
                None => never_sent.push(*id),
            }
        }
        let mut audit = audit::audit(user, &known, before, entries, now);
        // The ids as the reader knows them.
        let missing = audit.missing.iter_mut().map(|row| &mut row.id);
        let repeated = audit.repeated.iter_mut().map(|row| &mut row.id);
        for id in missing.chain(repeated).chain(&mut audit.unexpected) {
            *id = mutation.sent_id(*id);
        }
        audit.unexpected.extend(never_sent);
        audit.unexpected.sort_unstable();
        audit.unexpected.dedup();
        Ok(audit)
    }

    pub(super) fn mutation(&self) -> RowMutation {
        RowMutation {
            dialect: self.dialect(),
            seed: self.seed,
        }
    }
}

/// The media type that requests accept.
pub(super) fn media_type(vendor: &str) -> String {
    format!("application/vnd.{vendor}.v1+json")
}
