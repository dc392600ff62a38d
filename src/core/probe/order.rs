//! By which field lists are ordered, in which direction, and whether the order is the same in each
//! response.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::slice;

use serde_json::Value;

use super::probe_client::{Listed, identity};
use super::profile::{Direction, Order};
use crate::timestamp::Timestamp;

/// The fields that a service may sort by, the likeliest first: the first that fits is the finding.
const FIELDS: [&str; 5] = ["id", "created_at", "updated_at", "online_at", "name"];
/// Rows are in order by chance at most once in this many cases, for `id` and `created_at`,
const CHANCE: f64 = 100.0;
/// and for any other field.
const CHANCE_OF_OTHERS: f64 = 5_000.0;
/// A rough order requires a list with at least this many rows,
const ROUGH_ROWS: usize = 20;
/// and this many more ordered than unordered pairs, as a share of all (Kendall).
const ROUGH: f64 = 0.6;
/// The fewest rows that show whether an order is stable.
pub const STABLE_ROWS: usize = 5;

/// The value of a field, comparable with others that were read in the same way.
type Key = (i128, String);

/// The order that all lists share; each list is its rows in the service's order.
pub fn find(lists: &[Vec<&Value>]) -> Option<Order> {
    let longest = lists.iter().max_by_key(|rows| rows.len())?;
    let exact = FIELDS.into_iter().find_map(|field| {
        let enough = match field {
            "id" | "created_at" => CHANCE,
            _ => CHANCE_OF_OTHERS,
        };
        let readings = readings(lists, field);
        let direction = readings.iter().find_map(|keys| exact(keys, enough.ln()));
        Some((field, direction?, true))
    });
    let rough = |field| {
        let readings = readings(slice::from_ref(longest), field);
        let direction = readings.iter().flatten().find_map(|keys| rough(keys));
        Some((field, direction?, false))
    };
    let (field, direction, exact) = exact.or_else(|| FIELDS.into_iter().find_map(rough))?;
    Some(Order {
        field,
        direction,
        exact,
    })
}

/// The direction in which all lists are sorted, if that is unlikely enough by chance.
fn exact(lists: &[Vec<Key>], enough: f64) -> Option<Direction> {
    let rarity = |wanted| lists.iter().map(|keys| rarity(keys, wanted)).sum::<f64>();
    let (up, down) = (rarity(Ordering::Less), rarity(Ordering::Greater));
    match (up > 0.0, down > 0.0) {
        (true, false) if up >= enough => Some(Direction::Ascending),
        (false, true) if down >= enough => Some(Direction::Descending),
        _ => None,
    }
}

/// How improbable it is that a list has this many such steps by chance, as a natural logarithm; 0
/// without any.
fn rarity(keys: &[Key], wanted: Ordering) -> f64 {
    let pairs = keys.iter().zip(keys.iter().skip(1));
    let steps = pairs.filter(|(one, next)| one.cmp(next) == wanted).count();
    // This many ordered steps in a row are one of (steps + 1)! permutations.
    (2..=steps + 1).map(|number| (number as f64).ln()).sum()
}

/// The direction in which a list is sorted except for some pairs.
fn rough(keys: &[Key]) -> Option<Direction> {
    if keys.len() < ROUGH_ROWS {
        return None;
    }
    let mut balance = 0;
    for (place, one) in keys.iter().enumerate() {
        let later = keys.iter().skip(place + 1);
        balance += later.map(|other| other.cmp(one) as i64).sum::<i64>();
    }
    let pairs = keys.len() * (keys.len() - 1) / 2;
    let tau = balance as f64 / pairs as f64;
    (tau.abs() >= ROUGH).then_some(match tau > 0.0 {
        true => Direction::Ascending,
        false => Direction::Descending,
    })
}

fn number(value: i128) -> Key {
    (value, String::new())
}

/// The ways to compare the values of a field, without rows that lack it.
fn readings(lists: &[Vec<&Value>], field: &str) -> Vec<Vec<Vec<Key>>> {
    let ways: [fn(&Value) -> Option<Key>; 4] = [
        // Ids are numbers, or text with only digits.
        |value| value.to_string().trim_matches('"').parse().ok().map(number),
        |value| Timestamp::parse(value.as_str()?).map(|at| number(at.microseconds().into())),
        |value| Some((0, value.as_str()?.to_owned())),
        |value| Some((0, value.as_str()?.to_lowercase())),
    ];
    let read = |way| {
        let keys = |rows: &Vec<&Value>| {
            let values = rows.iter().filter_map(|row| row.get(field));
            values.filter(|value| !value.is_null()).map(way).collect()
        };
        lists.iter().map(keys).collect()
    };
    ways.into_iter().filter_map(read).collect()
}

/// Whether two responses to the same or overlapping requests have their common rows in the same
/// order. Rows may have been added or deleted in between.
pub fn is_stable(one: &[String], other: &[String]) -> Option<bool> {
    let shorter = one.len().min(other.len());
    if shorter < STABLE_ROWS {
        return None;
    }
    let places = other.iter().enumerate().map(|(place, id)| (id, place));
    let places: HashMap<&String, usize> = places.collect();
    let shared: Vec<&usize> = one.iter().filter_map(|id| places.get(id)).collect();
    Some(shared.len() * 2 >= shorter && shared.is_sorted())
}

/// Rows of one list in the order of their offsets, each once.
pub fn in_sequence(pages: &[Listed]) -> Vec<&Value> {
    let mut pages: Vec<&Listed> = pages.iter().collect();
    pages.sort_by_key(|page| page.requested_offset);
    let mut seen = HashSet::new();
    let rows = pages.into_iter().flat_map(|page| &page.rows);
    rows.filter(|row| seen.insert(identity(row))).collect()
}
