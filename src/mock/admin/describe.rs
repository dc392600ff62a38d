//! The state of a server as JSON.

use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::audit::Audit;
use crate::dialect::{BUNDLES, Dialect};
use crate::lane::Lane;
use crate::service::Service;
use crate::switch::Choice;

/// All state that is cheap to compute.
pub fn state(url: &str, service: &Service) -> Value {
    let lanes: Vec<Value> = service
        .lanes()
        .iter()
        .map(|open| lane(open, service))
        .collect();
    json!({
        "server": {
            "url": url,
            "vendor": service.vendor(),
            "backread": env!("CARGO_PKG_VERSION"),
        },
        "lanes": lanes,
        "dialects": dialects(),
    })
}

/// One lane.
pub fn lane(lane: &Arc<Lane>, service: &Service) -> Value {
    json!({
        "name": lane.name(),
        "secret": lane.secret(),
        "main": Arc::ptr_eq(lane, service.main()),
        "seed": lane.seed(),
        "world": {"total_users": lane.world().total_users()},
        "dialect": dialect(&lane.dialect()),
        "rate": lane.rate().map(|rate| rate.to_string()),
        "faults": faults(lane),
        "clock": clock(lane),
        "counts": lane.counters.by_route().into_iter().map(|(route, count)| (route.name().to_owned(), count.into())).collect::<Map<_, _>>(),
        "statuses": lane.counters.by_status().into_iter().map(|(status, count)| (status.to_string(), count.into())).collect::<Map<_, _>>(),
        "drifts_waiting": lane.drifts.waiting(),
    })
}

/// The available dialects: the bundles, and for each switch its words or its bounds.
fn dialects() -> Value {
    let switches = Dialect::choices().into_iter().map(|(name, choice)| {
        let choice = match choice {
            Choice::Words(words) => json!(words),
            Choice::UpTo(most) => json!({"least": 1, "most": most}),
        };
        (name.to_owned(), choice)
    });
    json!({
        "bundles": BUNDLES.map(|(name, _)| name),
        "switches": switches.collect::<Map<_, _>>(),
    })
}

/// A dialect by its shortest text and by its switches.
pub fn dialect(dialect: &Dialect) -> Value {
    let switches = dialect.switches().into_iter();
    json!({
        "text": dialect.to_string(),
        "conforms": dialect.conforms(),
        "switches": switches.map(|(name, value)| (name.to_owned(), value.into())).collect::<Map<_, _>>(),
    })
}

/// The active rules, in their order.
pub fn faults(lane: &Lane) -> Value {
    let rules = lane.rules.list().into_iter();
    rules
        .map(|active| {
            json!({
                "id": active.id.0,
                "rule": active.rule.to_string(),
                "fired": active.fired,
            })
        })
        .collect()
}

pub fn clock(lane: &Lane) -> Value {
    let slept = lane.clock.slept();
    json!({
        "virtual": lane.clock.is_virtual(),
        "now": moment(lane.clock.wall()),
        "waits": slept.len(),
    })
}

pub fn audit(found: &Audit) -> Value {
    let ok = found.missing.is_empty() && found.repeated.is_empty() && found.unexpected.is_empty();
    json!({
        "ok": ok,
        "expected": found.expected,
        "missing": found.missing,
        "repeated": found.repeated,
        "unexpected": found.unexpected,
    })
}

/// A time in UTC, to the millisecond.
fn moment(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or_default();
    format!("{at:.3}")
}
