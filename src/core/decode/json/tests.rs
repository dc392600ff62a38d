use super::*;
use proptest::prelude::*;

fn repair(body: &[u8]) -> (String, u64) {
    let text = Text::repair(Bytes::copy_from_slice(body), None);
    (text.json.as_ref().clone(), text.repaired)
}

#[test]
fn what_is_not_unicode_is_replaced_and_counted_and_the_rest_stays() {
    for (body, expected, count) in [
        (&b"\"a\xff\xfeb\""[..], "\"a\u{fffd}\u{fffd}b\"", 2),
        (br#""\ud83d""#, r#""\ufffd""#, 1),
        (br#""\ude00\ud83d""#, r#""\ufffd\ufffd""#, 2),
        (b"\xef\xbb\xbf1", "1", 0),
        (br#""\ud83d\ude00""#, r#""\ud83d\ude00""#, 0),
        (br#""\\ud83d""#, r#""\\ud83d""#, 0),
        ("\"é😀\\n\"".as_bytes(), "\"é😀\\n\"", 0),
    ] {
        assert_eq!(repair(body), (expected.to_owned(), count));
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

proptest! {
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
