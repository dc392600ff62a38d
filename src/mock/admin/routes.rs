//! The admin interface's paths, and what each does.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::access::Problem;
use super::requests::{
    Held, NewDialect, NewFaults, NewLane, NewRate, NewTime, Since, WorldChange, body, query,
};
use super::{Admin, describe};
use crate::audit::AuditError;
use crate::drift::NewDrift;
use crate::lane::Lane;
use crate::service::Service;
use backread_clock::virtual_start;

const MOST_ENTRIES: usize = 1000;

const UNKNOWN_PATH: &str = "unknown path; the paths are /__mock/, /__mock/state, /__mock/lanes and \
                            /__mock/lanes/NAME, and below it journal, dialect, rate, faults, \
                            world, drifts, clock and audit";

/// The methods of a path; `None` if there is no such path.
fn methods(path: &[&str]) -> Option<&'static str> {
    Some(match path {
        ["state"] => "GET",
        ["lanes"] | ["lanes", _, "world" | "clock"] => "GET, POST",
        ["lanes", _] | ["lanes", _, "journal"] => "GET, DELETE",
        ["lanes", _, "dialect" | "rate"] => "GET, PUT",
        ["lanes", _, "faults"] => "GET, POST, PUT, DELETE",
        ["lanes", _, "faults", _] => "DELETE",
        ["lanes", _, "drifts"] => "GET, POST, DELETE",
        ["lanes", _, "audit"] => "POST",
        _ => return None,
    })
}

impl Admin {
    /// Answers an authorized request for a path below `/__mock/`.
    ///
    /// # Errors
    /// 400, 404, 405 or 409.
    pub(super) fn serve(
        &self,
        method: &str,
        path: &[&str],
        arguments: &str,
        sent: &[u8],
    ) -> Result<Value, Problem> {
        let service = &*self.service;
        let Some(allowed) = methods(path) else {
            return Err(Problem::new(404, UNKNOWN_PATH));
        };
        if !allowed.split(", ").any(|each| each == method) {
            return Err(Problem::wrong_method(allowed));
        }
        let is_journal = method == "GET" && matches!(path, [.., "journal"]);
        if !arguments.is_empty() && !is_journal {
            return Err(Problem::wrong("this path takes no arguments after ?"));
        }
        match path {
            ["lanes"] if method == "POST" => open_lane(service, body(sent)?),
            ["lanes"] => Ok(json!({"lanes": describe::lanes(service)})),
            ["lanes", name, part @ ..] => {
                let lane = service.lanes().into_iter().find(|lane| lane.name == *name);
                let unknown = || Problem::new(404, format!("there is no lane {name:?}"));
                let lane = lane.ok_or_else(unknown)?;
                match part {
                    [] if method == "DELETE" => close_lane(service, &lane),
                    [] => Ok(describe::lane(&lane, service)),
                    ["journal"] if is_journal => journal(&lane, &query(arguments)?),
                    _ => change(&lane, method, part, sent),
                }
            }
            _ => Ok(describe::state(&self.url, service)),
        }
    }
}

fn open_lane(service: &Service, mut new: NewLane) -> Result<Value, Problem> {
    let world = new.world.take().map(|world| world.make().map(Arc::new));
    let lane = service.open_lane(new.name.take(), world.transpose()?, new.options());
    Ok(describe::lane(&lane.map_err(Problem::wrong)?, service))
}

fn close_lane(service: &Service, lane: &Arc<Lane>) -> Result<Value, Problem> {
    if Arc::ptr_eq(lane, service.main()) {
        let problem = "the main lane cannot be closed; it ends with the server";
        return Err(Problem::conflict(problem));
    }
    service.close(lane);
    Ok(json!({"closed": lane.name}))
}

fn journal(lane: &Lane, since: &Since) -> Result<Value, Problem> {
    if since.limit > MOST_ENTRIES {
        return Err(Problem::wrong(format!(
            "limit: must be from 0 to {MOST_ENTRIES}"
        )));
    }
    let (entries, forgotten) = lane.journal.since(since.after, since.limit);
    Ok(json!({"entries": entries, "forgotten": forgotten}))
}

