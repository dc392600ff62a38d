use super::*;

#[test]
fn a_value_is_written_in_one_spelling() {
    for (json, expected) in [
        (
            r#"{ "b" : [1, 2.50] , "a": "\u00e9\u4e2d" }"#,
            r#"{"b":[1,2.50],"a":"é中"}"#,
        ),
        (
            r#"{ "b" : [1, 1e400] , "a": "\u4e2d" }"#,
            r#"{"b":[1,1e400],"a":"中"}"#,
        ),
        (r#""a \" b \\" "#, r#""a \" b \\""#),
        ("12345678901234567890123", "12345678901234567890123"),
    ] {
        assert_eq!(rewritten(json), expected);
    }
}

#[test]
fn the_last_of_equal_keys_wins_in_the_place_of_the_first() {
    let members = [("a", "1"), ("b\"", "2"), ("a", "3")];
    let members = members.map(|(key, value)| (Cow::from(key), value.to_owned()));
    assert_eq!(object(members.into_iter()), r#"{"a":3,"b\"":2}"#);
}
