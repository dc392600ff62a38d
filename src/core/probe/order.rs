//! By which field lists are ordered, in which direction, and whether the order is the same in each
//! response.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::probe_client::{Listed, identity};
use super::profile::{Direction, Order};
use crate::timestamp::Timestamp;

/// Preferred if several fields fit: what a service most likely sorts by.
const USUAL: [&str; 5] = ["id", "created_at", "updated_at", "online_at", "name"];
/// Rows are in order by chance at most once in this many cases, for `id` and `created_at`,
const CHANCE: f64 = 100.0;
/// and for any other field, of which there may be many.
const CHANCE_OF_OTHERS: f64 = 5_000.0;
/// A rough order requires a list with at least this many rows,
const ROUGH_ROWS: usize = 20;
/// and this many more ordered than unordered pairs, as a share of all (Kendall).
const ROUGH: f64 = 0.6;
/// The fewest rows that show whether an order is stable.
pub const STABLE_ROWS: usize = 5;

/// The value of a field, comparable with others of the same field.
#[derive(Debug, PartialEq, PartialOrd)]
enum Key {
    Whole(i128),
    Real(f64),
    Text(String),
}

/// The order that all lists share; each list is its rows in the service's order.
pub fn find(lists: &[Vec<&Value>]) -> Option<Order> {
    let fields = fields(lists);
    let exact = fields.iter().find_map(|field| exact(lists, field));
    exact.or_else(|| {
        let longest = lists.iter().max_by_key(|rows| rows.len())?;
        fields.iter().find_map(|field| rough(longest, field))
    })
}

/// The fields of the rows, usual ones first.
fn fields(lists: &[Vec<&Value>]) -> Vec<String> {
    let rows = lists.iter().flatten();
    let all: BTreeSet<&String> = rows
        .filter_map(|row| row.as_object())
        .flat_map(|row| row.keys())
        .collect();
    let rank = |field: &str| USUAL.iter().position(|usual| *usual == field);
    let mut fields: Vec<String> = all.into_iter().cloned().collect();
    fields.sort_by_key(|field| rank(field).unwrap_or(USUAL.len()));
    fields
}

fn exact(lists: &[Vec<&Value>], field: &str) -> Option<Order> {
    let enough = match field {
        "id" | "created_at" => CHANCE,
        _ => CHANCE_OF_OTHERS,
    };
    let readings = readings(lists, field);
    readings.iter().find_map(|lists| {
        let direction = match (
            steps(lists, Ordering::Less),
            steps(lists, Ordering::Greater),
        ) {
            (Some(rarity), None) if rarity >= enough.ln() => Direction::Ascending,
            (None, Some(rarity)) if rarity >= enough.ln() => Direction::Descending,
            _ => return None,
        };
        Some(Order {
            field: field.to_owned(),
            direction,
            exact: true,
        })
    })
}

/// The log of how unlikely it is that lists have only such steps by chance; `None` without a step.
fn steps(lists: &[Vec<Key>], wanted: Ordering) -> Option<f64> {
    let mut rarity = None;
    for keys in lists {
        let pairs = keys.iter().zip(keys.iter().skip(1));
        let count = pairs
            .filter(|(one, next)| one.partial_cmp(next) == Some(wanted))
            .count();
        // This many ordered steps in a row are one of (steps + 1)! permutations.
        let of_list: f64 = (2..=count + 1).map(|number| (number as f64).ln()).sum();
        if count > 0 {
            rarity = Some(rarity.unwrap_or(0.0) + of_list);
        }
    }
    rarity
}

fn rough(rows: &[&Value], field: &str) -> Option<Order> {
    let list = rows.to_vec();
    let readings = readings(&[list], field);
    readings.iter().flatten().find_map(|keys| {
        if keys.len() < ROUGH_ROWS {
            return None;
        }
        let mut balance = 0_i64;
        let mut pairs = 0_i64;
        for (place, one) in keys.iter().enumerate() {
            for other in keys.iter().skip(place + 1) {
                pairs += 1;
                balance += match one.partial_cmp(other) {
                    Some(Ordering::Less) => 1,
                    Some(Ordering::Greater) => -1,
                    _ => 0,
                };
            }
        }
        let tau = balance as f64 / pairs as f64;
        (tau.abs() >= ROUGH).then(|| Order {
            field: field.to_owned(),
            direction: match tau > 0.0 {
                true => Direction::Ascending,
                false => Direction::Descending,
            },
            exact: false,
        })
    })
}

/// The ways to compare the values of a field, without rows that lack it.
fn readings(lists: &[Vec<&Value>], field: &str) -> Vec<Vec<Vec<Key>>> {
    let ways: [fn(&Value) -> Option<Key>; 5] = [whole, real, instant, text, folded];
    ways.iter()
        .filter_map(|way| {
            lists
                .iter()
                .map(|rows| {
                    rows.iter()
                        .filter_map(|row| row.get(field).filter(|value| !value.is_null()))
                        .map(way)
                        .collect()
                })
                .collect()
        })
        .collect()
}

fn whole(value: &Value) -> Option<Key> {
    let digits = match value {
        Value::Number(number) => number.as_str(),
        Value::String(text) => text,
        _ => return None,
    };
    digits.parse().ok().map(Key::Whole)
}

fn real(value: &Value) -> Option<Key> {
    match value {
        Value::Number(number) => number.as_f64().map(Key::Real),
        _ => None,
    }
}

