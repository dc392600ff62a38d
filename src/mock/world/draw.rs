//! Counter-based randomness: every number is a pure function of (seed, stream, row), so that any row
//! can be generated alone, in any order, on any machine.

/// The use of a sequence of draws. Each use has its own, so that an additional draw in one does not
/// affect the others.
#[derive(Clone, Copy, Debug)]
pub enum Stream {
    /// The digits that make user ids irregular.
    UserId = 1,
    /// The digits that make message ids irregular.
    MessageId = 2,
    /// Name, address, reference.
    Person = 3,
    /// Custom properties and the last page visited.
    Profile = 4,
    /// When the user arrived, and the spread of the visits.
    Arrival = 5,
    /// How many messages a user has.
    Length = 6,
    /// When a visit begins.
    Visit = 7,
    /// Seconds between two messages of one visit.
    Reply = 8,
    /// Who speaks, and what was read.
    Turn = 9,
    /// The text of messages.
    Text = 10,
    /// The operators.
    Operator = 11,
    /// How late the user was last seen.
    Presence = 12,
    /// How a dialect changes a row.
    RowMutation = 13,
}

/// The finaliser of splitmix64: a bijection of 64 bits whose output looks random.
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes several numbers in order; looks random even for small ones.
pub(crate) const fn blend(mut numbers: &[u64]) -> u64 {
    let mut state = STEP;
    while let [number, rest @ ..] = numbers {
        state = mix(state.wrapping_add(STEP) ^ mix(*number));
        numbers = rest;
    }
    state
}

/// A short sequence of draws that belongs to one row and one use.
#[derive(Clone, Debug)]
pub struct Draw {
    state: u64,
}

impl Draw {
    /// The sequence of `stream` for the row `(row, part)`; `part` is 0 for users.
    pub const fn new(seed: u64, stream: Stream, row: u64, part: u64) -> Self {
        let key = mix(seed ^ mix((1 << 32) | stream as u64));
        let key = mix(key.wrapping_add(row.wrapping_mul(STEP)));
        Self {
            state: mix(key.wrapping_add(part.wrapping_mul(STEP))),
        }
    }

    /// Sixty-four bits.
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number in `0..bound`, or 0 when `bound` is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() as u128 * bound as u128) >> 64) as u64
    }

    /// True in `per_mille` of a thousand cases.
    pub const fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of `choices`, or an empty text if there are none.
    pub fn pick<'choice, Text: AsRef<str>>(&mut self, choices: &'choice [Text]) -> &'choice str {
        let at = self.below(choices.len() as u64) as usize;
        choices.get(at).map_or("", AsRef::as_ref)
    }
}

/// A 64-bit hash of its input, the same on every machine.
#[derive(Clone, Debug)]
pub struct Digest {
    state: u64,
}

impl Digest {
    /// An empty hash.
    pub const fn new() -> Self {
        Self { state: mix(1) }
    }

    /// Adds one number.
    pub const fn number(&mut self, value: u64) {
        self.state = mix(self.state.wrapping_add(STEP) ^ mix(value));
    }

    /// Adds bytes with their number, so that adjacent texts cannot be confused.
    pub fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        for byte in value {
            self.number(u64::from(*byte));
        }
    }

    /// Adds one text.
    pub fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// Sixty-four bits.
    pub const fn value(&self) -> u64 {
        self.state
    }

    /// Sixteen hexadecimal digits.
    pub fn hex(&self) -> String {
        format!("{:016x}", self.state)
    }
}
