use proptest::prelude::*;

use super::*;

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
