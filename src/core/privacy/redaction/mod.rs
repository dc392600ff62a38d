//! Blanks e-mail addresses, phone numbers and card numbers in texts that people wrote.
//!
//! It leans to blanking: a number of seven digits or more goes, whatever it means, unless it is
//! written like a date, a time or a price (`ordinary.rs`). Digits of all scripts count, and invisible
//! characters do not.

mod cards;
mod digits;
mod emails;
mod groups;
mod numbers;
mod ordinary;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use self::digits::{Sign, digit, signs};

/// The least digits of a phone number.
const LEAST_DIGITS: usize = 7;

/// A part of the text to blank: places in its signs, the end excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Blank {
    from: usize,
    to: usize,
    label: &'static str,
}

/// The text with `[email]`, `[phone]` and `[card]` for what it named; borrowed if it named nothing.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let digits = text.chars().filter(|each| digit(*each).is_some());
    let few_digits = digits.take(LEAST_DIGITS).count() < LEAST_DIGITS;
    if few_digits && !emails::may_have_one(text) {
        return Cow::Borrowed(text);
    }
    let signs = signs(text);
    let mut blanks = emails::find(&signs);
    if !few_digits {
        let ends = blanks.iter().map(|email| email.from).chain([signs.len()]);
        let starts = [0].into_iter().chain(blanks.iter().map(|email| email.to));
        let parts = starts.zip(ends).map(|(from, to)| from..to);
        let found: Vec<Blank> = parts.flat_map(|part| numbers::find(&signs, part)).collect();
        blanks.extend(found);
        blanks.sort_unstable_by_key(|each| each.from);
    }
    if blanks.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(blanked(text, &signs, &blanks))
}

fn blanked(text: &str, signs: &[Sign], blanks: &[Blank]) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut done = 0;
    for blank in blanks {
        let part = signs.get(blank.from..blank.to).unwrap_or_default();
        if let (Some(first), Some(last)) = (part.first(), part.last()) {
            redacted.push_str(text.get(done..first.from).unwrap_or_default());
            redacted.push_str(blank.label);
            done = last.to;
        }
    }
    redacted.push_str(text.get(done..).unwrap_or_default());
    redacted
}

fn character(signs: &[Sign], place: usize) -> Option<char> {
    signs.get(place).map(|sign| sign.character)
}
