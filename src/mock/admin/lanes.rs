//! Opening, switching and closing lanes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::admin_request::{
    AdminRequest, Held, NewDialect, NewDrift, NewFaults, NewLane, NewRate, NewTime,
};
use super::problem::Problem;
use super::{Admin, describe, worlds};
use crate::audit::{AuditError, List};
use crate::faults::rule::{Rule, read_rules};
use crate::faults::rules::RuleId;
use crate::journal::Entry;
use crate::lane::{Lane, LaneOptions};
use backread_clock::virtual_start;

const MOST_ENTRIES: u64 = 1000;

impl Admin {
    pub(super) fn lanes(&self, request: &AdminRequest<'_>) -> Result<Value, Problem> {
        match request.method {
            "GET" => {
                request.no_query()?;
                let lanes = self.service.lanes();
                let lanes = lanes.iter().map(|lane| describe::lane(lane, &self.service));
                Ok(json!({"lanes": lanes.collect::<Vec<Value>>()}))
            }
            "POST" => self.open_lane(request.body()?),
            _ => Err(Problem::wrong_method("GET, POST")),
        }
    }

    pub(super) fn lane(
        &self,
        name: &str,
        rest: &[&str],
        request: &AdminRequest<'_>,
    ) -> Result<Value, Problem> {
        let lane = self.find(name)?;
        let lane = &lane;
        match rest {
            [] => match request.method {
                "GET" => request.only_get(|| Ok(describe::lane(lane, &self.service))),
                "DELETE" => self.close_lane(lane, request),
                _ => Err(Problem::wrong_method("GET, DELETE")),
            },
            ["journal"] => journal(lane, request),
            ["dialect"] => dialect(lane, request),
            ["rate"] => rate(lane, request),
            ["faults"] => faults(lane, request),
            ["faults", id] => remove_fault(lane, id, request),
            ["world", rest @ ..] => worlds::answer(lane, rest, request),
            ["drifts"] => drifts(lane, request),
            ["clock"] => clock(lane, request),
            ["audit"] => audit(lane, request),
            _ => Err(Problem::unknown_path()),
        }
    }

    fn find(&self, name: &str) -> Result<Arc<Lane>, Problem> {
        let mut lanes = self.service.lanes().into_iter();
        lanes
            .find(|lane| lane.name() == name)
            .ok_or_else(|| Problem::not_found(format!("there is no lane {name:?}")))
    }

    fn open_lane(&self, new: NewLane) -> Result<Value, Problem> {
        let world = match new.world {
            Some(world) => Some(Arc::new(world.make()?)),
            None => None,
        };
        let dialect = new
            .dialect
            .map(|text| text.parse().map_err(Problem::wrong::<String>));
        let rate = new
            .rate
            .map(|text| text.parse().map_err(Problem::wrong::<String>));
        let options = LaneOptions {
            seed: new.seed,
            dialect: dialect.transpose()?.unwrap_or_default(),
            rate: rate.transpose()?,
            rules: read_texts(&new.faults)?,
            ..LaneOptions::default()
        };
        let lane = self.service.open_lane(new.name, world, options);
        let lane = lane.map_err(Problem::wrong)?;
        Ok(describe::lane(&lane, &self.service))
    }

    fn close_lane(&self, lane: &Arc<Lane>, request: &AdminRequest<'_>) -> Result<Value, Problem> {
        request.no_query()?;
        if Arc::ptr_eq(lane, self.service.main()) {
            let problem = "the main lane cannot be closed; it ends with the server";
            return Err(Problem::conflict(problem));
        }
        self.service.close(lane);
        Ok(json!({"closed": lane.name()}))
    }
}

fn journal(lane: &Lane, request: &AdminRequest<'_>) -> Result<Value, Problem> {
    match request.method {
        "GET" => {
            let [after, limit] =
                request.numbers([("after", 0, u64::MAX), ("limit", 100, MOST_ENTRIES)])?;
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let (entries, forgotten) = lane.journal.since(after, limit);
            let entries: Vec<_> = entries.iter().map(Entry::describe).collect();
            Ok(json!({"entries": entries, "forgotten": forgotten}))
        }
        "DELETE" => {
            request.no_query()?;
            lane.forget();
            Ok(json!({"entries": [], "forgotten": false}))
        }
        _ => Err(Problem::wrong_method("GET, DELETE")),
    }
}

fn dialect(lane: &Lane, request: &AdminRequest<'_>) -> Result<Value, Problem> {
    match request.method {
        "GET" => request.no_query()?,
        "PUT" => {
            let NewDialect { dialect } = request.body()?;
            lane.set_dialect(dialect.parse().map_err(Problem::wrong::<String>)?);
        }
        _ => return Err(Problem::wrong_method("GET, PUT")),
    }
    Ok(describe::dialect(&lane.dialect()))
}

