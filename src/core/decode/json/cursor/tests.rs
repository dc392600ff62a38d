//! Compares what the cursor accepts with what serde_json accepts.

use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;

fn passes(json: &str) -> bool {
    let mut cursor = Cursor::new(json).unwrap();
    cursor.space();
    let passed = cursor.value().is_some();
    cursor.space();
    passed && cursor.is_at_end()
}

/// Any JSON, with all kinds of strings and numbers.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| serde_json::to_string(&number).unwrap()),
        ".{0,20}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just(r#""\u00e9\ud83d\ude00\/\b\\\"""#.to_owned()),
        Just("1.5e-7".to_owned()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let items = proptest::collection::vec(inner, 0..6);
        (items, any::<bool>(), " {0,2}").prop_map(|(items, object, space)| {
            let items: Vec<String> = if object {
                items
                    .iter()
                    .enumerate()
                    .map(|(number, item)| format!("{space}\"k\\n{number}\"{space}:{item}"))
                    .collect()
            } else {
                items
            };
            let joined = items.join(&format!("{space},\n"));
            if object {
                format!("{{{joined}{space}}}")
            } else {
                format!("[{space}{joined}]")
            }
        })
    })
}

proptest! {
    #[test]
    fn what_serde_writes_and_takes_passes(json in any_json()) {
        prop_assert!(serde_json::from_str::<Value>(&json).is_ok(), "{}", json);
        prop_assert!(passes(&json), "{}", json);
    }

    #[test]
    fn what_passes_serde_takes(
        json in any_json(),
        cut in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"\"\\{}[],:0123456789eE+-.ntfu \x1f\x00a".to_vec()),
        remove in any::<bool>(),
    ) {
        let mut bytes = json.into_bytes();
        let at = cut.index(bytes.len());
        if remove {
            bytes.remove(at);
        } else {
            bytes.insert(at, byte);
        }
        if let Ok(json) = String::from_utf8(bytes) && passes(&json) {
            prop_assert!(serde_json::from_str::<&RawValue>(&json).is_ok(), "{}", json);
        }
    }

    #[test]
    fn a_string_ends_where_serde_ends_it(text in "\\PC{0,40}", rest in "[ -~]{0,12}") {
        let quoted = serde_json::to_string(&text).unwrap();
        let json = format!("{quoted}{rest}");
        let mut cursor = Cursor::new(&json).unwrap();
        let span = cursor.string().unwrap();
        prop_assert_eq!(cursor.at(), quoted.len());
        prop_assert_eq!(span.is_escaped(), quoted.contains('\\'));
        if !span.is_escaped() {
            prop_assert_eq!(span.of(&json), text);
        }
    }

}

#[test]
fn any_nesting_passes() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for depth in [1, 50, 200_000] {
        assert!(passes(&deep(depth)));
        assert!(!passes(deep(depth).strip_suffix(']').unwrap()));
    }
}

#[test]
fn an_escape_that_passes_is_one_that_serde_reads() {
    for (json, whole) in [
        (r#""\u00e9\ud83d\ude00\/""#, true),
        (r#""\ud83d""#, false),
        (r#""\ud83d\u0041""#, false),
        (r#""\ude00""#, false),
        (r#""\u00g0""#, false),
    ] {
        let span = Cursor::new(json).unwrap().string();
        assert_eq!(span.is_some(), whole, "{json}");
        let read: Option<String> = serde_json::from_str(json).ok();
        assert_eq!(span.map(|span| span.text(json).into_owned()), read);
    }
}

mod number {
    use proptest::prelude::*;

    use super::super::number::*;

    proptest! {
        #[test]
        fn a_number_is_what_serde_json_reads(text in "-?[0-9]{1,20}[^0-9eE.]{0,9}") {
            let digits = text.trim_end_matches(|other: char| !other.is_ascii_digit());
            let leading_zero = digits.trim_start_matches('-').starts_with("0") && digits.trim_start_matches('-') != "0";
            let expected = digits.parse::<i64>().ok().filter(|_| !leading_zero);
            let rest = text.get(digits.len()..).unwrap_or_default();
            let read = integer(text.as_bytes());
            prop_assert_eq!(read, expected.map(|number| (number, rest.as_bytes())));
        }
    }
}

mod special {
    use proptest::prelude::*;

    use super::super::special::chunk::STEP;
    use super::super::special::*;

    proptest! {
        #[test]
        fn the_first_special_byte_is_found_in_any_chunk(
            bytes in proptest::collection::vec(
                prop_oneof![4 => b'a'..=b'z', 1 => any::<u8>(), 1 => Just(b' '), 1 => Just(0x1f)],
                STEP,
            )
        ) {
            let expected = |step: usize| bytes.iter().take(step).position(|byte| is_special(*byte));
            prop_assert_eq!(first(bytes.first_chunk().unwrap()), expected(STEP));
            let first_word = bytes.first_chunk().unwrap();
            prop_assert_eq!(word::first(first_word), expected(word::STEP));
        }
    }
}
