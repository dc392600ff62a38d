//! Whether a user's `updated_at` and `online_at` follow changes of the messages.

use std::time::Duration;

use tokio::time::Instant;

use backread_clock::Clock;

use crate::switch::switch_enum;

/// How long after a change the hints move with [`Hints::Lag`].
pub const LAG: Duration = Duration::from_secs(300);

switch_enum! {
    /// What a user's `updated_at` and `online_at` do when messages are added, edited or removed.
    Hints {
        /// They move at once.
        Follow = "follow",
        /// They move five minutes later.
        Lag = "lag",
        /// They stay.
        Never = "never",
    }
}

/// What the hints of a world do from now on, and the clock that they follow.
#[derive(Debug, Default)]
pub struct HintRule {
    pub hints: Hints,
    pub clock: Clock,
}

impl HintRule {
    pub fn now(&self) -> (Hints, Instant) {
        (self.hints, self.clock.now())
    }
}
