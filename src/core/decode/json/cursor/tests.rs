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
    fn a_string_is_what_serde_reads(
        parts in proptest::collection::vec(
            prop_oneof![
                "\\PC{0,20}",
                "\\\\[\"\\\\/bfnrtux]",
                any::<u16>().prop_map(|unit| format!("\\u{unit:04X}")),
                any::<char>().prop_map(|character| {
                    let mut units = [0; 2];
                    let units = character.encode_utf16(&mut units).iter();
                    units.map(|unit| format!("\\u{unit:04x}")).collect()
                }),
            ],
            0..12,
        ),
        rest in "[ -~]{0,12}",
    ) {
        let json = format!("\"{}\"{rest}", parts.concat());
        let mut expected = serde_json::Deserializer::from_str(&json).into_iter::<String>();
        let mut cursor = Cursor::new(&json).unwrap();
        let read = cursor.string().map(|span| span.text(&json).into_owned());
        prop_assert_eq!(&read, &expected.next().and_then(Result::ok));
        prop_assert!(read.is_none() || cursor.at() == expected.byte_offset());
    }

    #[test]
    fn a_number_is_what_serde_reads(number in "-?[0-9]{1,20}", rest in "([^0-9eE.]{0,9}|[.]5|e7)") {
        let json = format!("{number}{rest}");
        let whole = rest.chars().next().is_none_or(|next| !".e".contains(next));
        let read: Option<Value> = serde_json::from_str(&number).ok();
        let expected = read.and_then(|number| number.as_i64());
        let mut cursor = Cursor::new(&json).unwrap();
        prop_assert_eq!(cursor.integer(), expected.filter(|_| whole));
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
