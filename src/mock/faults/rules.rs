//! The active rules, and which of them fire on a request.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::faults::delivery::Delivery;
use crate::faults::rule::Rule;
use crate::request_key::{Attempts, Purpose, RequestKey, unit};
use crate::routes::Route;
use crate::world::draw::{Digest, blend};

/// Rules in the order in which they were set. Their effect on a request depends on the seed, on
/// what is requested and on how often it was requested, never on the order of arrival.
#[derive(Debug, Default)]
pub struct Rules {
    armed: RwLock<Vec<Armed>>,
    last: AtomicU64,
}

/// Identifies an active rule; unique within a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleId(pub u64);

/// An active rule.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveRule {
    pub id: RuleId,
    pub rule: Rule,
    /// How often it fired.
    pub fired: u64,
}

#[derive(Debug)]
struct Armed {
    id: RuleId,
    rule: Rule,
    text: Arc<str>,
    /// Makes its random numbers differ from those of other rules.
    salt: u64,
    fired: AtomicU64,
    /// Requests that matched.
    seen: Attempts,
    /// Requests that it fired on.
    spent: Attempts,
}

impl Rules {
    /// Adds a rule; earlier rules take precedence.
    pub fn add(&self, rule: Rule) -> RuleId {
        let id = RuleId(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        self.write().push(Armed::new(id, rule));
        id
    }

    /// Removes a rule; false if it does not exist.
    pub fn remove(&self, id: RuleId) -> bool {
        let mut armed = self.write();
        let before = armed.len();
        armed.retain(|armed| armed.id != id);
        armed.len() < before
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.write().clear();
    }

    /// The active rules, in their order.
    pub fn list(&self) -> Vec<ActiveRule> {
        let armed = self.read();
        armed.iter().map(Armed::active).collect()
    }

    /// How to answer a request; counts one more attempt of it for each rule that it matches.
    pub fn choose(&self, seed: u64, request: &RequestKey) -> Delivery {
        let mut delivery = Delivery::default();
        for armed in self.read().iter() {
            armed.apply(seed, request, &mut delivery);
        }
        delivery
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<Armed>> {
        self.armed.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Armed>> {
        self.armed.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Armed {
    fn new(id: RuleId, rule: Rule) -> Self {
        let text = rule.to_string();
        let mut digest = Digest::new();
        digest.text(&text);
        Self {
            id,
            rule,
            text: text.into(),
            salt: digest.value(),
            fired: AtomicU64::new(0),
            seen: Attempts::default(),
            spent: Attempts::default(),
        }
    }

    fn active(&self) -> ActiveRule {
        ActiveRule {
            id: self.id,
            rule: self.rule.clone(),
            fired: self.fired.load(Ordering::Relaxed),
        }
    }

    fn apply(&self, seed: u64, request: &RequestKey, delivery: &mut Delivery) {
        let Rule {
            on,
            attempt,
            every,
            p,
            fault,
            times,
        } = &self.rule;
        if !on.matches(request) {
            return;
        }
        let counted = attempt.is_some() || every.is_some() || p.is_some() || fault.is_random();
        let number = if counted { self.seen.next(request) } else { 1 };
        let seed = blend(&[seed, self.salt]);
        let chance = |purpose| request.chance(seed, purpose, number);
        let is_due = attempt.is_none_or(|attempt| attempt.get() == number)
            && every.is_none_or(|every| is_turn(request, number, every))
            && p.is_none_or(|p| p.holds(unit(chance(Purpose::Fault))));
        if !is_due {
            return;
        }
        let bits = chance(Purpose::Latency);
        let effect = fault.effect((unit(bits), unit(blend(&[bits]))));
        if delivery.has_room_for(&effect) && times.is_none_or(|times| self.spend(request, times)) {
            delivery.add(effect, &self.text);
            self.fired.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn spend(&self, request: &RequestKey, times: NonZeroU64) -> bool {
        self.spent.next(request) <= times.get()
    }
}

/// Whether it is this attempt's turn. Pages take turns along the list, other requests at random,
/// and the next attempt of the same request is never hit immediately (except with every=1).
fn is_turn(request: &RequestKey, attempt: u64, every: NonZeroU64) -> bool {
    let limit = request.limit.max(1);
    // An offset between two pages has no page number.
    let page = if request.offset.is_multiple_of(limit) {
        request.offset / limit
    } else {
        request.hash()
    };
    let number = match request.route {
        Route::Users => page,
        Route::Messages => page.wrapping_add(
            RequestKey {
                offset: 0,
                ..*request
            }
            .hash(),
        ),
        _ => request.hash(),
    };
    number.wrapping_add(attempt).is_multiple_of(every.get())
}