/// Changes a part of a lane unless the method is GET, and describes the part.
fn change(lane: &Lane, method: &str, part: &[&str], sent: &[u8]) -> Result<Value, Problem> {
    match (part, method) {
        (["journal"], _) => {
            lane.forget();
            journal(lane, &Since::default())
        }
        (["dialect"], _) => {
            if method == "PUT" {
                lane.set_dialect(body::<NewDialect>(sent)?.dialect.0);
            }
            Ok(describe::dialect(&lane.dialect()))
        }
        (["rate"], _) => {
            if method == "PUT" {
                lane.set_rate(body::<NewRate>(sent)?.rate.map(|rate| rate.0));
            }
            Ok(json!({"rate": lane.rate().map(|rate| rate.to_string())}))
        }
        (["faults", id], _) => {
            if id.parse().is_ok_and(|id| lane.rules.remove(id)) {
                return Ok(json!({"faults": describe::faults(lane)}));
            }
            let problem = format!("there is no fault {id:?}; GET faults lists the ids");
            Err(Problem::new(404, problem))
        }
        (["faults"], _) => {
            let new = match method {
                "POST" | "PUT" => body::<NewFaults>(sent)?.faults,
                _ => Vec::new(),
            };
            if method == "PUT" || method == "DELETE" {
                lane.rules.clear();
            }
            lane.rules.add(new);
            Ok(json!({"faults": describe::faults(lane)}))
        }
        (["world"], "POST") => {
            let added = body::<WorldChange>(sent)?.apply(&lane.world)?;
            Ok(json!({"added": added, "total_users": lane.world.total_users()}))
        }
        (["world"], _) => Ok(describe::world(&lane.world)),
        (["drifts"], _) => {
            match method {
                "POST" => lane
                    .drifts
                    .add(body::<NewDrift>(sent)?.read().map_err(Problem::wrong)?),
                "DELETE" => lane.drifts.clear(),
                _ => {}
            }
            Ok(json!({"waiting": lane.drifts.waiting()}))
        }
        (["clock"], _) => {
            if method == "POST" {
                set_clock(lane, &body(sent)?)?;
            }
            Ok(describe::clock(lane))
        }
        _ => audit(lane, &body(sent)?),
    }
}

fn set_clock(lane: &Lane, new: &NewTime) -> Result<(), Problem> {
    const MOST: f64 = 1e9;
    let length = new
        .advance
        .filter(|seconds| !(0.0..=MOST).contains(seconds));
    if let Some(seconds) = length {
        let problem = format!("advance: must be from 0 to {MOST} seconds, not {seconds}");
        return Err(Problem::wrong(problem));
    }
    let stays = new.is_virtual.unwrap_or(lane.clock.is_virtual());
    if !stays && (new.start.is_some() || new.advance.is_some()) {
        let problem = "only virtual time can be moved; send \"virtual\": true";
        return Err(Problem::conflict(problem));
    }
    match (new.is_virtual, &new.start) {
        (Some(false), _) => lane.clock.make_real(),
        (_, Some(start)) => lane.clock.make_virtual(start.0.into()),
        (Some(true), None) if !lane.clock.is_virtual() => lane.clock.make_virtual(virtual_start()),
        _ => {}
    }
    match new.advance.map(Duration::from_secs_f64) {
        Some(length) => lane.clock.advance(length).map_err(Problem::conflict),
        None => Ok(()),
    }
}

fn audit(lane: &Lane, held: &Held) -> Result<Value, Problem> {
    let audit = lane.audit(held.messages_of, &held.ids);
    let audit = audit.map_err(|error| match error {
        AuditError::NoUser { .. } => Problem::new(404, error),
        AuditError::Forgotten { .. } => Problem::conflict(error),
    })?;
    Ok(describe::audit(&audit))
}
