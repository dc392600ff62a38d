//! Finds e-mail addresses (RFC 5322 and 6531, as people write them), also inside URLs and HTML.

use super::digits::{Sign, digit};
use super::{Blank, character};

const LABEL: &str = "[email]";

/// The at sign, and how it is written in URLs and HTML.
const AT_SIGNS: [&str; 8] = [
    "@", "＠", "﹫", "%40", "&#64;", "&#x40;", "&#X40;", "&commat;",
];

/// The longest quoted name before an at sign.
const LONGEST_QUOTED: usize = 66;

/// Whether a text can have an address at all.
pub fn may_have_one(text: &str) -> bool {
    AT_SIGNS.iter().any(|at| text.contains(at))
        // Something invisible may be inside the longer ones.
        || (!text.is_ascii() && text.contains(['%', '&']))
}

/// The addresses in a text.
pub fn find(signs: &[Sign]) -> Vec<Blank> {
    let mut found: Vec<Blank> = Vec::new();
    let (mut place, mut floor) = (0, 0);
    while place < signs.len() {
        let address = at_sign(signs, place).and_then(|length| {
            // First the domain, which ends before the next at sign. The local part may go back over
            // all that were none: `%40%40%40` has only characters of names.
            let to = domain(signs, place + length)?;
            Some((local_part(signs, floor, place)?, to))
        });
        match address {
            Some((from, to)) => {
                found.push(Blank {
                    from,
                    to,
                    label: LABEL,
                });
                (place, floor) = (to, to);
            }
            None => place += 1,
        }
    }
    found
}

/// How many signs an at sign takes that begins here.
fn at_sign(signs: &[Sign], place: usize) -> Option<usize> {
    if !matches!(character(signs, place)?, '@' | '＠' | '﹫' | '%' | '&') {
        return None;
    }
    let rest = signs.get(place..)?;
    let spelled = AT_SIGNS.iter().find(|at| {
        rest.len() >= at.chars().count()
            && at
                .chars()
                .zip(rest)
                .all(|(expected, sign)| expected == sign.character)
    });
    spelled.map(|at| at.chars().count())
}

/// Where the part before the at sign begins; `None` if there is none.
fn local_part(signs: &[Sign], floor: usize, at: usize) -> Option<usize> {
    let last = at.checked_sub(1).filter(|last| *last >= floor)?;
    let nearest = character(signs, last)?;
    if nearest == '"' {
        let lowest = floor.max(last.saturating_sub(LONGEST_QUOTED));
        return (lowest..last)
            .rev()
            .take_while(|place| character(signs, *place) != Some('\n'))
            .find(|place| character(signs, *place) == Some('"'));
    }
    // Scripts without spaces between words would have the whole sentence belong to the address.
    let may_be_dense = is_dense(nearest);
    let mut from = at;
    while from > floor
        && let Some(each) = character(signs, from - 1)
        && is_local(each)
        && (may_be_dense || !is_dense(each))
    {
        from -= 1;
    }
    let named = signs.get(from..at)?;
    named
        .iter()
        .any(|sign| sign.character.is_alphanumeric())
        .then_some(from)
}

/// Where the part after the at sign ends; `None` if it is no host.
fn domain(signs: &[Sign], from: usize) -> Option<usize> {
    let first = character(signs, from)?;
    if first == '[' {
        let literal = signs.get(from..)?.iter().take(48);
        let end = literal
            .take_while(|sign| !sign.character.is_whitespace())
            .position(|sign| sign.character == ']')?;
        return Some(from + end + 1);
    }
    let may_be_dense = is_dense(first);
    let mut to = from;
    while let Some(each) = character(signs, to)
        && (each.is_alphanumeric() || is_dot(each) || matches!(each, '-' | '_'))
        && (may_be_dense || !is_dense(each) || is_dot(each))
    {
        to += 1;
    }
    // The end of a sentence is none of an address.
    while to > from && character(signs, to - 1).is_some_and(|each| !each.is_alphanumeric()) {
        to -= 1;
    }
    let host = signs.get(from..to)?;
    let mut labels = host.rsplit(|sign| is_dot(sign.character));
    let last = labels.next()?.first()?.character;
    // `10@2.50` is a price, `a@192.168.0.1` is an address.
    (digit(last).is_none() || labels.count() == 3).then_some(to)
}

fn is_local(character: char) -> bool {
    !character.is_whitespace()
        && !character.is_control()
        && !matches!(
            character,
            '<' | '>'
                | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | ','
                | ';'
                | ':'
                | '"'
                | '\\'
                | '/'
                | '|'
                | '@'
                | '＠'
                | '﹫'
                | '，'
                | '。'
                | '：'
                | '；'
                | '（'
                | '）'
                | '、'
                | '「'
                | '」'
                | '«'
                | '»'
                | '“'
                | '”'
                | '„'
        )
}

fn is_dot(character: char) -> bool {
    matches!(character, '.' | '．' | '。' | '｡' | '․')
}

/// Whether a character is of a script that is written without spaces.
fn is_dense(character: char) -> bool {
    matches!(u32::from(character), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF
        | 0x2E80..=0x9FFF | 0xAC00..=0xD7FF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}
