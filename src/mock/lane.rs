//! A lane: a world, the behaviour of the service that serves it, and the requests it got.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use super::audit::{self, Audit, AuditError, List};
use super::counters::Counters;
use super::dialect::Dialect;
use super::drift::Drifts;
use super::journal::{CAPACITY, Journal};
use super::request_key::Attempts;
use super::routes::Route;
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
    dialect: ArcSwap<Dialect>,
    bucket: Mutex<Option<Bucket>>,
    pub(super) attempts: Attempts,
    /// The world when the lane began.
    pub(super) began: Arc<View>,
    /// The world before the first request, or when the journal was cleared.
    before: ArcSwap<View>,
    pub rules: Rules,
    pub drifts: Drifts,
    pub clock: Clock,
    pub journal: Journal,
    pub counters: Counters,
}

impl Lane {
    /// A lane that uses the machine's clock until it is switched.
    #[must_use]
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
        let began = Arc::new(world.view());
        world.set_hints(options.dialect.hints, clock.clone());
        Self {
            name,
            secret,
            media_type: media_type(vendor),
            before: ArcSwap::new(Arc::clone(&began)),
            began,
            seed: options.seed.unwrap_or(world.seed()),
            world,
            dialect: ArcSwap::from_pointee(options.dialect),
            bucket: Mutex::new(options.rate.map(|rate| Bucket::new(rate, clock.now()))),
            attempts: Attempts::default(),
            rules,
            drifts: Drifts::default(),
            clock,
            journal: Journal::new(options.journal),
            counters: Counters::default(),
        }
    }

    #[must_use]
    pub fn dialect(&self) -> Dialect {
        **self.dialect.load()
    }

    /// Switches to another dialect, from the next request on.
    pub fn set_dialect(&self, dialect: Dialect) {
        self.world.set_hints(dialect.hints, self.clock.clone());
        self.dialect.store(Arc::new(dialect));
    }

    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.bucket().map(|bucket| bucket.rate)
    }

    /// Limits the rate from now on, starting with a full bucket; `None` for no limit.
    pub fn set_rate(&self, rate: Option<Rate>) {
        *self.bucket() = rate.map(|rate| Bucket::new(rate, self.clock.now()));
    }

    pub(super) fn bucket(&self) -> MutexGuard<'_, Option<Bucket>> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The world before the first request, or when the journal was last cleared.
    #[must_use]
    pub fn before(&self) -> Arc<View> {
        self.before.load_full()
    }

    /// Clears journal, counts and attempts; audits start from now.
    pub fn forget(&self) {
        self.journal.clear();
        self.counters.clear();
        self.attempts.clear();
        self.before.store(Arc::new(self.world.view()));
    }

    /// Compares the ids that a reader has, as they were sent, with the rows that existed.
    ///
    /// # Errors
    /// `NoUser` for the messages of a user who never existed; `Forgotten` if the journal has
    /// dropped entries for later ones.
    pub fn audit(&self, list: List, held: &[u64]) -> Result<Audit, AuditError> {
        let mutation = self.mutation();
        // The world's own ids of users are also accepted.
        let own = |id| mutation.own_id(id).unwrap_or(id);
        let (list, route) = match list {
            List::Users => (List::Users, Route::Users),
            List::Messages { user_id } => {
                let user_id = own(user_id);
                (List::Messages { user_id }, Route::Messages)
            }
        };
        let (mut entries, forgotten) = self.journal.all();
        if forgotten {
            let kept = entries.len();
            return Err(AuditError::Forgotten { kept });
        }
        entries.retain(|entry| {
            entry.target.route == route && entry.target.user.map(own) == list.user()
        });
        let first = entries.iter().find_map(|entry| entry.served.as_ref());
        let before = match first {
            Some(served) => served.view.clone(),
            None => (**self.before.load()).clone(),
        };
        let now = self.world.view();
        now.list(list.user())
            .or_else(|_| before.list(list.user()))
            .map_err(|_| AuditError::NoUser {
                user_id: list.user().unwrap_or(0),
            })?;
        let (mut known, mut never_sent) = (Vec::new(), Vec::new());
        for id in held {
            match mutation.own_id(*id) {
                Some(own) => known.push(own),
                None => never_sent.push(*id),
            }
        }
        let mut audit = audit::audit(list, &known, before, entries, now);
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