fn instant(value: &Value) -> Option<Key> {
    let instant = Timestamp::parse(value.as_str()?)?;
    Some(Key::Whole(instant.microseconds().into()))
}

fn text(value: &Value) -> Option<Key> {
    value.as_str().map(|text| Key::Text(text.to_owned()))
}

fn folded(value: &Value) -> Option<Key> {
    value.as_str().map(|text| Key::Text(text.to_lowercase()))
}

/// Whether two responses to the same or overlapping requests have their common rows in the same
/// order. Rows may have been added or deleted in between.
pub fn is_stable(one: &[String], other: &[String]) -> Option<bool> {
    if one.len().min(other.len()) < STABLE_ROWS {
        return None;
    }
    let places: HashMap<&String, usize> = other
        .iter()
        .enumerate()
        .map(|(place, id)| (id, place))
        .collect();
    let shared: Vec<usize> = one
        .iter()
        .filter_map(|id| places.get(id).copied())
        .collect();
    let kept = shared.len() * 2 >= one.len().min(other.len());
    Some(kept && shared.is_sorted())
}

/// Rows of one list in the order of their offsets, each once.
pub fn in_sequence(pages: &[Listed]) -> Vec<&Value> {
    let mut pages: Vec<&Listed> = pages.iter().collect();
    pages.sort_by_key(|page| page.requested_offset);
    let mut seen = BTreeSet::new();
    pages
        .into_iter()
        .flat_map(|page| &page.rows)
        .filter(|row| seen.insert(identity(row)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::SizeRange;
    use serde_json::json;

    fn found(rows: &[Value]) -> Option<(String, Direction, bool)> {
        let order = find(&[rows.iter().collect()])?;
        Some((order.field, order.direction, order.exact))
    }

    fn by(field: &str, values: Vec<Value>) -> Vec<Value> {
        // A distinct id for each row, in no order.
        let ids = [5, 1, 9, 3, 7, 2, 8, 4, 6, 10];
        values
            .into_iter()
            .zip(ids)
            .map(|(value, id)| json!({"id": id, field: value}))
            .collect()
    }

    #[test]
    fn the_field_is_found_whatever_its_type() {
        let instants = (0..9).map(|day| json!(format!("2024-01-0{}T00:00:00Z", 9 - day)));
        let exact = |field: &str, direction| Some((field.to_owned(), direction, true));
        assert_eq!(
            found(&by("created_at", instants.collect())),
            exact("created_at", Direction::Descending)
        );
        let names = [
            "Ada", "bob", "Cleo", "dora", "Emil", "fritz", "Grace", "hugo",
        ];
        assert_eq!(
            found(&by("name", names.iter().map(|name| json!(name)).collect())),
            exact("name", Direction::Ascending)
        );
        let scores = (0..8).map(|number| json!(f64::from(number) / 8.0));
        assert_eq!(
            found(&by("score", scores.collect())),
            exact("score", Direction::Ascending)
        );
        let text_ids: Vec<Value> = (1..15).map(|id| json!({"id": id.to_string()})).collect();
        assert_eq!(found(&text_ids), exact("id", Direction::Ascending));
    }

    #[test]
    fn equal_values_and_nulls_break_no_order() {
        let rows: Vec<Value> = [
            json!(1),
            json!(1),
            json!(null),
            json!(2),
            json!(3),
            json!(5),
            json!(9),
        ]
        .into_iter()
        .map(|id| json!({"id": id}))
        .collect();
        assert_eq!(
            found(&rows),
            Some(("id".to_owned(), Direction::Ascending, true))
        );
    }

    #[test]
    fn few_rows_prove_no_order() {
        let rows: Vec<Value> = (0..4).map(|id| json!({"id": id})).collect();
        assert_eq!(found(&rows), None);
        // Many short lists together are enough.
        let short: Vec<Vec<&Value>> = (0..7).map(|_| rows.iter().take(2).collect()).collect();
        assert!(find(&short).is_some());
        assert_eq!(find(&[]), None);
    }

    #[test]
    fn a_coarse_order_is_a_rough_one() {
        let rows: Vec<Value> = (0..40).map(|place| json!({"id": place ^ 7})).collect();
        assert_eq!(
            found(&rows),
            Some(("id".to_owned(), Direction::Ascending, false))
        );
        let rows: Vec<Value> = (0..40)
            .map(|place| json!({"id": place * 23 % 41}))
            .collect();
        assert_eq!(found(&rows), None);
    }

    #[test]
    fn rows_that_come_and_go_leave_an_order_stable() {
        let ids = |range: std::ops::Range<u32>| range.map(|id| id.to_string()).collect::<Vec<_>>();
        assert_eq!(is_stable(&ids(0..9), &ids(0..9)), Some(true));
        assert_eq!(is_stable(&ids(0..9), &ids(2..11)), Some(true));
        let mut turned = ids(0..9);
        turned.swap(3, 4);
        assert_eq!(is_stable(&ids(0..9), &turned), Some(false));
        assert_eq!(is_stable(&ids(0..9), &ids(50..59)), Some(false));
        assert_eq!(is_stable(&ids(0..4), &ids(0..4)), None);
    }

    proptest! {
        #[test]
        fn rows_by_chance_are_in_no_order(
            ids in proptest::collection::hash_set(any::<u32>(), SizeRange::from(30..60)),
        ) {
            let rows: Vec<Value> = ids.into_iter().map(|id| json!({"id": id})).collect();
            prop_assert_eq!(found(&rows), None);
        }
    }
}
