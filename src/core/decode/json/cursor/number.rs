//! Whole numbers.

/// The whole number of 64 bits that a text begins with, and what follows it.
#[inline]
pub fn integer(text: &[u8]) -> Option<(i64, &[u8])> {
    // Any number with at most this many digits fits.
    const SURE: usize = 18;
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (mut number, mut rest) = (0_i64, digits);
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        number = number
            .wrapping_mul(10)
            .wrapping_add(i64::from(digit - b'0'));
        rest = after;
    }
    let length = digits.len() - rest.len();
    let leading_zero = length > 1 && digits.first() == Some(&b'0');
    if length == 0 || leading_zero || matches!(rest, [b'.' | b'e' | b'E', ..]) {
        return None;
    }
    if length > SURE {
        let whole = str::from_utf8(text.get(..text.len() - rest.len())?);
        return Some((whole.ok()?.parse().ok()?, rest));
    }
    Some((if negative { -number } else { number }, rest))
}
