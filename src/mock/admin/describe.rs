//! The state of a server as JSON.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::audit::Audit;
use crate::dialect::Dialect;
use crate::lane::Lane;
use crate::service::Service;
use crate::world::{GENERATOR_VERSION, World};

/// The most users whose messages are counted, which takes a second or two.
const MOST_COUNTED: u64 = 20_000_000;

/// All state that is cheap to compute.
pub fn state(url: &str, service: &Service) -> Value {
    let (vendor, version) = (service.vendor(), env!("CARGO_PKG_VERSION"));
    json!({
        "server": {"url": url, "vendor": vendor, "backread": version},
        "lanes": lanes(service),
    })
}

pub fn lanes(service: &Service) -> Value {
    service
        .lanes()
        .iter()
        .map(|each| lane(each, service))
        .collect()
}

/// One lane.
pub fn lane(lane: &Arc<Lane>, service: &Service) -> Value {
    json!({
        "name": lane.name,
        "secret": lane.secret,
        "main": Arc::ptr_eq(lane, service.main()),
        "seed": lane.seed,
        "world": {"total_users": lane.world.total_users()},
        "dialect": dialect(&lane.dialect()),
        "rate": lane.rate().map(|rate| rate.to_string()),
        "faults": faults(lane),
        "clock": clock(lane),
        "counts": lane.journal.routes(),
        "statuses": lane.journal.statuses(),
        "drifts_waiting": lane.drifts.waiting(),
    })
}

/// A dialect by its shortest text and by its switches.
pub fn dialect(dialect: &Dialect) -> Value {
    let switches = dialect.switches().into_iter();
    let switches = switches.map(|(name, value)| (name.to_owned(), value.into()));
    json!({
        "text": dialect.to_string(),
        "conforms": dialect.conforms(),
        "switches": switches.collect::<Map<_, _>>(),
    })
}

/// The active rules, in their order.
pub fn faults(lane: &Lane) -> Value {
    let rules = lane.rules.list().into_iter();
    rules
        .map(|(id, rule, fired)| json!({"id": id, "rule": rule.to_string(), "fired": fired}))
        .collect()
}

/// A clock, with the time in UTC to the millisecond.
pub fn clock(lane: &Lane) -> Value {
    let now = Timestamp::try_from(lane.clock.wall()).unwrap_or_default();
    json!({
        "virtual": lane.clock.is_virtual(),
        "now": format!("{now:.3}"),
        "waits": lane.clock.slept().len(),
    })
}

/// The numbers of a world; counting its messages and hashing its changes can be slow.
pub fn world(world: &World) -> Value {
    let (least, most) = world.messages_per_user();
    let counted = world.total_users() <= MOST_COUNTED;
    json!({
        "seed": world.seed(),
        "users": world.users(),
        "messages_per_user": [least, most],
        "total_users": world.total_users(),
        "total_messages": counted.then(|| world.total_messages()),
        "fingerprint": world.fingerprint(),
        "generator_version": GENERATOR_VERSION,
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
