//! Whether a row can be read, and how many of its values have undocumented types.

/// The deepest nesting of a row, including the row itself: what reads its values does so by recursion.
pub const DEEPEST: usize = 127;

/// Why a row cannot become a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    NoObject,
    NoId,
    TooDeep,
    /// It alone exceeds `max_response_bytes`, so it was not read.
    TooLarge,
    /// Each page that it is part of fails, so it was not read.
    Failing,
}

impl Unreadable {
    /// Whether it can be returned as sent, though not as a record.
    pub fn can_be_given_as_sent(self) -> bool {
        matches!(self, Self::NoObject | Self::NoId)
    }

    /// Whether the row itself was received.
    pub fn was_received(self) -> bool {
        !matches!(self, Self::TooLarge | Self::Failing)
    }

    /// The same in words, after the row.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NoObject => "is not an object",
            Self::NoId => "has no integer id",
            Self::TooDeep => "is nested too deep",
            Self::TooLarge => "is larger than max_response_bytes",
            Self::Failing => "fails each page that it is part of",
        }
    }
}

/// The result of checking a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdict {
    pub id: Option<i64>,
    pub unreadable: Option<Unreadable>,
    /// Values of documented fields that have another type.
    pub odd_values: u64,
}

impl Verdict {
    /// The verdict on a row that was not read.
    pub fn not_read(why: Unreadable) -> Self {
        Self {
            unreadable: Some(why),
            ..Self::default()
        }
    }
}

pub fn is_too_deep(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > DEEPEST {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}
