//! Blanks e-mail addresses, phone numbers and card numbers in texts that people wrote.
//!
//! In doubt it blanks: a number of seven digits or more goes, whatever it means, unless it is written
//! like a date or a time. Digits of all scripts count. The rules are regular expressions, so
//! the time is linear in the length of the text.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::{Captures, NoExpand, Regex};

/// The fewest digits of a phone number.
const PHONE_DIGITS: usize = 7;

/// How many digits a card number has (ISO/IEC 7812-1).
const CARD_DIGITS: RangeInclusive<usize> = 13..=19;

/// An error only if a pattern is wrong; no text is kept then.
static RULES: LazyLock<Result<Rules, regex::Error>> = LazyLock::new(Rules::compile);

/// The text with `[email]`, `[phone]` and `[card]` for what it named; borrowed if it named nothing.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let (Ok(rules), without) = (&*RULES, replace_emails(text, "[email]")) else {
        return Cow::Borrowed("");
    };
    if count_digits(&without) < PHONE_DIGITS {
        return without;
    }
    let cards = rules.spread.replace_all(&without, |found: &Captures| {
        let groups = found.get_match().as_str();
        if has_card(groups) { "[card]" } else { groups }.to_owned()
    });
    let redacted = rules.number.replace_all(&cards, |found: &Captures| {
        let number = found.get_match().as_str();
        let stays = count_digits(number) < PHONE_DIGITS || rules.is_ordinary(number);
        if stays { number } else { "[phone]" }.to_owned()
    });
    match redacted == text {
        true => Cow::Borrowed(text),
        false => Cow::Owned(redacted.into_owned()),
    }
}

/// The text with `label` for each e-mail address; borrowed if it has none.
#[must_use]
pub fn replace_emails<'t>(text: &'t str, label: &str) -> Cow<'t, str> {
    match &*RULES {
        Ok(rules) if text.contains(['@', '＠', '﹫', '%', '&']) => {
            rules.email.replace_all(text, NoExpand(label))
        }
        Ok(_) => Cow::Borrowed(text),
        Err(_) => Cow::Borrowed(""),
    }
}

struct Rules {
    email: Regex,
    /// Digits, joined by signs that may be inside a phone number.
    number: Regex,
    /// Groups of digits, joined by up to three signs of any kind.
    spread: Regex,
    date: Regex,
    /// A time, a date with a short year, a pair of years, an amount with its cents.
    time: Regex,
}

