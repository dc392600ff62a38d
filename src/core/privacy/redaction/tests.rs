//! What goes and what stays.

use proptest::prelude::*;

use super::*;

/// A field of the list, with the characters that its escapes stand for.
fn unescaped(field: &str) -> String {
    let (plain, escaped) = field.split_once("\\u{").unwrap_or((field, ""));
    let mut text = plain.replace("\\n", "\n");
    if let Some((code, rest)) = escaped.split_once('}') {
        let code = u32::from_str_radix(code, 16).unwrap();
        text.push(char::from_u32(code).unwrap());
        text += &unescaped(rest);
    }
    text
}

#[test]
fn each_text_of_the_list_is_stored_as_it_says() {
    let lines = include_str!("texts.tsv").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let fields: Vec<String> = line.split('\t').map(unescaped).collect();
        let [_, text, stored @ ..] = fields.as_slice() else {
            panic!("{line}");
        };
        assert_eq!(redact(text), *stored.first().unwrap_or(text), "{line}");
    }
}

#[test]
fn emails_alone_are_replaced_by_another_label() {
    let text = "?to=ada%40example.com&phone=030123456, Jörg@bücher.example";
    let replaced = "?[hidden]&phone=030123456, [hidden]";
    assert_eq!(replace_emails(text, "[hidden]"), replaced);
}

#[test]
fn time_is_in_proportion_to_the_text() {
    // In quadratic time it would take minutes.
    for part in [
        "%40", "a@", "a%40", "&#64;", "@a.b", "\"a@b ", "?a=", "1 ", "12,", "123-",
    ] {
        assert!(!redact(&part.repeat(50_000)).is_empty());
    }
}

/// A number with a right check digit.
fn card() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0_u8..10, 12..=18).prop_map(|mut digits| {
        let doubled = |digit: u8| 2 * digit - if digit > 4 { 9 } else { 0 };
        let from_end = digits.iter().rev().enumerate();
        let sum: u8 = from_end
            .map(|(place, digit)| {
                if place % 2 == 0 {
                    doubled(*digit)
                } else {
                    *digit
                }
            })
            .sum();
        digits.push((10 - sum % 10) % 10);
        digits
    })
}

/// Digits in groups of these sizes, in a script, with something between the groups.
fn written(mut digits: &[u8], sizes: &[usize], zero: u32, between: &str) -> String {
    let mut groups = Vec::new();
    for size in sizes.iter().cycle() {
        let (group, rest) = digits.split_at(digits.len().min(*size));
        let group = group.iter().map(|digit| zero + u32::from(*digit));
        groups.push(
            group
                .map(|code| char::from_u32(code).unwrap())
                .collect::<String>(),
        );
        digits = rest;
        if digits.is_empty() {
            break;
        }
    }
    groups.join(between)
}

fn zeros() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0x30, 0x660, 0x6F0, 0x966, 0xFF10, 0x1D7CE])
}

proptest! {
    #[test]
    fn no_card_number_survives(
        digits in card(),
        sizes in prop::sample::select(vec![
            vec![19], vec![4], vec![4, 6, 9], vec![6, 13], vec![8], vec![5], vec![3], vec![1], vec![2],
        ]),
        zero in zeros(),
        between in prop::sample::select(vec![
            " ", "-", ".", ",", ":", "/", "_", " - ", "\u{a0}", "–", "\u{200b}", "*", "|", ";", "—", "·",
        ]),
        before in "[a-z ]{0,9}[a-z] ",
        after in " [a-z][a-z ]{0,9}",
    ) {
        let text = format!("{before}{}{after}", written(&digits, &sizes, zero, between));
        let redacted = redact(&text);
        prop_assert_eq!(count_digits(&redacted), 0, "{} -> {}", text, redacted);
        prop_assert!(redacted.starts_with(&before) && redacted.ends_with(&after));
    }

    #[test]
    fn no_phone_number_survives(
        digits in proptest::collection::vec(0_u8..10, 7..=15),
        sizes in prop::sample::select(vec![vec![15], vec![3], vec![2], vec![4], vec![3, 3, 4], vec![1]]),
        zero in zeros(),
        between in prop::sample::select(vec![" ", "-", "\u{a0}", "–", "\u{200b}", ") ", " (", " / "]),
        after in " [a-z][a-z ]{0,9}",
    ) {
        // An international number, which is never taken for a date.
        let text = format!("+{}{after}", written(&digits, &sizes, zero, between));
        let redacted = redact(&text);
        prop_assert_eq!(count_digits(&redacted), 0, "{} -> {}", text, redacted);
        prop_assert!(redacted.ends_with(&after));
    }

    #[test]
    fn no_address_survives(
        name in "[a-zA-Zéüñß0-9._%+'-]{0,12}[a-zA-Z0-9]",
        host in "[a-z0-9é]{1,10}(-[a-z0-9]{1,4})?(\\.[a-z0-9]{1,8}){0,2}\\.[a-z]{2,6}",
        at in prop::sample::select(vec!["@", "＠", "%40", "&#64;"]),
        before in prop::sample::select(vec!["", "at ", "<", "(", "mailto:", "x, ", "\"", "：", "\n"]),
        after in prop::sample::select(vec!["", ".", ",", ">", ")", " and", "\"", "!", "\n"]),
    ) {
        let text = format!("{before}{name}{at}{host}{after}");
        let redacted = redact(&text);
        prop_assert_eq!(redacted, format!("{}[email]{}", before, after), "{}", text);
    }

    #[test]
    fn short_numbers_in_sentences_stay(numbers in proptest::collection::vec(0_u32..1_000_000, 1..6)) {
        let text: Vec<String> = numbers.iter().map(|each| format!("item {each} costs")).collect();
        let text = text.join(", ");
        prop_assert_eq!(redact(&text), text.as_str());
    }

    #[test]
    fn what_is_redacted_has_nothing_left_to_redact(
        text in prop_oneof![any::<String>(), "[0-9@. +()/:,&#;%€\u{200b}a-c\\[\\]=?\"-]{0,60}"],
    ) {
        let redacted = redact(&text);
        prop_assert_eq!(redact(&redacted), redacted.as_ref(), "{}", text);
    }

    #[test]
    fn text_without_digits_and_at_signs_stays(text in "[^\\p{N}@＠﹫%&]{0,60}") {
        prop_assert_eq!(redact(&text), text.as_str());
    }
}
