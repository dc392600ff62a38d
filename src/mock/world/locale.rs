//! What a language adds to the world: people's names and lines of a chat.

use super::draw::Draw;

/// A name in its own script, and in letters that an e-mail address can have.
pub type Name = (&'static str, &'static str);

/// Names and lines of one language. In a line, `{n}` is an order number and `{name}` the user's
/// given name.
#[derive(Debug)]
pub struct Locale {
    /// Language tag, as in BCP 47.
    pub tag: &'static str,
    pub given: &'static [Name],
    pub family: &'static [Name],
    /// How the two are written: `{g}` given, `{f}` family.
    pub full_name: NameOrder,
    pub cities: &'static [&'static str],
    /// The user opens a visit, continues, says goodbye.
    pub user_opening: &'static [&'static str],
    pub user_middle: &'static [&'static str],
    pub user_closing: &'static [&'static str],
    /// The operator opens a visit, answers, says goodbye, or the widget invites.
    pub operator_opening: &'static [&'static str],
    pub operator_middle: &'static [&'static str],
    pub operator_closing: &'static [&'static str],
    pub invitation: &'static [&'static str],
}

/// How a language builds a full name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOrder {
    GivenFamily,
    FamilyGiven,
    /// Family name first and no space between.
    FamilyGivenJoined,
}

/// One of `names`.
pub fn choose_name(draw: &mut Draw, names: &'static [Name]) -> Name {
    let at = draw.below(names.len() as u64) as usize;
    names.get(at).copied().unwrap_or_default()
}
