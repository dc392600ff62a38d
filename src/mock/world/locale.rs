//! What a language adds to the world: names of people and cities, and lines of a chat.

use std::sync::LazyLock;

use serde::Deserialize;

use super::draw::Draw;
use super::text;

/// The languages, each with its share of the users in percent.
static LOCALES: LazyLock<Vec<Locale>> =
    LazyLock::new(|| serde_json::from_str(include_str!("locales.json")).unwrap_or_default());

/// The content of a JSON string, escaped once for all rows.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub struct Escaped(String);

/// A name in its own script, and in letters that an e-mail address can have.
#[derive(Debug, Deserialize)]
pub struct Name(pub Escaped, pub String);

/// Names and lines of one language. In a line, `{n}` is an order number and `{name}` the user's
/// given name.
#[derive(Debug, Default, Deserialize)]
pub struct Locale {
    /// Language tag, as in BCP 47.
    pub tag: String,
    weight: u64,
    pub full_name: NameOrder,
    pub given: Vec<Name>,
    pub family: Vec<Name>,
    pub cities: Vec<Escaped>,
    /// The user opens a visit, continues, says goodbye.
    pub user_opening: Vec<Escaped>,
    pub user_middle: Vec<Escaped>,
    pub user_closing: Vec<Escaped>,
    /// The operator opens a visit, answers, says goodbye, or the widget invites.
    pub operator_opening: Vec<Escaped>,
    pub operator_middle: Vec<Escaped>,
    pub operator_closing: Vec<Escaped>,
    pub invitation: Vec<Escaped>,
}

/// How a language builds a full name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameOrder {
    #[default]
    GivenFamily,
    FamilyGiven,
    /// Family name first and no space between.
    FamilyGivenJoined,
}

impl From<String> for Escaped {
    fn from(text: String) -> Self {
        let mut out = Vec::with_capacity(text.len());
        text::escaped(&text, &mut out);
        Self(String::from_utf8_lossy(&out).into_owned())
    }
}

impl AsRef<str> for Escaped {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// The language of one row.
pub fn choose(draw: &mut Draw) -> &'static Locale {
    static NONE: LazyLock<Locale> = LazyLock::new(Locale::default);
    let mut place = draw.below(100);
    let mut locales = LOCALES.iter();
    let chosen = locales.find(|locale| match place.checked_sub(locale.weight) {
        Some(rest) => {
            place = rest;
            false
        }
        None => true,
    });
    chosen.unwrap_or(&NONE)
}

/// One of `names`, its first part escaped.
pub fn choose_name(draw: &mut Draw, names: &'static [Name]) -> (&'static str, &'static str) {
    let at = draw.below(names.len() as u64) as usize;
    names
        .get(at)
        .map_or(("", ""), |Name(own, ascii)| (own.as_ref(), ascii))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_names_and_lines() {
        assert_eq!(LOCALES.iter().map(|locale| locale.weight).sum::<u64>(), 100);
        for locale in LOCALES.iter() {
            for lines in [
                &locale.user_opening,
                &locale.user_middle,
                &locale.user_closing,
                &locale.operator_opening,
                &locale.operator_middle,
                &locale.operator_closing,
                &locale.invitation,
                &locale.cities,
            ] {
                assert!(!lines.is_empty(), "{}", locale.tag);
                assert!(
                    lines.iter().all(|Escaped(line)| !line.is_empty()),
                    "{}",
                    locale.tag
                );
            }
            for Name(_, ascii) in locale.given.iter().chain(&locale.family) {
                let plain = ascii.bytes().all(|byte| byte.is_ascii_lowercase());
                assert!(plain && !ascii.is_empty(), "{}: {ascii}", locale.tag);
            }
        }
    }
}
