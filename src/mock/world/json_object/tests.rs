use serde_json::json;

use super::*;

fn set(row: &str, value: Value) -> String {
    String::from_utf8(with_fields(row.as_bytes(), value.as_object().unwrap())).unwrap()
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
