//! Numbers that are no phone's although they have as many digits: dates, times, years and prices.
//!
//! Only what is written like one of these and stands alone stays.

use super::character;
use super::digits::{Sign, digit};
use super::groups::{Group, gap, is_currency, is_plus};

const YEARS: std::ops::RangeInclusive<u32> = 1800..=2199;

/// The words for currencies next to an amount, in lower case.
const CURRENCIES: &[&str] = &[
    "aud", "bgn", "brl", "cad", "chf", "cny", "czk", "dkk", "dollar", "dollars", "eur", "euro",
    "euros", "fr", "ft", "gbp", "huf", "inr", "jpy", "kr", "krw", "kč", "lei", "mxn", "nok", "nzd",
    "pln", "ron", "rs", "rub", "sek", "sfr", "tl", "try", "uah", "usd", "yen", "zar", "zł", "грн",
    "руб",
];

/// The most letters of such a word.
const LONGEST_WORD: usize = 8;

/// The parts of a chain of groups that may be phone numbers.
pub fn without_ordinary<'a>(signs: &[Sign], floor: usize, chain: &'a [Group]) -> Vec<&'a [Group]> {
    let text = Text { signs, floor };
    if text.is_international(chain) {
        return vec![chain];
    }
    let mut dated = vec![false; chain.len()];
    text.note_clocks(chain, &mut dated);
    text.note_dates(chain, &mut dated);
    let mut parts = Vec::new();
    let mut rest = chain;
    for run in dated.chunk_by(|before, after| before == after) {
        let (part, after) = rest.split_at_checked(run.len()).unwrap_or((rest, &[]));
        rest = after;
        let is_dated = run.first() == Some(&true);
        if !is_dated && !text.is_times(part) && !text.is_years(part) && !text.is_price(part) {
            parts.push(part);
        }
    }
    parts
}

struct Text<'s> {
    signs: &'s [Sign],
    floor: usize,
}

