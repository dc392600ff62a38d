//! Finds card numbers: 13 to 19 digits whose check digit is right (ISO/IEC 7812-1, the Luhn formula).

use super::digits::Sign;
use super::groups::{Group, gap};

const LEAST: usize = 13;
const MOST: usize = 19;
/// The most characters between two groups of digits.
const WIDEST_GAP: usize = 3;

/// How many groups, from the first one on, are a card number; the most that are.
pub fn card(signs: &[Sign], groups: &[Group]) -> Option<usize> {
    let mut digits: Vec<u8> = Vec::new();
    let mut longest = None;
    for (index, group) in groups.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| groups.get(before));
        if before.is_some_and(|before| !is_joined(signs, before, group)) {
            break;
        }
        digits.extend(&group.digits);
        if digits.len() > MOST {
            break;
        }
        let taken = groups.get(..=index).unwrap_or_default();
        if digits.len() >= LEAST && is_grouped(taken) && has_check_digit(&digits) {
            longest = Some(index + 1);
        }
    }
    longest
}

/// Whether only separators are between two groups, whichever.
fn is_joined(signs: &[Sign], before: &Group, after: &Group) -> bool {
    let between = gap(signs, before, after);
    between.len() <= WIDEST_GAP && between.iter().all(|sign| !sign.character.is_alphanumeric())
}

/// Whether digits are grouped as people group those of cards, and not as dates and times are: at
/// least three at once, or one by one, or two by two.
fn is_grouped(groups: &[Group]) -> bool {
    let Some((last, others)) = groups.split_last() else {
        return false;
    };
    let all = |least: usize, most: usize| {
        let fits = |group: &Group| (least..=most).contains(&group.digits.len());
        others.iter().all(fits) && last.digits.len() <= most
    };
    all(3, MOST) || all(1, 1) || all(2, 2)
}

fn has_check_digit(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .zip([false, true].into_iter().cycle())
        .map(|(digit, doubled)| match (u32::from(*digit), doubled) {
            (digit, false) => digit,
            (digit, true) if digit > 4 => 2 * digit - 9,
            (digit, true) => 2 * digit,
        })
        .sum();
    sum.is_multiple_of(10)
}
