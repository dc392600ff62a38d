//! Columns and what they hold.

mod column {
    use arrow_array::types::Int32Type;

    use arrow_array::{Array, DictionaryArray, StringArray};

    use super::super::column::*;

    #[test]
    fn each_category_has_one_key_in_its_batch() {
        let mut categories = Categories::default();
        for batch in 0..2 {
            let texts: Vec<String> = (0..40).map(|at| format!("{batch}-{}", at % 9)).collect();
            texts.iter().for_each(|text| categories.append_value(text));
            categories.append_null();
            let mut arrays = Vec::new();
            categories.finish_into(&mut arrays).unwrap();
            let column = arrays.first().unwrap().as_any().downcast_ref();
            let column: &DictionaryArray<Int32Type> = column.unwrap();
            assert_eq!(column.values().len(), 9);
            let values = column.downcast_dict::<StringArray>().unwrap();
            let read: Vec<Option<&str>> = values.into_iter().collect();
            let mut expected: Vec<Option<&str>> = texts.iter().map(|text| Some(&**text)).collect();
            expected.push(None);
            assert_eq!(read, expected);
        }
    }
}

mod read_back {
    use std::sync::Arc;

    use super::super::read_back::*;
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};

    use crate::timestamp::Timestamp;

    #[test]
    fn a_column_of_another_type_is_named() {
        let numbers = Arc::new(arrow_array::Int32Array::from(vec![Some(7), None])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("id", numbers)]).unwrap();
        let error = Rows(&batch).ids("id").unwrap_err().to_string();
        assert!(error.contains("the column id is Int32"), "{error}");
    }

    #[test]
    fn an_instant_is_the_same_in_any_time_zone() {
        let at = TimestampMicrosecondArray::from(vec![1_700_000_000_000_000]);
        for zone in [None, Some("UTC"), Some("+02:00"), Some("Europe/Berlin")] {
            let at = Arc::new(at.clone().with_timezone_opt(zone)) as ArrayRef;
            let id = Arc::new(Int64Array::from(vec![7])) as ArrayRef;
            let columns = [
                ("id", id),
                ("updated_at", Arc::clone(&at)),
                ("online_at", at),
            ];
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            let users = Rows(&batch).users().unwrap();
            let hints = users.first().and_then(|user| user.hints).unwrap();
            assert_eq!(
                hints.updated_at,
                Timestamp::from_microseconds(1_700_000_000_000_000)
            );
        }
    }

    #[test]
    fn a_column_that_is_missing_is_named() {
        let batch = RecordBatch::new_empty(Arc::new(arrow_schema::Schema::empty()));
        let error = Rows(&batch).users().unwrap_err();
        assert!(error.to_string().contains("id"), "{error}");
    }
}

mod rows {
    use super::super::rows::*;

    #[test]
    fn the_columns_of_a_message_are_its_fields_and_its_senders() {
        let names: Vec<&str> = MESSAGES
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let expected = "user_id id body read_by_user read_by_operator created_at file_url \
            auto_invitation sender_type sender_id sender_name sender_email sender_forename \
            sender_surname sender_picture_thumb_url sender_extra extra";
        assert_eq!(names.join(" "), expected);
        let required = MESSAGES
            .fields()
            .iter()
            .filter(|field| !field.is_nullable());
        assert_eq!(
            required.map(|field| field.name()).collect::<Vec<_>>(),
            ["user_id", "id"]
        );
    }
}
