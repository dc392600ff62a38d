//! Groups of digits, and the signs next to them.

use std::ops::Range;

use super::character;
use super::digits::{Sign, digit};

/// Digits without anything visible between them; places in the signs, the end excluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub from: usize,
    pub to: usize,
    pub digits: Vec<u8>,
}

impl Group {
    /// Its value; that of a long one is the largest there is.
    pub fn value(&self) -> u32 {
        let add = |value: u32, digit: &u8| value.checked_mul(10)?.checked_add(u32::from(*digit));
        self.digits.iter().try_fold(0, add).unwrap_or(u32::MAX)
    }
}

/// What is between two groups.
pub fn gap<'a>(signs: &'a [Sign], before: &Group, after: &Group) -> &'a [Sign] {
    signs.get(before.to..after.from).unwrap_or_default()
}

/// The groups in a part of a text.
pub fn groups(signs: &[Sign], part: Range<usize>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for place in part {
        let Some(value) = character(signs, place).and_then(digit) else {
            continue;
        };
        match groups.last_mut() {
            Some(group) if group.to == place => {
                group.to += 1;
                group.digits.push(value);
            }
            _ => groups.push(Group {
                from: place,
                to: place + 1,
                digits: vec![value],
            }),
        }
    }
    groups
}

/// Whether a character is a currency's.
pub fn is_currency(character: char) -> bool {
    matches!(character, '$' | '¢'..='¥' | '֏' | '؋' | '৲' | '৳' | '฿' | '៛' | '₠'..='⃀' | '﷼' | '＄' | '￠' | '￡' | '￥' | '￦')
}

/// The sign before a country's code.
pub fn is_plus(character: char) -> bool {
    matches!(character, '+' | '＋' | '﹢' | '⁺')
}
