use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array};

use super::*;

#[test]
fn a_column_of_another_type_or_that_is_missing_is_named() {
    let numbers = Arc::new(Int32Array::from(vec![Some(7), None])) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("id", numbers)]).unwrap();
    let error = Rows(&batch).ids("id").unwrap_err().to_string();
    assert!(error.contains("the column id is Int32"), "{error}");
    let error = Rows(&batch).ids("user_id").unwrap_err().to_string();
    assert!(error.contains("user_id"), "{error}");
}

#[test]
fn an_instant_is_the_same_in_any_time_zone() {
    let instant = Timestamp::from_microseconds(1_700_000_000_000_000);
    let at = TimestampMicrosecondArray::from(vec![instant.map(Timestamp::microseconds)]);
    for zone in [None, Some("+02:00"), Some("Europe/Berlin")] {
        let at = Arc::new(at.clone().with_timezone_opt(zone)) as ArrayRef;
        let id = Arc::new(Int64Array::from(vec![7])) as ArrayRef;
        let (updated_at, online_at) = (Arc::clone(&at), at);
        let columns = [
            ("id", id),
            ("updated_at", updated_at),
            ("online_at", online_at),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let users = Rows(&batch).users().unwrap();
        assert_eq!(users[0].hints.unwrap().updated_at, instant);
    }
}
