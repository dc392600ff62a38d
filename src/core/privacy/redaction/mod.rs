//! Blanks e-mail addresses, phone numbers and card numbers in texts that people wrote.
//!
//! In doubt it blanks: a number of seven digits or more goes, whatever it means, unless it is written
//! like a date, a time or a price. Digits of all scripts count. The rules are regular expressions, so
//! the time is linear in the length of the text.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::{Match, Regex};

/// The fewest digits of a phone number.
const PHONE_DIGITS: usize = 7;

/// How many digits a card number has (ISO/IEC 7812-1).
const CARD_DIGITS: RangeInclusive<usize> = 13..=19;

/// How many bytes on each side of a number may say what it is: a currency's name between a space and
/// a character that is no letter.
const BESIDE: usize = 16;

const CURRENCIES: &str = "aud|bgn|brl|cad|chf|cny|czk|dkk|dollars?|eur|euros?|fr|ft|gbp|huf|inr|jpy|\
    kr|krw|kč|lei|mxn|nok|nzd|pln|ron|rs|rub|sek|sfr|tl|try|uah|usd|yen|zar|zł|грн|руб";

/// An error only if a pattern is wrong; no text is kept then.
static RULES: LazyLock<Result<Rules, regex::Error>> = LazyLock::new(Rules::compile);

/// The text with `[email]`, `[phone]` and `[card]` for what it named; borrowed if it named nothing.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    blanked(text, |rules| rules.all(text))
}

/// The text with `label` for each e-mail address; borrowed if it has none.
#[must_use]
pub fn replace_emails<'t>(text: &'t str, label: &str) -> Cow<'t, str> {
    blanked(text, |rules| rules.emails(text, label))
}

/// The text with labels for the parts found in it; parts that overlap become one.
fn blanked<'t, 'l>(text: &'t str, find: impl Fn(&Rules) -> Vec<Blank<'l>>) -> Cow<'t, str> {
    let Ok(rules) = &*RULES else {
        return Cow::Borrowed("");
    };
    let mut blanks = find(rules);
    if blanks.is_empty() {
        return Cow::Borrowed(text);
    }
    blanks.sort_unstable();
    let (mut redacted, mut done) = (String::with_capacity(text.len()), 0);
    for (from, label, to) in blanks {
        if from >= done {
            redacted.push_str(text.get(done..from).unwrap_or_default());
            redacted.push_str(label);
        }
        done = done.max(to);
    }
    redacted.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(redacted)
}

/// A part of a text, from one byte to another, and what replaces it.
type Blank<'l> = (usize, &'l str, usize);

struct Rules {
    email: Regex,
    /// Digits, joined by signs that may be inside a phone number.
    number: Regex,
    /// Groups of digits, joined by up to three signs of any kind.
    spread: Regex,
    digits: Regex,
    ordinary: Regex,
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
        Ok(Self {
            email: Regex::new(&email)?,
            number: Regex::new(&format!(r"{start}(?:{joint}{{0,4}}{digit})*\p{{M}}*"))?,
            spread: Regex::new(&spread)?,
            digits: Regex::new(&format!("{digit}+"))?,
            ordinary: Regex::new(&ordinary())?,
        })
    }

    fn all(&self, text: &str) -> Vec<Blank<'static>> {
        let mut blanks = self.emails(text, "[email]");
        let digits = count_digits(text);
        if digits >= PHONE_DIGITS {
            let numbers = self.number.find_iter(text);
            let long = numbers.filter(|number| count_digits(number.as_str()) >= PHONE_DIGITS);
            let phones = long.filter(|number| !self.is_ordinary(text, number));
            blanks.extend(phones.map(|phone| (phone.start(), "[phone]", phone.end())));
        }
        if digits >= *CARD_DIGITS.start() {
            let spread = self.spread.find_iter(text);
            blanks.extend(spread.flat_map(|groups| self.cards(groups)));
        }
        blanks
    }

    fn emails<'l>(&self, text: &str, label: &'l str) -> Vec<Blank<'l>> {
        if !text.contains(['@', '＠', '﹫', '%', '&']) {
            return Vec::new();
        }
        let emails = self.email.find_iter(text).map(|email| {
            let before = text.get(..email.start()).unwrap_or_default();
            let mut from = email.start();
            // The name of a URL's first parameter stays.
            if before.ends_with('?') {
                from += email.as_str().find('=').map_or(0, |equals| equals + 1);
            }
            (from, label, email.end())
        });
        emails.collect()
    }

    /// The card numbers among groups of digits; they may overlap.
    fn cards(&self, spread: Match) -> Vec<Blank<'static>> {
        let groups = self.digits.find_iter(spread.as_str());
        let cards = groups.filter_map(|first| {
            let from = spread.start() + first.start();
            let length = length_of_card(spread.as_str().get(first.start()..)?)?;
            Some((from, "[card]", from + length))
        });
        cards.collect()
    }

    /// Whether a number is written like a date, a time or a price.
    fn is_ordinary(&self, text: &str, number: &Match) -> bool {
        let before = text.floor_char_boundary(number.start().saturating_sub(BESIDE));
        let after = text.ceil_char_boundary(number.end() + BESIDE);
        let parts = [before..number.start(), number.range(), number.end()..after];
        let [before, number, after] = parts.map(|part| plain(text.get(part).unwrap_or_default()));
        self.ordinary
            .is_match(&format!("{before}«{number}»{after}"))
    }
}

