//! The languages of the world, and their frequencies.

use super::draw::Draw;
use super::locale::Locale;
use super::{locales_eastern, locales_latin};

/// The languages and their weights; English is the most frequent, being the fallback of widgets.
const WEIGHTED: [(u64, &Locale); 16] = [
    (30, &locales_latin::ENGLISH),
    (8, &locales_latin::GERMAN),
    (7, &locales_latin::FRENCH),
    (8, &locales_latin::SPANISH),
    (6, &locales_latin::PORTUGUESE),
    (4, &locales_latin::POLISH),
    (4, &locales_latin::TURKISH),
    (3, &locales_latin::VIETNAMESE),
    (6, &locales_eastern::RUSSIAN),
    (2, &locales_eastern::GREEK),
    (5, &locales_eastern::CHINESE),
    (5, &locales_eastern::JAPANESE),
    (3, &locales_eastern::KOREAN),
    (4, &locales_eastern::ARABIC),
    (2, &locales_eastern::HEBREW),
    (3, &locales_eastern::HINDI),
];
const WEIGHTS: u64 = 100;

/// The language of one row.
pub fn choose(draw: &mut Draw) -> &'static Locale {
    let mut place = draw.below(WEIGHTS);
    for (weight, locale) in WEIGHTED {
        if place < weight {
            return locale;
        }
        place -= weight;
    }
    &locales_latin::ENGLISH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_add_up() {
        assert_eq!(
            WEIGHTED.iter().map(|(weight, _)| weight).sum::<u64>(),
            WEIGHTS
        );
    }

    #[test]
    fn every_language_has_names_and_lines() {
        for (_, locale) in WEIGHTED {
            for lines in [
                locale.user_opening,
                locale.user_middle,
                locale.user_closing,
                locale.operator_opening,
                locale.operator_middle,
                locale.operator_closing,
                locale.invitation,
                locale.cities,
            ] {
                assert!(!lines.is_empty(), "{}", locale.tag);
                assert!(lines.iter().all(|line| !line.is_empty()), "{}", locale.tag);
            }
            for (_, ascii) in locale.given.iter().chain(locale.family) {
                let plain = ascii.bytes().all(|byte| byte.is_ascii_lowercase());
                assert!(plain && !ascii.is_empty(), "{}: {ascii}", locale.tag);
            }
        }
    }
}
