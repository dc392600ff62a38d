//! Inspecting and changing worlds.

use serde_json::{Value, json};

use super::admin_request::{AdminRequest, WorldChange, some_rows};
use super::problem::Problem;
use crate::chunks::Chunks;
use crate::lane::Lane;
use crate::world::{GENERATOR_VERSION, World, WorldError};

const MOST_SHOWN: u64 = 99;
/// The most users whose messages are counted, which takes a second or two.
const MOST_COUNTED: u64 = 20_000_000;

pub fn answer(lane: &Lane, rest: &[&str], request: &AdminRequest<'_>) -> Result<Value, Problem> {
    let world = lane.world();
    match rest {
        [] => match request.method {
            "GET" => request.only_get(|| Ok(numbers(world))),
            "POST" => change(world, request.body()?),
            _ => Err(Problem::wrong_method("GET, POST")),
        },
        ["users", user] => request.only_get(|| look(world, user)),
        ["users", user, "messages"] => messages(world, user, request),
        _ => Err(Problem::unknown_path()),
    }
}

/// The numbers of a world; counting its messages and hashing its changes can be slow.
fn numbers(world: &World) -> Value {
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

/// Makes a change, and returns the ids of added rows.
fn change(world: &World, change: WorldChange) -> Result<Value, Problem> {
    let mut added = Vec::new();
    match change {
        WorldChange::AddUsers(count) => added = world.add_users(some_rows("add_users", count)?)?,
        WorldChange::AddMessages { user, count } => {
            added = world.add_messages(user, some_rows("add_messages.count", count)?)?;
        }
        WorldChange::RemoveUser(id) => world.remove_user(id)?,
        WorldChange::RemoveMessage { user, id } => world.remove_message(user, id)?,
        WorldChange::EditUser { id, fields } => world.edit_user(id, fields)?,
        WorldChange::EditMessage { user, id, fields } => world.edit_message(user, id, fields)?,
    }
    Ok(json!({"added": added, "total_users": world.total_users()}))
}

/// A user as the world has it, before the lane's dialect changes it.
fn look(world: &World, user: &str) -> Result<Value, Problem> {
    let view = world.view();
    let user_id = read_id(user)?;
    let mut row = Vec::new();
    if !view.write_user(user_id, &mut row) {
        return Err(WorldError::NoUser { user_id }.into());
    }
    let total = view.total_messages(user_id);
    Ok(json!({"user": read(&row)?, "total_messages": total}))
}

fn messages(world: &World, user: &str, request: &AdminRequest<'_>) -> Result<Value, Problem> {
    let "GET" = request.method else {
        return Err(Problem::wrong_method("GET"));
    };
    let [offset, limit] = request.numbers([("offset", 0, u64::MAX), ("limit", 25, MOST_SHOWN)])?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let view = world.view();
    let user_id = read_id(user)?;
    let total = view
        .total_messages(user_id)
        .ok_or(WorldError::NoUser { user_id })?;
    let mut rows = Chunks::default();
    rows.push("[");
    view.write_messages(user_id, offset, limit, &mut rows);
    rows.push("]");
    Ok(json!({"total": total, "messages": read(&rows.to_vec())?}))
}

fn read_id(text: &str) -> Result<u64, Problem> {
    let refuse = |_| Problem::wrong(format!("{text:?}: an id is digits only"));
    text.parse().map_err(refuse)
}

/// Rows as JSON, with exact numbers.
fn read(rows: &[u8]) -> Result<Value, Problem> {
    serde_json::from_slice(rows).map_err(|_| Problem::defect())
}