impl Rules {
    fn compile() -> Result<Self, regex::Error> {
        // RFC 5322 and 6531, as people write them, also in URLs and HTML. Where words have no spaces
        // between them, a Latin address ends where the other script begins. The last label of a host
        // begins with no digit: `10@2.50` is a price.
        let dense = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}";
        let local = r#"[^\s\p{Cc}@＠﹫<>()\[\]{}|,;:?"\\/，。：；（）、「」«»“”„]"#;
        let label = r"\w\p{DI}";
        let email = format!(
            r#"(?x)
            (?: "[^"\n]*"
              | [{local}--{dense}]* [\w--{dense}] [{local}--{dense}]*
              | (?: {local}* \w {local}* )? [{dense}] )
            (?: [@＠﹫] | %40 | &\#64; | &\#[xX]40; | &commat; )
            (?: \[ (?:IPv6:)? [a-fA-F\d:.]+ \]
              | \d+ \. \d+ \. \d+ \. \d+
              | (?: [{label}\---{dense}]+ [.．。｡․] )* [{label}--{dense}\d] [{label}\---{dense}]*
              | (?: [{label}\-]+ [.．。｡․] )* [{label}--\d] [{label}\-]* )"#
        );
        let (plus, digit) = ("[+＋﹢⁺]", r"[\p{Nd}\p{No}]");
        // All signs but those that rather stand between two numbers.
        let joint = r#"[[^\p{L}\p{N}\p{Sc}\n\r,;:!?=&%@"<>{}#，；：、！？،؛§°]\p{DI}]"#;
        let start = format!(r"{plus}*(?:[(（\[]{plus}*{digit}+[)）\]]|{digit})");
        // As people group the digits of cards, and not as those of dates and times.
        let (gap, long) = (r"[^\p{L}\p{N}]{1,3}", format!("{digit}{{3,}}"));
        let spread = format!(
            "{long}(?:{gap}{long})*(?:{gap}{digit}{{1,2}})?|\
             {digit}(?:{gap}{digit})+|{digit}{digit}(?:{gap}{digit}{digit})+(?:{gap}{digit})?"
        );
        let (day, year) = ("(?:0?[1-9]|[12][0-9]|3[01])", "(?:1[89]|2[01])[0-9][0-9]");
        let dates = [r"\.", "/", "-"]
            .map(|dot| format!("{year}{dot}{day}{dot}{day}|{day}{dot}{day}{dot}{year}"));
        let date = dates.join("|");
        let time = format!(r"(?:[01]?[0-9]|2[0-4])\.[0-5][0-9]|{day}[./-]{day}[./-][0-9][0-9]");
        Ok(Self {
            email: Regex::new(&email)?,
            number: Regex::new(&format!(r"{start}(?:{joint}{{0,4}}{digit})*\p{{M}}*"))?,
            spread: Regex::new(&spread)?,
            date: Regex::new(&format!(
                r"^(?:{day}\.(?:{day}\.)?-)?(?:{date})(?:[-/](?:{date}))?$"
            ))?,
            time: Regex::new(&format!(
                r"^(?:{time})(?:[-/](?:{time}))?$|^{year}[-/]{year}$|^[1-9][0-9]{{0,5}}\.[0-9]{{1,2}}$"
            ))?,
        })
    }

    /// Whether a number is written like dates and times. Beside a date, what is too short for a phone
    /// number may be anything; beside a time, an hour.
    fn is_ordinary(&self, number: &str) -> bool {
        let (mut other, mut most) = (0, 2);
        let written = plain(number).replace(". ", ".").replace(" - ", "-");
        for word in written.split(' ') {
            if self.date.is_match(word) {
                most = PHONE_DIGITS - 1;
            } else if !self.time.is_match(word) {
                other += count_digits(word);
            }
        }
        other <= most && !written.starts_with('+')
    }
}

/// A text with the ASCII forms of its digits, spaces, dashes and wide characters, in lower case, and
/// without brackets and what is invisible.
fn plain(text: &str) -> String {
    let plain = text.chars().filter_map(|each| match each {
        '(' | ')' | '[' | ']' => None,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' => None,
        '\0'..='~' => Some(each.to_ascii_lowercase()),
        '‐'..='―' | '−' | '﹣' => Some('-'),
        '！'..='～' => char::from_u32(u32::from(each) - 0xFEE0),
        _ if each.is_numeric() => char::from_digit(value(each), 10),
        _ if each.is_whitespace() => Some(' '),
        _ => Some(each),
    });
    plain.collect()
}

/// The value of a decimal digit: Unicode has those of a script in a row, from zero.
fn value(digit: char) -> u32 {
    digit.to_digit(10).unwrap_or_else(|| {
        let below = (0..u32::from(digit)).rev().map_while(char::from_u32);
        below.take_while(|each| each.is_numeric()).count() as u32 % 10
    })
}

fn count_digits(text: &str) -> usize {
    text.chars().filter(|each| each.is_numeric()).count()
}

/// Whether groups of digits in a row are a card number, whose last digit is right by the Luhn formula.
fn has_card(text: &str) -> bool {
    let groups = text.split(|each: char| !each.is_numeric());
    let groups: Vec<Vec<u32>> = groups
        .map(|group| group.chars().map(value).collect())
        .filter(|group: &Vec<u32>| !group.is_empty())
        .collect();
    (1..=*CARD_DIGITS.end()).any(|count| {
        groups.windows(count).any(|row| {
            let digits = row.concat();
            let each = digits.iter().rev().enumerate();
            let doubled = each.map(|(place, digit)| match place % 2 {
                0 => *digit,
                _ => digit * 2 / 10 + digit * 2 % 10,
            });
            CARD_DIGITS.contains(&digits.len()) && doubled.sum::<u32>() % 10 == 0
        })
    })
}