impl Text<'_> {
    fn at(&self, place: usize) -> Option<char> {
        character(self.signs, place)
    }

    fn before(&self, place: usize) -> Option<char> {
        let before = place
            .checked_sub(1)
            .filter(|before| *before >= self.floor)?;
        self.at(before)
    }

    /// Whether a chain begins as only a phone number does.
    fn is_international(&self, chain: &[Group]) -> bool {
        let Some(first) = chain.first() else {
            return false;
        };
        let mut from = first.from;
        while self
            .before(from)
            .is_some_and(|each| matches!(each, ' ' | '('))
        {
            from -= 1;
        }
        self.before(from).is_some_and(is_plus)
            || (first.digits.len() > 2 && first.digits.starts_with(&[0, 0]))
    }

    // --- dates and times -------------------------------------------------------------------------

    /// Marks `10` and `30` of `10:30`.
    fn note_clocks(&self, chain: &[Group], dated: &mut [bool]) {
        let is_digit = |each: Option<char>| each.and_then(digit).is_some();
        for (group, dated) in chain.iter().zip(dated) {
            let after = self.at(group.to) == Some(':') && is_digit(self.at(group.to + 1));
            let before = self.before(group.from) == Some(':')
                && group
                    .from
                    .checked_sub(2)
                    .is_some_and(|place| is_digit(self.at(place)));
            *dated = (after || before) && group.digits.len() <= 2 && group.value() < 60;
        }
    }

    /// Marks dates that other groups do not continue.
    fn note_dates(&self, chain: &[Group], dated: &mut [bool]) {
        let mut index = 0;
        while let Some(rest) = chain.get(index..).filter(|rest| rest.len() >= 3) {
            let Some(date) = self.date(rest) else {
                index += 1;
                continue;
            };
            let (before, after) = (index.checked_sub(1), index + 3);
            let stands_alone = if date.has_century {
                // A longer row of the same separators is no date.
                let continues = |place: usize| {
                    let pair = chain.get(place..).unwrap_or_default();
                    matches!(pair, [one, other, ..]
                        if separator(gap(self.signs, one, other)) == Some(date.separator))
                };
                !before.is_some_and(continues) && !continues(index + 2)
            } else {
                let is_dated = |place: usize| dated.get(place) != Some(&false);
                let follows = chain.get(after..).and_then(|follows| self.date(follows));
                before.is_none_or(is_dated) && (follows.is_some() || is_dated(after))
            };
            if !stands_alone {
                index += 1;
                continue;
            }
            for dated in dated.iter_mut().skip(index).take(3) {
                *dated = true;
            }
            index += 3;
        }
    }

    /// The date that groups begin with.
    fn date(&self, groups: &[Group]) -> Option<Date> {
        let [one, two, three, ..] = groups else {
            return None;
        };
        let separated = separator(gap(self.signs, one, two))?;
        if separator(gap(self.signs, two, three)) != Some(separated) {
            return None;
        }
        let is_day = |group: &Group| group.digits.len() <= 2 && (1..=31).contains(&group.value());
        let is_month = |group: &Group| is_day(group) && group.value() <= 12;
        let is_year = |group: &Group| group.digits.len() == 4 && YEARS.contains(&group.value());
        let has_century = if is_year(one) && is_month(two) && is_day(three) {
            true
        } else if is_day(one) && is_day(two) && (is_month(one) || is_month(two)) {
            if !is_year(three) && three.digits.len() != 2 {
                return None;
            }
            is_year(three)
        } else {
            return None;
        };
        Some(Date {
            separator: separated,
            has_century,
        })
    }

    /// `09.00 - 17.30`.
    fn is_times(&self, part: &[Group]) -> bool {
        let [open, minute, close, last] = part else {
            return false;
        };
        let is_time = |hour: &Group, minute: &Group| {
            hour.digits.len() <= 2
                && hour.value() <= 24
                && minute.digits.len() == 2
                && minute.value() < 60
                && separator(gap(self.signs, hour, minute)) == Some('.')
        };
        is_time(open, minute)
            && is_time(close, last)
            && separator(gap(self.signs, minute, close)) == Some('-')
    }

    /// `2023-2024`.
    fn is_years(&self, part: &[Group]) -> bool {
        let [one, other] = part else {
            return false;
        };
        let is_year = |group: &Group| group.digits.len() == 4 && YEARS.contains(&group.value());
        is_year(one)
            && is_year(other)
            && matches!(separator(gap(self.signs, one, other)), Some('-' | '/'))
    }

    // --- prices ----------------------------------------------------------------------------------

    /// One amount, or two with a dash between them, that have a currency or decimals.
    fn is_price(&self, part: &[Group]) -> bool {
        let amounts: Vec<&[Group]> = part
            .chunk_by(|one, other| {
                !gap(self.signs, one, other)
                    .iter()
                    .any(|each| is_dash(each.character))
            })
            .collect();
        let (Some(first), Some(last)) = (part.first(), part.last()) else {
            return false;
        };
        let Some(end) = self.end_of_decimals(last.to) else {
            return false;
        };
        let decimals = end > last.to;
        let alone = matches!(part, [whole, fraction]
            if whole.digits.len() < super::LEAST_DIGITS && self.is_fraction(whole, fraction));
        amounts.len() <= 2
            && amounts.iter().all(|amount| self.is_amount(amount))
            && (decimals && part.len() > 1 || alone || self.has_currency(first.from, end))
    }

    /// Digits with separators between thousands, and perhaps decimals after a dot.
    fn is_amount(&self, amount: &[Group]) -> bool {
        let [whole @ .., fraction] = amount else {
            return false;
        };
        let thousands = match whole.last() {
            Some(before) if self.is_fraction(before, fraction) => whole,
            _ => amount,
        };
        let Some((first, rest)) = thousands.split_first() else {
            return false;
        };
        let of_one_kind = have_one_separator(self.signs, thousands);
        let starts_well = !first.digits.starts_with(&[0]) || first.digits.len() == 1;
        let shape = rest.is_empty() && first.digits.len() <= 9
            || first.digits.len() <= 3 && rest.iter().all(|group| group.digits.len() == 3);
        starts_well && shape && of_one_kind
    }

    /// Whether a group is the decimals of the one before it.
    fn is_fraction(&self, whole: &Group, fraction: &Group) -> bool {
        fraction.digits.len() <= 2 && separator(gap(self.signs, whole, fraction)) == Some('.')
    }

    /// Where the one or two digits after a comma end; `place` if there are none, `None` if there
    /// are more.
    fn end_of_decimals(&self, place: usize) -> Option<usize> {
        let is_digit = |place| self.at(place).and_then(digit).is_some();
        if self.at(place) != Some(',') || !is_digit(place + 1) {
            return Some(place);
        }
        let count = (place + 1..place + 4)
            .take_while(|place| is_digit(*place))
            .count();
        (count <= 2).then_some(place + 1 + count)
    }

    fn has_currency(&self, from: usize, to: usize) -> bool {
        let space = |each: Option<char>| {
            each.is_some_and(|each| each == ' ' || each == '\u{a0}' || each == '\u{202f}')
        };
        let from = if space(self.before(from)) {
            from - 1
        } else {
            from
        };
        let to = if space(self.at(to)) { to + 1 } else { to };
        let is_word = |word: String| CURRENCIES.contains(&word.to_lowercase().as_str());
        let letters = |place: &usize| self.at(*place).filter(|each| each.is_alphabetic());
        let before: Vec<char> = (self.floor..from)
            .rev()
            .take(LONGEST_WORD + 1)
            .map_while(|place| letters(&place))
            .collect();
        let after: String = (to..to + LONGEST_WORD + 1)
            .map_while(|place| letters(&place))
            .collect();
        self.before(from).is_some_and(is_currency)
            || self.at(to).is_some_and(is_currency)
            || is_word(before.into_iter().rev().collect())
            || is_word(after)
    }
}

struct Date {
    separator: char,
    /// Whether its year has four digits.
    has_century: bool,
}

/// Whether one and the same character is between all of the groups.
fn have_one_separator(signs: &[Sign], groups: &[Group]) -> bool {
    let mut gaps = groups.windows(2).map(|pair| match pair {
        [one, other] => match gap(signs, one, other) {
            [only] => Some(only.character),
            _ => None,
        },
        _ => None,
    });
    let Some(first) = gaps.next() else {
        return true;
    };
    first.is_some() && gaps.all(|other| other == first)
}

/// The separator of dates, times and decimals, with spaces around it or without: a dot, a slash or
/// a dash.
fn separator(gap: &[Sign]) -> Option<char> {
    let mut visible = gap
        .iter()
        .map(|sign| sign.character)
        .filter(|each| !each.is_whitespace());
    let found = match visible.next()? {
        '.' | '．' | '․' => '.',
        '/' | '／' | '⁄' | '∕' => '/',
        dash if is_dash(dash) => '-',
        _ => return None,
    };
    visible.next().is_none().then_some(found)
}

fn is_dash(character: char) -> bool {
    matches!(character, '-' | '‐'..='―' | '−' | '－' | '﹣')
}
