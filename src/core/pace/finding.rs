//! What the limiter learns from 503s.

use super::refusal::Refusal;

/// What follows from a response.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    Nothing,
    /// Count these as refusals from now on; remember the rate learned without 503s.
    Believed(Vec<Refusal>),
    /// These may be refusals; measure the pace from here on.
    Watched(Vec<Refusal>),
    /// Lower the pace to this part of what was measured; keep what is known without 503s, unless
    /// some were obeyed before.
    Suspected {
        part: f64,
        obeyed: bool,
    },
    /// Lower the pace to this part of itself.
    Slower(f64),
    /// 503s mean "too fast": search the rate from the trial's pace or, if not `anew`, use the rate
    /// learned before.
    TooFast {
        anew: bool,
    },
    /// These are refusals.
    Refused(Vec<Refusal>),
    /// 503s are unrelated to the pace: drop what was learned from them.
    Unrelated,
    /// Lift the limit, to see whether 503s become more frequent.
    Lifted,
    /// 503s became more frequent: these are refusals.
    Confirmed(Vec<Refusal>),
}

/// The state of the learned rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearnedState {
    /// No learned rate limits the pace.
    Free,
    /// It limits the pace.
    Limits,
    /// It is far lower than what once passed.
    Collapsed,
}