fn rate(lane: &Lane, request: &AdminRequest<'_>) -> Result<Value, Problem> {
    match request.method {
        "GET" => request.no_query()?,
        "PUT" => {
            let NewRate { rate } = request.body()?;
            let rate = rate.map(|text| text.parse().map_err(Problem::wrong::<String>));
            lane.set_rate(rate.transpose()?);
        }
        _ => return Err(Problem::wrong_method("GET, PUT")),
    }
    Ok(json!({"rate": lane.rate().map(|rate| rate.to_string())}))
}

fn faults(lane: &Lane, request: &AdminRequest<'_>) -> Result<Value, Problem> {
    match request.method {
        "GET" => request.no_query()?,
        "PUT" => {
            let rules = rules(request)?;
            lane.rules.clear();
            add(lane, rules);
        }
        "POST" => add(lane, rules(request)?),
        "DELETE" => {
            request.no_query()?;
            lane.rules.clear();
        }
        _ => return Err(Problem::wrong_method("GET, PUT, POST, DELETE")),
    }
    Ok(json!({"faults": describe::faults(lane)}))
}

fn rules(request: &AdminRequest<'_>) -> Result<Vec<Rule>, Problem> {
    let NewFaults { faults } = request.body()?;
    read_texts(&faults)
}

fn read_texts(texts: &[String]) -> Result<Vec<Rule>, Problem> {
    let read = texts
        .iter()
        .map(|text| read_rules(text).map_err(Problem::wrong));
    Ok(read.collect::<Result<Vec<_>, _>>()?.concat())
}

fn add(lane: &Lane, rules: Vec<Rule>) {
    for rule in rules {
        lane.rules.add(rule);
    }
}

fn remove_fault(lane: &Lane, id: &str, request: &AdminRequest<'_>) -> Result<Value, Problem> {
    let "DELETE" = request.method else {
        return Err(Problem::wrong_method("DELETE"));
    };
    request.no_query()?;
    let known = id.parse().is_ok_and(|id| lane.rules.remove(RuleId(id)));
    if !known {
        let problem = format!("there is no fault {id:?}; GET faults lists the ids");
        return Err(Problem::not_found(problem));
    }
    Ok(json!({"faults": describe::faults(lane)}))
}

fn drifts(lane: &Lane, request: &AdminRequest<'_>) -> Result<Value, Problem> {
    match request.method {
        "GET" => request.no_query()?,
        "POST" => {
            let new: NewDrift = request.body()?;
            lane.drifts.add(new.read()?);
        }
        "DELETE" => {
            request.no_query()?;
            lane.drifts.clear();
        }
        _ => return Err(Problem::wrong_method("GET, POST, DELETE")),
    }
    Ok(json!({"waiting": lane.drifts.waiting()}))
}

fn clock(lane: &Lane, request: &AdminRequest<'_>) -> Result<Value, Problem> {
    match request.method {
        "GET" => request.no_query()?,
        "POST" => {
            let new: NewTime = request.body()?;
            set_clock(lane, &new)?;
        }
        _ => return Err(Problem::wrong_method("GET, POST")),
    }
    Ok(describe::clock(lane))
}

fn set_clock(lane: &Lane, new: &NewTime) -> Result<(), Problem> {
    let start = new.start.as_ref().map(|text| moment(text)).transpose()?;
    let length = new.advance.map(length).transpose()?;
    let stays = new.is_virtual.unwrap_or(lane.clock.is_virtual());
    if !stays && (start.is_some() || length.is_some()) {
        let problem = "only virtual time can be moved; send \"virtual\": true";
        return Err(Problem::conflict(problem));
    }
    match (new.is_virtual, start) {
        (Some(false), _) => lane.clock.make_real(),
        (_, Some(start)) => lane.clock.make_virtual(start),
        (Some(true), None) if !lane.clock.is_virtual() => lane.clock.make_virtual(virtual_start()),
        _ => {}
    }
    match length {
        Some(length) => lane.clock.advance(length).map_err(Problem::conflict),
        None => Ok(()),
    }
}

fn moment(text: &str) -> Result<SystemTime, Problem> {
    let at = text.parse::<Timestamp>().map_err(|error| {
        Problem::wrong(format!(
            "start: must be a timestamp such as 2026-01-01T00:00:00Z: {error}"
        ))
    })?;
    Ok(at.into())
}

fn length(seconds: f64) -> Result<Duration, Problem> {
    const MOST: f64 = 1e9;
    if (0.0..=MOST).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(Problem::wrong(format!(
        "advance: must be from 0 to {MOST} seconds, not {seconds}"
    )))
}

fn audit(lane: &Lane, request: &AdminRequest<'_>) -> Result<Value, Problem> {
    let "POST" = request.method else {
        return Err(Problem::wrong_method("POST"));
    };
    let Held { ids, messages_of } = request.body()?;
    let list = messages_of.map_or(List::Users, |user_id| List::Messages { user_id });
    let audit = lane.audit(list, &ids).map_err(|error| match error {
        AuditError::NoUser { .. } => Problem::not_found(error),
        AuditError::Forgotten { .. } => Problem::conflict(error),
    })?;
    Ok(describe::audit(&audit))
}
