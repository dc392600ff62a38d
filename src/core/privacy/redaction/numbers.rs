//! Finds the numbers of a text: groups of digits, which separators join to card and phone numbers.

use std::ops::Range;

use super::cards::card;
use super::digits::Sign;
use super::groups::{Group, gap, groups, is_currency, is_plus};
use super::ordinary::without_ordinary;
use super::{Blank, LEAST_DIGITS, character};

/// The most characters between two groups of digits of a phone number: `(030) - 12`.
const WIDEST_GAP: usize = 4;

/// The card and phone numbers in a part of a text.
pub fn find(signs: &[Sign], part: Range<usize>) -> Vec<Blank> {
    let groups = groups(signs, part.clone());
    let joined: Vec<bool> = groups
        .windows(2)
        .map(|pair| matches!(pair, [before, after] if is_joined(signs, before, after)))
        .collect();
    let is_joined = |before: usize| joined.get(before) == Some(&true);
    let (mut blanks, mut index, mut done) = (Vec::new(), 0, 0);
    while let Some(rest) = groups.get(index..).filter(|rest| !rest.is_empty()) {
        let Some(count) = card(signs, rest) else {
            index += 1;
            continue;
        };
        // What else is joined to it is part of the same number, as far as anyone can tell.
        let (mut from, mut to) = (index, index + count);
        while from > done && is_joined(from - 1) {
            from -= 1;
        }
        while to < groups.len() && is_joined(to - 1) {
            to += 1;
        }
        blanks.extend(phones(signs, part.start, groups.get(done..from)));
        blanks.extend(blank(signs, part.start, groups.get(from..to), "[card]"));
        (index, done) = (to, to);
    }
    blanks.extend(phones(signs, part.start, groups.get(done..)));
    blanks
}

fn blank(
    signs: &[Sign],
    floor: usize,
    groups: Option<&[Group]>,
    label: &'static str,
) -> Option<Blank> {
    let (first, last) = (groups?.first()?, groups?.last()?);
    Some(Blank {
        from: start(signs, floor, first, last),
        to: last.to,
        label,
    })
}

/// The phone numbers of groups that belong to no card.
fn phones(signs: &[Sign], floor: usize, groups: Option<&[Group]>) -> Vec<Blank> {
    let mut blanks = Vec::new();
    let chains = groups.unwrap_or_default();
    for chain in chains.chunk_by(|before, after| is_joined(signs, before, after)) {
        for part in without_ordinary(signs, floor, chain) {
            let digits: usize = part.iter().map(|group| group.digits.len()).sum();
            if digits >= LEAST_DIGITS {
                blanks.extend(blank(signs, floor, Some(part), "[phone]"));
            }
        }
    }
    blanks
}

/// Whether what is between two groups may be inside a phone number.
fn is_joined(signs: &[Sign], before: &Group, after: &Group) -> bool {
    let between = gap(signs, before, after);
    between.len() <= WIDEST_GAP && between.iter().all(|sign| is_separator(sign.character))
}

/// All but letters and what is between two numbers rather than inside one.
fn is_separator(character: char) -> bool {
    !character.is_alphanumeric()
        && !matches!(
            character,
            ',' | ';'
                | ':'
                | '!'
                | '?'
                | '='
                | '&'
                | '%'
                | '@'
                | '"'
                | '<'
                | '>'
                | '{'
                | '}'
                | '#'
                | '\n'
                | '\r'
                | '，'
                | '；'
                | '：'
                | '、'
                | '！'
                | '？'
                | '،'
                | '؛'
                | '§'
                | '°'
        )
        && !is_currency(character)
}

/// Where a phone number begins: at its plus or bracket.
fn start(signs: &[Sign], floor: usize, first: &Group, last: &Group) -> usize {
    let inside = signs.get(first.from..last.to).unwrap_or_default();
    let closed = inside
        .iter()
        .any(|sign| matches!(sign.character, ')' | '）' | ']'));
    let mut from = first.from;
    while from > floor
        && let Some(each) = character(signs, from - 1)
        && (is_plus(each) || closed && matches!(each, '(' | '（' | '['))
    {
        from -= 1;
    }
    from
}
