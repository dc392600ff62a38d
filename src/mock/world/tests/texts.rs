//! Blocks of rows, the cache of them, and JSON as text.

use super::*;
use crate::world::block::{Block, BlockBuilder, Blocks};
use crate::world::json_object::{Entries, compact, with_fields};

fn block<'row>(rows: impl IntoIterator<Item = &'row [u8]>) -> Block {
    let mut block = BlockBuilder::default();
    for row in rows {
        block.push(|out| out.extend_from_slice(row));
    }
    block.finish()
}

proptest! {
    #[test]
    fn a_block_gives_its_rows(rows in prop::collection::vec("[a-z]{1,9}", 1..64), a: u64, b: u64) {
        let count = rows.len() as u64;
        let block = block(rows.iter().map(String::as_bytes));
        let (a, b) = (a % count, b % count);
        let (start, end) = (a.min(b), a.max(b) + 1);
        let expected = rows[start as usize..end as usize].join(",");
        prop_assert_eq!(block.rows(start..end), expected.as_bytes());
        prop_assert!(block.rows(count..count + 1).is_empty());
    }
}

#[test]
fn what_is_cached_stays_within_its_bound() {
    const CAPACITY: u64 = 64 * 1024 * 1024;
    let blocks = Blocks::default();
    for first in 0..10_000 {
        let rendered =
            blocks.get_or_render((Some(7), first), || block([[b'1'; 1000].as_slice(); 64]));
        assert_eq!(rendered.rows(63..64).len(), 1000);
        assert!(blocks.weight() <= CAPACITY);
    }
    assert!(blocks.weight() > CAPACITY / 2);
    assert!(blocks.get((Some(7), 9_999)).is_some());
    assert!(blocks.get((None, 9_999)).is_none());
}

fn set(row: &str, value: Value) -> String {
    String::from_utf8(with_fields(row.as_bytes(), &fields(value))).unwrap()
}

#[test]
fn fields_are_set_where_they_stand_and_others_stay_to_the_byte() {
    let row = r#"{"id":1.50e2,"n\u0061me":"\ud800","deep":[[{"a":"\/"}]]}"#;
    assert_eq!(set(row, json!({})), row);
    assert_eq!(
        set(row, json!({"new \"one\"": 1, "name": null})),
        r#"{"id":1.50e2,"n\u0061me":null,"deep":[[{"a":"\/"}]],"new \"one\"":1}"#
    );
    let entries = Entries::read(row.as_bytes()).unwrap();
    assert_eq!(entries.get("id").unwrap().get(), "1.50e2");
    assert_eq!(set("{}", json!({"a": {}})), r#"{"a":{}}"#);
    assert_eq!(set(r#"{"a":1,"a":2}"#, json!({"a": 3})), r#"{"a":3,"a":3}"#);
}

#[test]
fn only_the_space_between_tokens_goes() {
    let spaced = "{ \"a \\\\\" :\t[ \"b \\\" c\" ,\r\n1.0 ] }";
    assert_eq!(compact(spaced.as_bytes()), br#"{"a \\":["b \" c",1.0]}"#);
}
