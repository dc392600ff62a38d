//! The order of lists, and how a dialect changes rows.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::Order;
use super::order::Sequence;
use super::row_mutation::{Kind, LARGE, RowMutation};

proptest! {
    #[test]
    fn every_row_stands_somewhere_and_once(
        order in 0_usize..4, total in 1_u64..400, chance: u64,
    ) {
        let sequence = Sequence { order: Order::ALL[order], total, chance };
        let positions: BTreeSet<u64> = (0..total).map(|place| sequence.position(place)).collect();
        prop_assert_eq!(positions, (0..total).collect::<BTreeSet<u64>>());
        for place in 0..total {
            prop_assert_eq!(sequence.place(sequence.position(place)), place);
        }
    }

    #[test]
    fn a_long_list_costs_nothing_to_shuffle(total in 1_u64..1 << 31, chance: u64, at: u64) {
        let sequence = Sequence { order: Order::Shuffled, total, chance };
        let position = sequence.position(at % total);
        prop_assert!(position < total);
        prop_assert_eq!(sequence.place(position), at % total);
    }
}

const MESSAGE: &str = r#"{"id":7,"body":"hi","read_by_user":true,"sender_type":"user","sender":{"id":42,"name":"Zoë","email":"z@example.com"}}"#;

fn mutated(dialect: &str, seed: u64, kind: Kind, row: &str) -> Map<String, Value> {
    let dialect = dialect.parse().unwrap();
    serde_json::from_slice(&RowMutation { dialect, seed }.row(kind, Bytes::from(row.to_owned())))
        .unwrap()
}

#[test]
fn ids_change_their_shape_and_the_user_keeps_being_the_sender() {
    let row = mutated("ids=text", 1, Kind::Message, MESSAGE);
    assert_eq!(
        (&row["id"], &row["sender"]["id"]),
        (&json!("7"), &json!("42"))
    );
    let row = mutated("ids=large", 1, Kind::Message, MESSAGE);
    assert_eq!(row["id"], json!(LARGE + 7));
    assert_eq!(row["sender"]["id"], json!(LARGE + 42));
}

proptest! {
    #[test]
    fn the_id_is_never_left_out_and_rows_are_mutated_alike_each_time(seed: u64, id in 1_u64..1 << 50) {
        let message = MESSAGE.replace("\"id\":7", &format!("\"id\":{id}"));
        let row = mutated("hostile", seed, Kind::Message, &message);
        prop_assert_eq!(&row["id"], &json!(id));
        prop_assert_eq!(row, mutated("hostile", seed, Kind::Message, &message));
    }
}

#[test]
fn every_kind_of_mutation_happens() {
    let rows: Vec<Map<String, Value>> = (0..300)
        .map(|seed| mutated("hostile", seed, Kind::Message, MESSAGE))
        .collect();
    let sender_type = |word: &str| {
        rows.iter()
            .filter(|row| row.get("sender_type") == Some(&json!(word)))
            .count()
    };
    assert!(sender_type("bot") > 0 && sender_type("system") > 0 && sender_type("api") > 0);
    assert!(rows.iter().any(|row| row.get("body") == Some(&Value::Null)));
    assert!(rows.iter().any(|row| !row.contains_key("body")));
    assert!(rows.iter().all(|row| row.contains_key("reactions")));
}
