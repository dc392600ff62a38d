//! The active rules, and which of them fire on a request.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use super::delivery::{Delivery, Effect, Latency};
use super::rule::Rule;
use crate::routes::{Attempts, Purpose, Route, Target};
use crate::world::draw::{Digest, blend};

/// Rules in the order in which they were set. Except for `xN`, their effect on a request depends on
/// the seed, on what is requested and on how often it was requested, never on the order of arrival.
#[derive(Debug, Default)]
pub struct Rules {
    active: RwLock<Vec<ActiveRule>>,
    last: AtomicU64,
}

#[derive(Debug)]
struct ActiveRule {
    id: u64,
    rule: Rule,
    /// Makes its random numbers differ from those of other rules.
    salt: u64,
    fired: AtomicU64,
    /// Requests that matched.
    seen: Attempts,
    /// Requests that it fired on.
    spent: Attempts,
}

impl Rules {
    /// Adds rules; earlier rules take precedence.
    pub fn add(&self, rules: impl IntoIterator<Item = Rule>) {
        self.write().extend(rules.into_iter().map(|rule| {
            let mut digest = Digest::new();
            digest.text(&rule.text);
            ActiveRule {
                id: self.last.fetch_add(1, Relaxed) + 1,
                rule,
                salt: digest.value(),
                fired: AtomicU64::new(0),
                seen: Attempts::default(),
                spent: Attempts::default(),
            }
        }));
    }

    /// Removes a rule by its id; false if it does not exist.
    pub fn remove(&self, id: u64) -> bool {
        self.write()
            .extract_if(.., |active| active.id == id)
            .count()
            > 0
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.write().clear();
    }

    /// The active rules in their order: the id, the rule, and how often it fired.
    pub fn list(&self) -> Vec<(u64, Rule, u64)> {
        let active = self.active.read().unwrap_or_else(PoisonError::into_inner);
        let shown = active.iter();
        shown
            .map(|each| (each.id, each.rule.clone(), each.fired.load(Relaxed)))
            .collect()
    }

    /// How to answer a request; counts one more attempt of it for each rule that it matches.
    pub fn choose(&self, seed: u64, request: &Target) -> Delivery {
        let mut delivery = Delivery::default();
        let active = self.active.read().unwrap_or_else(PoisonError::into_inner);
        for each in active.iter().filter(|each| each.rule.matches(request)) {
            each.apply(seed, request, &mut delivery);
        }
        delivery
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<ActiveRule>> {
        self.active.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveRule {
    fn apply(&self, seed: u64, request: &Target, delivery: &mut Delivery) {
        let rule = &self.rule;
        let effect = &rule.fault.effect;
        let is_random = matches!(effect, Effect::Delay(Latency::Lognormal { .. }));
        let counted = rule.attempt.or(rule.every).is_some() || rule.p.is_some() || is_random;
        let number = if counted { self.seen.next(request) } else { 1 };
        let seed = blend(&[seed, self.salt]);
        let chance = |purpose| request.chance(seed, purpose, number);
        let is_due = rule.attempt.is_none_or(|attempt| attempt == number)
            && rule
                .every
                .is_none_or(|every| is_turn(request, number, every))
            && rule.p.is_none_or(|p| unit(chance(Purpose::Fault)) < p);
        if is_due && delivery.has_room_for(effect) && self.fire(request) {
            let bits = chance(Purpose::Latency);
            let chances = (unit(bits), unit(blend(&[bits])));
            delivery.add(effect, chances, &rule.text);
        }
    }

    /// Counts that it fires, unless it did so as often as it may.
    fn fire(&self, request: &Target) -> bool {
        let times = self.rule.times.unwrap_or(u64::MAX);
        if self.rule.each && self.spent.next(request) > times {
            return false;
        }
        let most = if self.rule.each { u64::MAX } else { times };
        let more = |fired| (fired < most).then(|| fired + 1);
        self.fired.fetch_update(Relaxed, Relaxed, more).is_ok()
    }
}

/// A number in `[0, 1)` from 64 bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Whether it is this attempt's turn. Pages take turns along the list, other requests at random,
/// and the next attempt of the same request is never hit immediately (except with every=1).
fn is_turn(request: &Target, attempt: u64, every: u64) -> bool {
    let page = match (request.offset, request.limit) {
        (Some(offset), Some(limit @ 1..)) if offset.is_multiple_of(limit) => offset / limit,
        // A single item, or an offset between two pages.
        _ => request.hash(),
    };
    let list = match request.route {
        Route::Messages => Target {
            offset: Some(0),
            ..*request
        }
        .hash(),
        _ => 0,
    };
    page.wrapping_add(list)
        .wrapping_add(attempt)
        .is_multiple_of(every)
}
