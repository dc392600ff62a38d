//! What a language adds to the world: names of people and cities, and lines of a chat.

use std::sync::LazyLock;

use serde::Deserialize;

use super::draw::Draw;

/// The languages, each with its share of the users in percent.
pub(super) static LOCALES: LazyLock<Vec<Locale>> =
    LazyLock::new(|| serde_json::from_str(include_str!("locales.json")).unwrap_or_default());

/// A name in its own script, and in letters that an e-mail address can have.
#[derive(Debug, Deserialize)]
pub struct Name(pub String, pub String);

/// Names and lines of one language. In a line, `{n}` is an order number and `{name}` the user's
/// given name.
#[derive(Debug, Default, Deserialize)]
pub struct Locale {
    /// Language tag, as in BCP 47.
    pub tag: String,
    pub(super) weight: u64,
    pub full_name: NameOrder,
    pub given: Vec<Name>,
    pub family: Vec<Name>,
    pub cities: Vec<String>,
    /// The user opens a visit, continues, says goodbye.
    pub user_opening: Vec<String>,
    pub user_middle: Vec<String>,
    pub user_closing: Vec<String>,
    /// The operator opens a visit, answers, says goodbye, or the widget invites.
    pub operator_opening: Vec<String>,
    pub operator_middle: Vec<String>,
    pub operator_closing: Vec<String>,
    pub invitation: Vec<String>,
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

/// The language of one row.
pub fn choose(draw: &mut Draw) -> &'static Locale {
    static NONE: LazyLock<Locale> = LazyLock::new(Locale::default);
    let place = draw.below(100);
    let mut reached = 0;
    let mut locales = LOCALES.iter();
    let chosen = locales.find(|locale| {
        reached += locale.weight;
        place < reached
    });
    chosen.unwrap_or(&NONE)
}

/// One of `names`.
pub fn choose_name(draw: &mut Draw, names: &'static [Name]) -> &'static Name {
    static NONE: Name = Name(String::new(), String::new());
    let at = draw.below(names.len() as u64) as usize;
    names.get(at).unwrap_or(&NONE)
}
