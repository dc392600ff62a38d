//! Whether refusals are bans, which last longer than the window in which requests are counted.
//!
//! A burst after each wait is the most that a window allows, and the least that a ban does: of 100
//! requests in ten seconds, and then none for a minute, it makes a sixth of what is allowed. The two
//! look alike until slower requests are tried: they use up a window later, so its stated wait is
//! shorter; a ban is as long as before.

use super::learned::Learned;

/// The shortest ban, in seconds.
const SHORTEST: f64 = 5.0;
/// How many waits in a row must be followed by an early refusal.
const SUSPICIOUS: u32 = 3;
/// A refusal is early within this part of the wait before it.
const EARLY: f64 = 0.25;
/// A wait shorter than this part of the first one ends with a window.
const SHORTER: f64 = 0.9;

/// What is believed so far.
#[derive(Debug, Clone, Copy)]
pub enum Bans {
    /// How many refusals in a row came early.
    Counted(u32),
    /// Slow requests are tried.
    Suspected {
        before: Option<Learned>,
        waited: f64,
    },
    Confirmed,
    Refuted,
}

/// How to continue after a refusal.
#[derive(Debug, Clone, Copy)]
pub enum Verdict {
    Unknown,
    /// Search for a rate that is never refused.
    Bans,
    /// Restore what was learned before.
    NotBans(Option<Learned>),
}

impl Default for Bans {
    fn default() -> Self {
        Self::Counted(0)
    }
}

impl Bans {
    /// A wait of this many seconds is over; requests had passed for `lasted` seconds before.
    pub fn conclude(&mut self, waited: f64, lasted: f64, learned: Option<Learned>) -> Verdict {
        let early = waited >= SHORTEST && lasted < waited * EARLY;
        match *self {
            Self::Counted(count) if early && count + 1 == SUSPICIOUS => {
                let before = learned;
                *self = Self::Suspected { before, waited };
                Verdict::Bans
            }
            Self::Counted(count) => {
                *self = Self::Counted(if early { count + 1 } else { 0 });
                Verdict::Unknown
            }
            Self::Suspected { waited: first, .. } if lasted <= first * EARLY => Verdict::Bans,
            Self::Suspected {
                before,
                waited: first,
            } if waited < first * SHORTER => {
                *self = Self::Refuted;
                Verdict::NotBans(before)
            }
            Self::Suspected { .. } | Self::Confirmed => {
                *self = Self::Confirmed;
                Verdict::Bans
            }
            Self::Refuted => Verdict::Unknown,
        }
    }
}
