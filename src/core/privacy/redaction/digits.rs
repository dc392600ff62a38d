//! Digits of all scripts, and the characters of a text that count.

/// Runs of digits outside ASCII: the first character, how many, and the first one's value. Unicode's
/// property Numeric_Type=Digit or Decimal, version 14.
#[rustfmt::skip]
const DIGITS: &[(u32, u32, u8)] = &[
    (0xB2, 2, 2), (0xB9, 1, 1), (0x660, 10, 0), (0x6F0, 10, 0), (0x7C0, 10, 0), (0x966, 10, 0),
    (0x9E6, 10, 0), (0xA66, 10, 0), (0xAE6, 10, 0), (0xB66, 10, 0), (0xBE6, 10, 0), (0xC66, 10, 0),
    (0xCE6, 10, 0), (0xD66, 10, 0), (0xDE6, 10, 0), (0xE50, 10, 0), (0xED0, 10, 0), (0xF20, 10, 0),
    (0x1040, 10, 0), (0x1090, 10, 0), (0x1369, 9, 1), (0x17E0, 10, 0), (0x1810, 10, 0),
    (0x1946, 10, 0), (0x19D0, 10, 0), (0x19DA, 1, 1), (0x1A80, 10, 0), (0x1A90, 10, 0),
    (0x1B50, 10, 0), (0x1BB0, 10, 0), (0x1C40, 10, 0), (0x1C50, 10, 0), (0x2070, 1, 0),
    (0x2074, 6, 4), (0x2080, 10, 0), (0x2460, 9, 1), (0x2474, 9, 1), (0x2488, 9, 1), (0x24EA, 1, 0),
    (0x24F5, 9, 1), (0x24FF, 1, 0), (0x2776, 9, 1), (0x2780, 9, 1), (0x278A, 9, 1), (0xA620, 10, 0),
    (0xA8D0, 10, 0), (0xA900, 10, 0), (0xA9D0, 10, 0), (0xA9F0, 10, 0), (0xAA50, 10, 0),
    (0xABF0, 10, 0), (0xFF10, 10, 0), (0x104A0, 10, 0), (0x10A40, 4, 1), (0x10D30, 10, 0),
    (0x10E60, 9, 1), (0x11052, 9, 1), (0x11066, 10, 0), (0x110F0, 10, 0), (0x11136, 10, 0),
    (0x111D0, 10, 0), (0x112F0, 10, 0), (0x11450, 10, 0), (0x114D0, 10, 0), (0x11650, 10, 0),
    (0x116C0, 10, 0), (0x11730, 10, 0), (0x118E0, 10, 0), (0x11950, 10, 0), (0x11C50, 10, 0),
    (0x11D50, 10, 0), (0x11DA0, 10, 0), (0x16A60, 10, 0), (0x16AC0, 10, 0), (0x16B50, 10, 0),
    (0x1D7CE, 10, 0), (0x1D7D8, 10, 0), (0x1D7E2, 10, 0), (0x1D7EC, 10, 0), (0x1D7F6, 10, 0),
    (0x1E140, 10, 0), (0x1E2F0, 10, 0), (0x1E950, 10, 0), (0x1F100, 1, 0), (0x1F101, 10, 0),
    (0x1FBF0, 10, 0),
];

/// The value of a digit of any script, also a raised or a circled one.
pub fn digit(character: char) -> Option<u8> {
    if let Some(digit) = character.to_digit(10) {
        return u8::try_from(digit).ok();
    }
    if character.is_ascii() {
        return None;
    }
    let code = u32::from(character);
    let after = DIGITS.partition_point(|(first, _, _)| *first <= code);
    let (first, count, value) = DIGITS.get(after.checked_sub(1)?)?;
    let distance = code - first;
    (distance < *count).then(|| value + distance as u8)
}

/// Whether a character is invisible or only marks the one before it, so that a number may have it
/// anywhere.
fn is_ignorable(character: char) -> bool {
    matches!(
        u32::from(character),
        0xAD | 0x0300..=0x036F
            | 0x061C
            | 0x115F..=0x1160
            | 0x17B4..=0x17B5
            | 0x180B..=0x180F
            | 0x200B..=0x200F
            | 0x202A..=0x202E
            | 0x2060..=0x206F
            | 0x20D0..=0x20F0
            | 0x3164
            | 0xFE00..=0xFE0F
            | 0xFEFF
            | 0xFFA0
            | 0xFFF9..=0xFFFB
            | 0xE0000..=0xE0FFF
    )
}

/// A character of a text that counts, and where its bytes are, with those of the ones after it that
/// do not count.
#[derive(Debug, Clone, Copy)]
pub struct Sign {
    pub character: char,
    pub from: usize,
    pub to: usize,
}

/// The characters of a text, without those that may stand anywhere.
pub fn signs(text: &str) -> Vec<Sign> {
    let mut signs: Vec<Sign> = Vec::with_capacity(text.len());
    for (from, character) in text.char_indices() {
        let to = from + character.len_utf8();
        if !is_ignorable(character) {
            signs.push(Sign {
                character,
                from,
                to,
            });
        } else if let Some(before) = signs.last_mut() {
            before.to = to;
        }
    }
    signs
}