/// Matches a number in plain text, between « and », that is written like a date, a time or a price.
fn ordinary() -> String {
    let (day, month) = ("(?:0?[1-9]|[12][0-9]|3[01])", "(?:0?[1-9]|1[0-2])");
    let (year, short_year) = ("(?:(?:1[89]|2[01])[0-9][0-9])", "[0-9][0-9]");
    let time = r"(?:(?:[01]?[0-9]|2[0-4])\.[0-5][0-9])";
    // Beside a date: an hour, or a number too short to matter.
    let (short, beside) = ("(?:[0-9][0-9]?|[1-9][0-9]{2,5})", " (?:[-/] )?");
    let dates = [r" ?\. ?", " ?/ ?", " ?- ?"].map(|dot| {
        let day_and_month = format!("(?:{day}{dot}{month}|{month}{dot}{day})");
        let date = format!("(?:{year}{dot}{month}{dot}{day}|{day_and_month}{dot}{year})");
        let short_date = format!("{day_and_month}{dot}{short_year}");
        let until = "(?: ?[-/] ?| )";
        format!(
            "«(?:{short}{beside}|{day}(?:{dot}{month})?(?:{dot})? ?- ?)?{date}\
             (?:(?:{until}|{beside}{short}{beside}){date})*(?:{beside}(?:{time}(?: ?- ?{time})?|{short}))?»|\
             (?::«[0-9]{{2}}{beside}|«){short_date}(?:{until}{short_date})*(?:{beside}[0-9]{{1,2}}»:|»)"
        )
    });
    let grouped = "(?:[1-9][0-9]{0,2}(?:[. '’][0-9]{3})+)";
    let amount = format!(r"(?:(?:{grouped}|[1-9][0-9]{{0,8}})(?:\.[0-9]{{1,2}})?)");
    [
        dates.join("|"),
        format!("«{time} ?- ?{time}»|«{year} ?[-/] ?{year}»"),
        format!(r"(?:\p{{Sc}}|(?:^|\P{{L}})(?:{CURRENCIES})) ?«{amount}(?: ?- ?{amount})?»"),
        format!(r"«{amount}(?: ?- ?{amount})?»(?:,[0-9]{{1,2}})? ?(?:\p{{Sc}}|(?:{CURRENCIES})(?:\P{{L}}|$))"),
        format!("«{grouped}(?: ?- ?{grouped})?»,[0-9]{{1,2}}(?:[^0-9]|$)"),
        r"«[1-9][0-9]{0,5}\.[0-9]{1,2}»".to_owned(),
    ]
    .join("|")
}

/// A text with the ASCII forms of its digits, spaces, dashes and wide characters, in lower case, and
/// without brackets, quotation marks and what is invisible.
fn plain(text: &str) -> String {
    let plain = text.chars().filter_map(|each| match each {
        '(' | ')' | '[' | ']' | '«' | '»' => None,
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

/// How much of a text is the longest card number that it begins with: its check digit is right, by
/// the Luhn formula, and no digit follows directly.
fn length_of_card(text: &str) -> Option<usize> {
    let (mut sum, mut shifted, mut length) = (0, 0, None);
    let digits = text.char_indices().filter(|(_, each)| each.is_numeric());
    for (count, (place, each)) in (1..=*CARD_DIGITS.end()).zip(digits) {
        let digit = value(each);
        let doubled = if digit > 4 { 2 * digit - 9 } else { 2 * digit };
        // As if this digit were the last one, and as if another one followed.
        (sum, shifted) = (shifted + digit, sum + doubled);
        let end = place + each.len_utf8();
        let is_last = !text.get(end..)?.starts_with(char::is_numeric);
        if is_last && CARD_DIGITS.contains(&count) && sum % 10 == 0 {
            length = Some(end);
        }
    }
    length
}
