//! Texts: charsets, escapes, spellings.

use super::*;
use proptest::prelude::*;

fn repair(body: &[u8]) -> (String, u64) {
    let text = Text::repair(Bytes::copy_from_slice(body), None);
    (text.json.as_ref().clone(), text.repaired)
}

#[test]
fn what_is_not_unicode_is_replaced_and_counted() {
    assert_eq!(
        repair(b"\"a\xff\xfeb\""),
        ("\"a\u{fffd}\u{fffd}b\"".into(), 2)
    );
    assert_eq!(repair(br#""\ud83d""#), (r#""\ufffd""#.into(), 1));
    assert_eq!(
        repair(br#""\ude00\ud83d""#),
        (r#""\ufffd\ufffd""#.into(), 2)
    );
    assert_eq!(repair(b"\xef\xbb\xbf1"), ("1".into(), 0));
}

#[test]
fn what_is_unicode_stays() {
    for whole in [
        r#""\ud83d\ude00""#,
        r#""\\ud83d""#,
        "\"é😀\"",
        r#""\u00e9\n""#,
    ] {
        assert_eq!(repair(whole.as_bytes()), (whole.to_owned(), 0));
    }
}

#[test]
fn a_snippet_shows_no_credential_wherever_it_begins() {
    let secret = "s3cret".repeat(40);
    let json = format!(r#"{{"é": 1, "authorization": "Bearer {secret}", "host": "é"}}"#);
    for position in 0..=json.len() + 1 {
        let shown = snippet(&json, position);
        assert!(!shown.contains("s3c") && !shown.contains("ret"), "{shown}");
    }
    assert!(snippet(&json, json.len()).contains("host"));
}

#[test]
fn half_a_json_is_no_json() {
    for text in ["", "<html>", "{\"a\": ", "NaN", "[1,]", "{} {}"] {
        assert_eq!(check(text).unwrap_err().misfit, Misfit::NotJson, "{text}");
    }
}

proptest! {
    #[test]
    fn any_bytes_become_unicode_that_serde_takes(body in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = check(&repair(&body).0);
    }

    #[test]
    fn any_escapes_become_text(units in proptest::collection::vec(any::<u16>(), 0..20)) {
        let json: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        let (json, repaired) = repair(format!("\"{json}\"").as_bytes());
        let text: String = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(text, String::from_utf16_lossy(&units));
        let lone = char::decode_utf16(units.iter().copied()).filter(Result::is_err).count();
        prop_assert_eq!(repaired, lone as u64);
    }
}

mod charset {
    use super::super::charset::*;

    #[test]
    fn labels_are_read_in_any_case_and_quotes() {
        for named in [
            "application/json; charset=ISO-8859-1",
            "application/json;a=b; CharSet=\"Windows-1252\"",
            "text/plain;charset = latin1 ",
        ] {
            assert!(is_windows_1252(named), "{named}");
        }
        for other in [
            "",
            "application/json",
            "text/html; charset=ISO-8859-15",
            "latin1",
        ] {
            assert!(!is_windows_1252(other), "{other}");
        }
        assert!(is_utf_16(None, "application/json; charset=UTF-16LE"));
    }

    #[test]
    fn each_byte_of_windows_1252_is_one_character() {
        let every: Vec<u8> = (0..=255).collect();
        let text = from_windows_1252(&every);
        assert_eq!(text.chars().count(), 256);
        assert_eq!(
            from_windows_1252(b"Zo\xeb \x80 \x81 \x9f"),
            "Zoë € \u{81} Ÿ"
        );
    }
}

mod rewritten {
    use std::borrow::Cow;

    use super::super::rewritten::*;

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
}
